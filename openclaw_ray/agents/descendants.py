"""The processes below this one: to find them, to end them, and to be the one to whom orphans come back.

A session process calls `become_subreaper` once: a process whose parent has gone is then re-parented to it and
not to the machine's init, so that none can leave the tree without being root or a new container. On Linux
only, elsewhere orphans are found by their process group alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

__all__ = [
    "Process",
    "become_subreaper",
    "has_children",
    "kill_descendants",
    "living_children",
    "reap_orphans",
]

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
_DEAD = ("zombie", "dead")


@dataclass(frozen=True, slots=True)
class Process:
    """A process as a message names it."""

    pid: int
    name: str


def become_subreaper() -> bool:
    """Have orphaned descendants re-parented to this process; False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def has_children() -> bool:
    """True if this process has children, ended and unwaited ones included; costs one system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def living_children() -> list[Process]:
    """Descendants of this process that have not ended."""
    return [Process(each.pid, _label(each)) for each in _living(os.getpid(), set())]


def kill_descendants(pid: int | None = None, rounds: int = _ROUNDS) -> int:
    """SIGKILL all that is below a process, again and again until nothing is left; returns how many it was.

    The process group is swept, too, if the process leads one, as Ray's workers do: who is in it was started
    from here, even if its parents are gone. (Of a group that another leads that cannot be known.)

    Args:
        pid: whose; this process's own if not given. It is not killed itself.
        rounds: looks at the process table; between two, up to 20 ms.
    """
    top = os.getpid() if pid is None else pid
    if top == os.getpid() and not has_children() and os.getpgid(0) != top:
        return 0
    direct: set[int] = set()
    killed: set[tuple[int, float]] = set()
    for number in range(rounds):
        living = list(_living(top, direct))
        if not living:
            break
        for each in living:
            with contextlib.suppress(Exception):  # it ended, or it became another user's
                each.send_signal(signal.SIGKILL)
                killed.add((each.pid, each.create_time()))
        time.sleep(min(0.02, 0.001 * 2**number))
    if top == os.getpid():
        _reap({pid for pid, _ in killed} - direct)
    return len(killed)


def reap_orphans(known: Collection[int] = ()) -> int:
    """Wait for ended children that nobody else will wait for; returns how many.

    To be called between sessions. Ended children of a `subprocess.Popen` or ``multiprocessing`` process that
    is still referenced are left: whoever holds it may ask for the exit status. What remains are orphans that
    came back to this process, and children of a bare ``os.fork`` by code that has ended.

    Args:
        known: process ids to leave alone.
    """
    if "subprocess" in sys.modules:
        sys.modules["subprocess"]._cleanup()
    if not _an_ended_child():
        return 0
    owned = set(known) | _owned()
    return _reap({pid for pid in _ended_children() if pid not in owned})


# --------------------------------------------------------------------------- inside


def _living(top: int, direct: set[int]) -> Iterator[psutil.Process]:
    """Living processes below ``top`` and in its group; its own children are added to ``direct``."""
    import psutil

    try:
        root = psutil.Process(top)
        found = {each.pid: each for each in root.children(recursive=True)}
    except psutil.NoSuchProcess:
        return
    if _leads_group(top):
        spared = {top, os.getpid(), *(each.pid for each in root.parents())}
        for pid in psutil.pids():
            if pid not in found and pid not in spared and _group(pid) == top:
                with contextlib.suppress(psutil.NoSuchProcess):
                    found[pid] = psutil.Process(pid)
    for each in found.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.status() in _DEAD:
                continue
            if each.ppid() == top:
                direct.add(each.pid)
            yield each


def _leads_group(pid: int) -> bool:
    return _group(pid) == pid


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def _label(process: psutil.Process) -> str:
    """Its command line, short; its name if that cannot be read."""
    import psutil

    try:
        return " ".join(process.cmdline())[:80] or process.name()
    except psutil.Error:
        return "?"


def _an_ended_child() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _ended_children() -> list[int]:
    import psutil

    ended = []
    for each in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.status() in _DEAD:
                ended.append(each.pid)
    return ended


def _owned() -> set[int]:
    """Process ids that some object in this process may still be asked about."""
    import gc
    import subprocess

    # by type(): isinstance would ask proxies for the class they stand for
    owned = {each.pid for each in gc.get_objects() if issubclass(type(each), subprocess.Popen)}
    if "multiprocessing.process" in sys.modules:
        owned |= {each.pid for each in sys.modules["multiprocessing.process"].active_children()}
    return owned


def _reap(pids: Collection[int]) -> int:
    reaped = 0
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            reaped += os.waitpid(pid, os.WNOHANG)[0] == pid
    return reaped
