"""Which raylet a process of this host belongs to.

A worker is a child of its raylet, or of the parent of workers that an embedded Ray has (`openclaw_ray.forking`), whose
name says which raylet it serves. Process ids of other nodes mostly belong to no raylet here.
"""

from __future__ import annotations

import os

__all__ = ["is_raylet", "name_of_parent", "own_raylet", "raylet_of"]

_RAYLET = b"raylet"
_PARENT = b"forks:"


def own_raylet() -> int:
    """Process id of the raylet that this process is a worker of."""
    return int(os.environ.get("RAY_RAYLET_PID") or os.getppid())


def is_raylet(pid: int) -> bool:
    """Whether this process of this host lives and is a raylet."""
    return _stat(pid)[0] == _RAYLET


def raylet_of(pid: int) -> int:
    """Process id of the raylet that a process of this host is a worker of; 0 if it is none, or gone."""
    parent = _stat(pid)[1]
    if not parent:
        return 0
    name = _stat(parent)[0]
    if name == _RAYLET:
        return parent
    return int(name.removeprefix(_PARENT)) if name.startswith(_PARENT) else 0


def name_of_parent(raylet: int) -> bytes:
    """What the parent of a raylet's workers is to call itself: at most 15 bytes, as the system has it."""
    return _PARENT + str(raylet).encode()


def _stat(pid: int) -> tuple[bytes, int]:
    """Name and parent of a process; empty and 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            before, _, after = stat.read().rpartition(b")")
        return before.partition(b"(")[2], int(after.split()[1])
    except (OSError, ValueError, IndexError):
        return b"", 0
