"""A process of the runtime ends with the raylet that started it, and takes its tools' processes along.

Ray's own look after its raylet comes every second or so and ends the worker alone. When a driver with an embedded Ray
is killed, its raylet goes with it at once, and nobody is left to sweep the groups of the workers: what tools have
started would stay for ever. So each process waits for its raylet's end by a pidfd, in a thread that costs nothing
meanwhile.

It also ends at a SIGTERM, at once. Ray would have it finish its calls first, of which some never end: neither alive nor
dead, with a run that waits for ever.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading

from openclaw_ray.actors.raylets import is_raylet, own_raylet
from openclaw_ray.agents.descendants import kill_descendants

__all__ = ["end_with_raylet"]


def end_with_raylet() -> bool:
    """Have this process end with its raylet; False where the system has no pidfd (Ray's own look remains)."""
    _end_at_sigterm()
    raylet = own_raylet()
    try:
        fd = os.pidfd_open(raylet)
    except (AttributeError, OSError):
        return False
    threading.Thread(target=_wait, args=(raylet, fd), name="openclaw-raylet", daemon=True).start()
    return True


def _end_at_sigterm() -> None:
    # `signal.signal` works on the main thread alone, which is Ray's
    ctypes.pythonapi.PyOS_setsig.restype = ctypes.c_void_p
    ctypes.pythonapi.PyOS_setsig.argtypes = (ctypes.c_int, ctypes.c_void_p)
    ctypes.pythonapi.PyOS_setsig(signal.SIGTERM, None)  # SIG_DFL


def _wait(raylet: int, fd: int) -> None:
    if is_raylet(raylet):  # else it ended while we looked
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll()
    kill_descendants()
    os._exit(1)
