"""Ending the processes of a command: those below it, and those that it left behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

__all__ = ["adopts_orphans", "birth", "end_tree"]

_PR_GET_CHILD_SUBREAPER = 37
_POLL = 0.02
_PATIENCE = 2.0
_BIRTH = 19
"""Place of ``starttime`` among the fields of ``/proc/<pid>/stat`` that follow the name."""


def birth(pid: int) -> int | None:
    """When a process was started, in clock ticks since boot; `None` if there is no telling."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[_BIRTH])
    except OSError:
        return None


def adopts_orphans() -> bool:
    """Whether orphans among the processes below this one become its children, as in a session process."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    answer = ctypes.c_int(0)
    asked: int = ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return asked == 0 and answer.value == 1


def end_tree(pid: int | None, *, since: int | None = None, grace: float = 0.5) -> int:
    """End the command ``pid`` and all below it: SIGTERM, after ``grace`` seconds SIGKILL until none is left.

    A process whose parent has exited is below the command no more. It is found

    * below this process, if orphans come back to it: a session process runs one command at a time, so all
      that was born below it since is the command's;
    * else in this process's group, if it leads one and the process is not below it.

    Args:
        pid: a child that has not been waited for; it still has not when this returns. `None` if it has.
        since: when the command was started (`birth`); `None` looks for no orphans.
        grace: seconds.

    Returns:
        How many processes were found.
    """
    import psutil

    found: dict[int, psutil.Process] = {}
    kill_at = time.monotonic() + grace
    told: set[int] = set()
    while left := _living(pid, since, found):
        now = time.monotonic()
        if now > kill_at + _PATIENCE:
            break  # stuck in the kernel
        for process in left:
            try:
                if now >= kill_at:
                    process.kill()
                elif process.pid not in told:
                    told.add(process.pid)
                    process.terminate()
                    process.resume()  # a suspended one would not see the signal
            except psutil.Error:
                continue  # gone, or it changed its user and is not ours to end
        time.sleep(_POLL)
    return len(found)


def _living(pid: int | None, since: int | None, found: dict[int, psutil.Process]) -> list[psutil.Process]:
    """Note newcomers in ``found``; tell who of them still runs."""
    import psutil

    if pid is not None:
        try:
            command = psutil.Process(pid)
            for process in (command, *command.children(recursive=True)):
                found.setdefault(process.pid, process)
        except psutil.Error:
            pass
    if since is not None:
        for process in _orphans():
            born = birth(process.pid)
            if born is not None and born >= since:
                found.setdefault(process.pid, process)
    return [process for process in found.values() if _runs(process)]


def _orphans() -> Iterator[psutil.Process]:
    """Where orphans of a command can be; others are among them, born earlier."""
    import psutil

    below = psutil.Process().children(recursive=True)
    if adopts_orphans():
        yield from below
    elif os.getpgrp() == os.getpid():
        ours = {os.getpid(), *(process.pid for process in below)}
        for process in psutil.process_iter():
            if process.pid not in ours and _group(process.pid) == os.getpgrp():
                yield process


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
