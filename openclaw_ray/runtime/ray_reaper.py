"""Ends what an embedded Ray leaves behind when the process that started it is killed.

Ray's raylet dies with its driver; its helper processes and workers that are just starting do not, for half a minute or
for good. A small process of its own, which needs nothing but the standard library, waits at the other end of a pipe:

1. The driver closes Ray in order: it says so, and the reaper goes.
2. The pipe closes without a word: every process that writes to that Ray session's files is ended, with its tools.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

__all__ = ["RayReaper"]

_BYE = b"bye"
_ROUNDS = 50
_PAUSE = 0.1
_LATE = 1.2  # seconds in which a worker that was just starting may still open its files


class RayReaper:
    """The reaper of one embedded Ray, as the driver holds it."""

    def __init__(self, session_dir: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, session_dir],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Ray was shut down in order (1)."""
        try:
            self._process.communicate(_BYE, timeout=5)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def _writers(session_dir: str) -> set[int]:
    """Processes that write to files below ``session_dir``; what only reads there, as ``tail`` does, is not Ray's."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            for fd in os.listdir(f"/proc/{name}/fd"):
                if os.readlink(f"/proc/{name}/fd/{fd}").startswith(session_dir + "/") and _may_write(name, fd):
                    found.add(int(name))
                    break
        except OSError:
            continue  # gone, or somebody else's
    return found


def _may_write(pid: str, fd: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as info:
        for line in info:
            if line.startswith("flags:"):
                return bool(int(line.split()[1], 8) & os.O_ACCMODE)
    return False


def _with_their_tools(writers: set[int]) -> set[int]:
    """The writers, their descendants, and the members of process groups that a writer leads."""
    doomed = set(writers)
    parents: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                    fields = stat.read().rpartition(")")[2].split()
                parents[int(name)] = (int(fields[1]), int(fields[2]))
            except (OSError, ValueError, IndexError):
                continue
    grown = True
    while grown:
        more = {pid for pid, (parent, group) in parents.items() if parent in doomed or group in writers}
        grown = not more <= doomed
        doomed |= more
    return doomed - {os.getpid()}


def _main(session_dir: str) -> None:
    said = b""
    while piece := os.read(0, 16):
        said += piece
    if said == _BYE:
        return
    for round_number in range(_ROUNDS):
        writers = _writers(session_dir)
        for pid in _with_their_tools(writers):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if not writers and round_number * _PAUSE > _LATE:
            return
        time.sleep(_PAUSE)


if __name__ == "__main__":
    _main(os.path.realpath(sys.argv[1]))
