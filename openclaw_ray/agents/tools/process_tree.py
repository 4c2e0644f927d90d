"""All the processes of one command: to count them, and to end every one (PROTOCOL.md 6.9).

Which process belongs to it:

1. the command itself, and whatever is a child of one that belongs to it;
2. what has belonged to it once, should its parent have gone meanwhile;
3. what has the command's mark in its environment, which children inherit. So one is found that lost its parent before
   anybody looked.

One that clears its environment and loses its parent between two looks is not found here. In a session process it comes
back to that process, whose clean check finds it.

To end them: all are stopped first, so that none of them brings forth another while they are counted, then killed.
Linux only: elsewhere the command alone is ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

__all__ = ["ProcessTree", "limit_processes", "threads_there_are"]

_PARENT, _THREADS, _BORN = 1, 17, 19  # places in /proc/<pid>/stat, after the name
_ROUNDS = 50
_DEAD = (b"Z", b"X")


class ProcessTree:
    """The processes of one command.

    Args:
        pid: the command, a child that has not been waited for.
        mark: an entry of its environment that no other has.
    """

    def __init__(self, pid: int, mark: bytes) -> None:
        self.pid = pid
        self._mark = mark
        self._known: dict[int, int] = {}
        """When each was born, in clock ticks since boot."""
        self._strangers: set[tuple[int, int]] = set()
        found = _stat(pid)
        self._since = 0 if found is None else int(found[_BORN])
        self._known[pid] = self._since

    def living(self) -> list[int]:
        """Those that have not ended; newcomers are noted."""
        table = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
        for pid, born in list(self._known.items()):
            if pid not in table or int(table[pid][_BORN]) != born:
                del self._known[pid]
        fresh = [pid for pid, stat in table.items() if pid not in self._known and int(stat[_BORN]) >= self._since]
        added = True
        while added:
            added = False
            for pid in fresh:
                if pid not in self._known and self._belongs(pid, table[pid]):
                    self._known[pid] = int(table[pid][_BORN])
                    added = True
        ended = {pid for pid in self._known if table[pid][0] in _DEAD}
        # else they would stay until the turn ends, each of them a place in the process table
        self._reap({pid for pid in ended if int(table[pid][_PARENT]) == os.getpid()})
        return [pid for pid in self._known if pid not in ended]

    def end(self, within: float) -> int:
        """SIGKILL until none is left; returns how many it was, the command itself not counted.

        Args:
            within: seconds after which what cannot be ended (stuck in the kernel) is left.
        """
        deadline = time.monotonic() + within
        killed: set[int] = set()
        while living := self.living():
            for _ in range(_ROUNDS):
                _send(living, signal.SIGSTOP)
                before, living = set(living), self.living()
                if before.issuperset(living):
                    break
            _send(living, signal.SIGKILL)
            killed.update(living)
            if time.monotonic() > deadline:
                break
            time.sleep(0.002)
            self._reap(killed)
        self._reap(killed)
        return len(killed - {self.pid})

    def _belongs(self, pid: int, stat: list[bytes]) -> bool:
        if int(stat[_PARENT]) in self._known:
            return True
        stranger = (pid, int(stat[_BORN]))
        if stranger in self._strangers:
            return False
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                marked = self._mark in file.read().split(b"\0")
        except OSError:  # it has ended, or is another user's
            marked = False
        if not marked:
            self._strangers.add(stranger)
        return marked

    def _reap(self, killed: set[int]) -> None:
        """Orphans that came back to this process are waited for here; the command is its starter's to wait for."""
        for pid in killed - {self.pid}:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def threads_there_are() -> int:
    """Threads of the whole machine, at the cost of one small read; 0 if there is no telling."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def limit_processes(pid: int, more: int) -> None:
    """Let a process and its children not start more than ``more`` beyond what its user runs already.

    The kernel's limit counts all processes of a user, and does not bind root: it slows a fork bomb down, `ProcessTree`
    ends it.
    """
    if os.geteuid() == 0:
        return
    import resource

    user, threads = os.geteuid(), 0
    for each in _pids():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{each}").st_uid == user and (stat := _stat(each)) is not None:
                threads += int(stat[_THREADS])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        _, hard = resource.prlimit(pid, resource.RLIMIT_NPROC)
        most = threads + more
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.prlimit(pid, resource.RLIMIT_NPROC, (most, most))


# --------------------------------------------------------------------------- inside


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> list[bytes] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
