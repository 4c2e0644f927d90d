"""The memory of the registry's node, and the end of the session that takes too much of it (`core.starving`).

The less is left, the sooner it looks again. ``RAY_memory_usage_threshold`` moves the limit with Ray's own;
``RAY_memory_monitor_refresh_ms=0``, which switches Ray's monitor off, switches this one off, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from openclaw_ray.actors.raylets import own_raylet, raylet_of
from openclaw_ray.core.starving import Memory, choose, limit_of

__all__ = ["MemoryWatch", "memory_here"]

_THRESHOLD, _REFRESH = "RAY_memory_usage_threshold", "RAY_memory_monitor_refresh_ms"
_SOONEST, _LATEST = 0.1, 1.0
_FASTEST = 8 << 30
"""Bytes a second that a process may take at the very most."""
_CGROUP = Path("/sys/fs/cgroup")


class MemoryWatch:
    """For a thread of its own: `look`, then sleep as long as it says."""

    def __init__(self) -> None:
        self._threshold = float(os.environ.get(_THRESHOLD) or 0.95)
        self.on = os.environ.get(_REFRESH) != "0"
        self._why: dict[str, str] = {}

    def look(self, pids: Mapping[str, int]) -> float:
        """Look once; gives seconds until the next look.

        Args:
            pids: of the session processes of this node that run turns, by actor.
        """
        memory = memory_here()
        if memory is None:
            return _LATEST
        limit = limit_of(memory.total, self._threshold)
        if memory.used > limit and pids:
            chosen = choose(memory, limit, {actor: _size(pid) for actor, pid in pids.items()})
            if chosen is not None:
                self._end(*chosen, pids[chosen[0]])
                return _LATEST  # what it has is not free at once
        return min(_LATEST, max(_SOONEST, (limit - memory.used) / _FASTEST))

    def why(self, actor: str) -> str:
        """Why an actor was ended by this; empty if it was not. To be asked once."""
        return self._why.pop(actor, "")

    def _end(self, actor: str, why: str, pid: int) -> None:
        if raylet_of(pid) != own_raylet():  # not a worker of our own raylet
            return
        self._why[actor] = why
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def memory_here(cgroup: Path = _CGROUP) -> Memory | None:
    """The memory of this node, or of the container that it is; `None` where the system does not tell."""
    try:
        with open("/proc/meminfo", "rb") as file:
            table = {line.split(b":")[0]: int(line.split()[1]) * 1024 for line in file if b"kB" in line}
        total = table[b"MemTotal"]
        used = total - table[b"MemAvailable"]
    except (OSError, KeyError, ValueError, IndexError):
        return None
    with contextlib.suppress(OSError, ValueError):  # "max", or no container
        most = int((cgroup / "memory.max").read_text())
        if most < total:
            stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
            now = int((cgroup / "memory.current").read_text())
            return Memory(now - int(stat.get("inactive_file", 0)), most)
    return Memory(used, total)


def _size(pid: int) -> int:
    """Bytes of a process and all below it."""
    import psutil

    size = 0
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        for each in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                size += each.memory_info().rss
    return size
