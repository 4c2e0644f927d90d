"""During a turn, file descriptors 1 and 2 go to the session's own log, output of its tools included (DESIGN.md 9)."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

__all__ = ["SessionLog", "log_path"]


def log_path(state_dir: str | Path, session_id: str) -> Path:
    """Where a session's output is, on the node that ran it."""
    return Path(state_dir) / "logs" / f"{session_id}.log"


class SessionLog:
    """Points the process's output at one session's log and back. A log that stays empty is removed again."""

    def __init__(self, state_dir: str) -> None:
        self._folder = Path(state_dir) / "logs"
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._own: tuple[int, int] | None = None
        self._fd = -1
        self._path = ""

    def begin(self, session_id: str) -> None:
        """Output belongs to this session from now on."""
        if self._own is None:
            self._own = (os.dup(1), os.dup(2))
        _flush()
        self._path = str(self._folder / f"{session_id}.log")
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(self._fd, 1)
        os.dup2(self._fd, 2)

    def end(self) -> None:
        """Output is the process's own again."""
        if self._own is None or self._fd < 0:
            return
        _flush()
        os.dup2(self._own[0], 1)
        os.dup2(self._own[1], 2)
        empty = os.fstat(self._fd).st_size == 0
        os.close(self._fd)
        self._fd = -1
        if empty:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def one_line(self, text: str) -> None:
        """One line to the process's own error output: Ray's driver sees one per failure."""
        fd = self._own[1] if self._own is not None else 2
        with contextlib.suppress(OSError):
            os.write(fd, (text.replace("\n", " ")[:400] + "\n").encode())


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
