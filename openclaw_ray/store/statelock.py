"""One opener per state dir (DESIGN.md 7): an advisory lock, and beside it a note of who has it.

The lock is the truth and dies with its process, however that ends; the note is for the text of
`RuntimeInUse`. A note can outlive its process, so its pid is looked at before it is believed.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from openclaw_ray.core.errors import RuntimeInUse, StateDirError

__all__ = ["Owner", "StateLock", "owner_of"]

_LOCK = "lock"
_NOTE = "owner.json"
_NOTE_WAIT = 0.5
"""Seconds in which a new owner has written its note."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a state dir: process, host, since when (seconds since the epoch), and in which Ray (the address of its
    GCS, empty if it did not say)."""

    pid: int
    host: str
    since: float
    address: str = ""

    @property
    def alive(self) -> bool:
        """False if the process is known to be gone: it was on this host, and there is none of that pid."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # somebody else's process
            return True
        return True


def owner_of(state_dir: Path) -> Owner | None:
    """The process that has this state dir open, by its note; `None` if there is no note, or no process."""
    try:
        fields = json.loads((state_dir / _NOTE).read_bytes())
        owner = Owner(int(fields["pid"]), str(fields["host"]), float(fields["since"]), str(fields.get("address", "")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if owner.pid > 0 and owner.alive else None


class StateLock:
    """The right to be the only writer below a state dir, held by this process until `release` or its end.

    A context manager; may be acquired and released by different threads. Acquiring twice is the same as once,
    releasing twice harmless.

    Args:
        state_dir: an existing folder.
        name: the runtime's, for the error; the folder's by default.
        address: of the Ray that the runtime is in, for those who look for it.
    """

    def __init__(self, state_dir: str | Path, name: str | None = None, address: str = "") -> None:
        self.address = address
        self.state_dir = Path(state_dir)
        self.name = name or self.state_dir.name
        self._lock = FileLock(self.state_dir / _LOCK, timeout=0, mode=0o600, thread_local=False)

    @property
    def held(self) -> bool:
        """True between `acquire` and `release`."""
        return self._lock.is_locked

    def acquire(self) -> StateLock:
        """Take the lock at once, or not at all.

        Raises:
            RuntimeInUse: another opener has it; a pid of 0 means that it left no note.
            StateDirError: the folder cannot be locked or written to.
        """
        if self.held:
            return self
        if not self.state_dir.is_dir():  # filelock would make it, with a mode of its own
            raise StateDirError(str(self.state_dir), "there is no such directory")
        try:
            self._lock.acquire()
        except (Timeout, RuntimeError) as error:
            # RuntimeError: filelock's word for another lock of this very process
            owner = self._other()
            raise RuntimeInUse(self.name, owner.pid, owner.host, owner.since) from error
        except (OSError, NotImplementedError) as error:
            raise StateDirError(str(self.state_dir), f"cannot be locked: {error}") from error
        try:
            self._write_note()
        except OSError as error:
            self._lock.release()
            raise StateDirError(str(self.state_dir), f"cannot be written to: {error.strerror}") from error
        return self

    def release(self) -> None:
        """Give the lock back."""
        if self.held:
            with suppress(OSError):
                (self.state_dir / _NOTE).unlink()
            self._lock.release()

    def __enter__(self) -> StateLock:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _write_note(self) -> None:
        owner = Owner(os.getpid(), socket.gethostname(), time.time(), self.address)
        draft = self.state_dir / f"{_NOTE}.{owner.pid}"
        try:
            draft.write_text(json.dumps(asdict(owner)), encoding="utf-8")
            draft.chmod(0o600)
            draft.replace(self.state_dir / _NOTE)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _other(self) -> Owner:
        """The note of the other opener, which may have the lock for a moment only and write it just now."""
        until = time.monotonic() + _NOTE_WAIT
        while (owner := owner_of(self.state_dir)) is None and time.monotonic() < until:
            time.sleep(0.01)
        return owner or Owner(0, socket.gethostname(), time.time())
