"""Clients that are Ray workers of the registry's own node: their end is seen as it happens, not by their lease.

The processes of tasks and actors are children of their node's raylet, and so is the registry's. On one host, a process
id whose parent is the registry's own parent means the same process to both, and that it lives; when it does so no more,
it has ended. Another host may well have a process of the same number: its clients are not looked at.
Drivers, and the workers of other nodes, are known by their lease alone (PROTOCOL.md 2.5).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from openclaw_ray.actors.exit_watch import parent_of

__all__ = ["Neighbours"]


class Neighbours:
    """The clients that have been seen alive beside this process."""

    def __init__(self) -> None:
        self._alive: set[str] = set()

    def ended(self, clients: Iterable[tuple[str, str, int]]) -> set[str]:
        """Which of ``clients``, each with its host and process id, were seen alive and are so no more; told once."""
        here, raylet = socket.gethostname(), os.getppid()
        alive, ended = set(), set()
        for client, host, pid in clients:
            if host == here and parent_of(pid) == raylet:
                alive.add(client)
            elif client in self._alive:
                ended.add(client)
        self._alive = alive
        return ended
