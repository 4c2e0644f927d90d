"""The output of turns: file descriptors 1 and 2 of a session process, its tools' output included (DESIGN.md 9).

1. For the whole life of the process both go to its own file, ``<actor>.out``: Ray prints what a worker says on the
   driver's terminal, and how one of many processes ended is nothing for there. Most turns write nothing and cost
   nothing. What was written before the first turn is no session's and is passed on to Ray.
2. At the end of a turn that wrote something, the file becomes, or is appended to, ``<sessionId>.log``.
3. A process that dies in a turn leaves its ``<actor>.out`` behind; the run record says which actor that was.
4. With ``ray.logs: "json"`` each line of a log is a record that says whose it is (`openclaw_ray.core.log_lines`): what
   agents log is one when it is written, what else was written becomes one at the end of its turn.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

from openclaw_ray.core.log_lines import LogOf, as_records, record

__all__ = ["SessionLog", "log_path", "output_path"]


def log_path(state_dir: str | Path, session_id: str) -> Path:
    """What a session's ended turns wrote, on the node that ran them."""
    return Path(state_dir) / "logs" / f"{session_id}.log"


def output_path(state_dir: str | Path, actor_id: str) -> Path:
    """What the turn that an actor runs, or died in, has written so far."""
    return Path(state_dir) / "logs" / f"{actor_id}.out"


_PASSED_ON = 64 * 1024


class SessionLog:
    """The output of one session process."""

    def __init__(self, state_dir: str, actor_id: str, *, as_json: bool = False) -> None:
        self._state_dir = state_dir
        self._path = output_path(state_dir, actor_id)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._own = os.dup(2)
        self._fd = -1
        self._fresh = True
        self._json = as_json
        self._of = LogOf()
        if as_json:
            from openclaw_ray.actors.json_logs import log_json

            log_json(lambda: self._of)
        with contextlib.suppress(OSError):  # a full disk: the first turn tries again, and fails by it
            self._open()

    def begin(self, of: LogOf) -> None:
        """A turn begins (1); ``of``: whose it is."""
        self._of = of
        if self._fd < 0:
            self._open()
        if self._fresh:
            self._fresh = False
            self._pass_on()

    def end(self, session_id: str) -> None:
        """The turn has ended: what it wrote is the session's (2)."""
        _flush()
        if self._fd < 0:
            return
        if os.fstat(self._fd).st_size == 0:
            return
        log = log_path(self._state_dir, session_id)
        if self._json:
            with log.open("ab") as end, self._path.open("rb") as start:
                end.writelines(as_records(start, self._of, time.time()))
            os.ftruncate(self._fd, 0)
        elif log.exists():
            with log.open("ab") as end, self._path.open("rb") as start:
                shutil.copyfileobj(start, end)
            os.ftruncate(self._fd, 0)
        else:
            self._path.rename(log)
            self._open()

    def failed(self, text: str) -> None:
        """One line to the process's own error output: Ray's driver sees one per failure."""
        text = text.replace("\n", " ")[:400]
        line = f"[openclaw_ray] {text}\n".encode()
        if self._json:
            line = record(self._of, time.time(), text, logger="openclaw_ray", level="error")
        with contextlib.suppress(OSError):
            os.write(self._own, line)

    def _pass_on(self) -> None:
        _flush()
        if os.fstat(self._fd).st_size:
            with contextlib.suppress(OSError), self._path.open("rb") as before:
                os.write(self._own, before.read(_PASSED_ON))
            os.ftruncate(self._fd, 0)

    def _open(self) -> None:
        old, self._fd = self._fd, os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(self._fd, 1)
        os.dup2(self._fd, 2)
        if old >= 0:
            os.close(old)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
