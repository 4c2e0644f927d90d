"""Taking names out of a process's environment, and their values out of what the system shows of it.

A credential store may refer to the environment; the registry's process reads it there. Ray gives every worker the
environment of the node, so a session process takes such names out before anything of an agent's runs in it: neither
``os.environ``, nor what it starts, nor ``/proc/<pid>/environ`` has them then. Which names those are is found out when
the runtime starts: one that a store refers to from later on is taken out from the next start on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["hide_env"]


def hide_env(names: Iterable[str]) -> None:
    """Take these names out of this process's environment."""
    there = [name for name in names if name in os.environ]
    if not there:
        return
    import ctypes  # only who needs it pays for it

    value_of = ctypes.CDLL(None).getenv
    value_of.restype, value_of.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    for name in there:
        at, size = value_of(os.fsencode(name)), len(os.fsencode(os.environ[name]))
        if at:
            ctypes.memset(at, 0, size)
        del os.environ[name]
    _wipe_first(there)


def _wipe_first(names: Iterable[str]) -> None:
    """What the process was started with lies where the kernel has put it, whatever has become of ``environ``."""
    import ctypes

    try:
        with open("/proc/self/environ", "rb") as file:
            block = file.read()
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[47])
    except (OSError, IndexError, ValueError):
        return  # no such system: there is nothing that shows it either
    for name in names:
        wanted, at = os.fsencode(name) + b"=", 0
        for entry in block.split(b"\0"):
            if start and entry.startswith(wanted):
                ctypes.memset(start + at + len(wanted), 0, len(entry) - len(wanted))
            at += len(entry) + 1
