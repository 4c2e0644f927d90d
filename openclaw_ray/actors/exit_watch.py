"""How session processes of this node end, as the system saw it: what Ray does not know (`openclaw_ray.core.death`).

Their parent reaps them, which is the raylet or a process beside it: nobody here can wait for them. Two ways remain:

1. A pidfd, opened while the process lives, tells its exit status after its end (Linux 6.15 and newer).
2. Elsewhere, what the process has left behind: `note_exits` writes the code of an `os._exit` down, and a fatal signal
   leaves Python's own report at the end of the process's output. A SIGKILL leaves neither, and stays unknown.

The kernel counts the processes that it has ended for want of memory; the count is looked at every few seconds, so that
an old one is not taken for the cause of a new death.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import time
from pathlib import Path

from openclaw_ray.actors.raylets import own_raylet, raylet_of
from openclaw_ray.actors.session_log import output_path
from openclaw_ray.core.death import Exit

__all__ = ["ExitWatch", "exit_status", "is_gone", "kernel_tells", "left_behind", "note_exits"]

GONE_WITHIN = 0.5
"""Seconds from a death notice within which the process is gone, too: Ray hears its connection close before that."""
_GET_INFO = 0xC040FF0B  # PIDFD_GET_INFO, with a struct of 64 bytes
_EXIT_INFO = 1 << 3  # PIDFD_INFO_EXIT
_REPORTS = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Floating point exception": signal.SIGFPE,
    "Floating-point exception": signal.SIGFPE,
    "Illegal instruction": signal.SIGILL,
}
_REPORT = "Fatal Python error: "
_OURS = "session_actor.py"
_TAIL = 64 * 1024


class ExitWatch:
    """The ends of session processes on this node; for one thread, but for `watch`."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._fds: dict[str, int] = {}
        self._starved = _starved()

    def watch(self, actor_id: str, pid: int) -> None:
        """Be there when a live process ends; harmless twice, and for one of another node."""
        if actor_id in self._fds or not pid or raylet_of(pid) != own_raylet():
            return
        with contextlib.suppress(OSError, AttributeError):
            fd = os.pidfd_open(pid)
            if self._fds.setdefault(actor_id, fd) != fd:
                os.close(fd)

    def ended(self, actor_id: str, *, wait: bool) -> Exit | None:
        """How a process ended, asked once; ``wait`` for its end, if need be. `None` if nobody has seen it."""
        fd = self._fds.pop(actor_id, None)
        try:
            found = None
            if wait and fd is not None:
                found = exit_status(fd, GONE_WITHIN)
            return found or (left_behind(self._state_dir, actor_id) if wait else None)
        finally:
            if fd is not None:
                os.close(fd)
            with contextlib.suppress(OSError):
                _note_path(self._state_dir, actor_id).unlink()

    def starved(self) -> int:
        """Processes that the kernel has ended for want of memory since this was last asked."""
        before, self._starved = self._starved, _starved()
        return max(0, self._starved - before)


def is_gone(pid: int) -> bool:
    """Whether a process of this host has ended, reaped or not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def exit_status(pidfd: int, timeout: float) -> Exit | None:
    """The exit of the process behind a pidfd, waited for (1); `None` if it lives, or the kernel does not tell."""
    until = time.monotonic() + timeout
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if not poll.poll(timeout * 1000):
        return None
    while True:
        info = bytearray(64)
        struct.pack_into("Q", info, 0, _EXIT_INFO)
        try:
            fcntl.ioctl(pidfd, _GET_INFO, info)
        except OSError:
            return None
        if struct.unpack_from("Q", info, 0)[0] & _EXIT_INFO:
            return Exit.of_status(struct.unpack_from("i", info, 60)[0])
        if time.monotonic() > until:  # ended, but its parent has not reaped it
            return None
        time.sleep(0.002)


def kernel_tells() -> bool:
    """Whether this kernel tells how a process ended that is not one's own child (1)."""
    try:
        pidfd = os.pidfd_open(os.getpid())
    except (OSError, AttributeError):
        return False
    try:
        info = bytearray(64)
        struct.pack_into("Q", info, 0, _EXIT_INFO)
        fcntl.ioctl(pidfd, _GET_INFO, info)
        return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 15)
    except (OSError, ValueError):
        return False
    finally:
        os.close(pidfd)


def note_exits(state_dir: str, actor_id: str) -> None:
    """From now on, an `os._exit` of this very process is written down before it happens (2)."""
    path, own, leave = _note_path(state_dir, actor_id), os.getpid(), os._exit

    def _exit(status: int) -> None:
        if os.getpid() == own:  # not a fork of it
            with contextlib.suppress(Exception):
                path.write_text(str(status & 0xFF))
        leave(status)

    os._exit = _exit  # type: ignore[assignment]


def left_behind(state_dir: str, actor_id: str) -> Exit | None:
    """What a process of this node has left behind of its end (2)."""
    with contextlib.suppress(OSError, ValueError):
        return Exit(code=int(_note_path(state_dir, actor_id).read_text()))
    try:
        with output_path(state_dir, actor_id).open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
            tail = output.read().decode(errors="replace")
    except OSError:
        return None
    report = tail.rpartition(_REPORT)[2] if _REPORT in tail else ""
    if _OURS not in report:  # of a tool, which is another process
        return None
    first = report.partition("\n")[0]
    return next((Exit(signal=number) for word, number in _REPORTS.items() if first.startswith(word)), None)


def _note_path(state_dir: str, actor_id: str) -> Path:
    return output_path(state_dir, actor_id).with_suffix(".exit")


def _starved() -> int:
    try:
        with open("/proc/vmstat", "rb") as counts:
            for line in counts:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0
