"""Ending the processes of a command: those below it, and those that left its tree but not our group."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

__all__ = ["end_tree"]

_POLL = 0.02
_PATIENCE = 2.0


def end_tree(pid: int, *, grace: float = 0.5) -> int:
    """End the command ``pid`` and all below it: SIGTERM, after ``grace`` seconds SIGKILL until none is left.

    A process whose parent has exited is below no one; it is still found by its process group, if this process
    leads one of its own, as Ray's workers do. One that made a session or group of its own as well escapes.

    Returns:
        How many processes were found.
    """
    import psutil

    found: dict[int, psutil.Process] = {}
    kill_at = time.monotonic() + grace
    signals = [signal.SIGTERM, signal.SIGCONT]  # a suspended one would not see the first without the second
    while left := _living(pid, found):
        for process in left:
            try:
                for sign in signals:
                    process.send_signal(sign)
            except psutil.Error:
                continue  # gone, or it changed its user and is not ours to end
        now = time.monotonic()
        if now > kill_at + _PATIENCE:
            break  # stuck in the kernel
        psutil.wait_procs(left, timeout=max(_POLL, kill_at - now))
        signals = [signal.SIGKILL]
    return len(found)


def _living(pid: int, found: dict[int, psutil.Process]) -> list[psutil.Process]:
    """Note newcomers in ``found``; tell who of them still runs."""
    import psutil

    try:
        command = psutil.Process(pid)
        for process in (command, *command.children(recursive=True)):
            found.setdefault(process.pid, process)
    except psutil.Error:
        pass
    if os.getpgrp() == os.getpid():
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and os.getpgid(process.pid) == os.getpgrp():
                    found.setdefault(process.pid, process)
            except OSError:
                continue
    return [process for process in found.values() if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
