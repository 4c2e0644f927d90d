"""Clients that are Ray workers of the registry's own node: their end is seen as it happens, not by their lease.

The processes of tasks and actors belong to their node's raylet, and so does the registry's. On one host, a process id
that belongs to the registry's own raylet means the same process to both, and that it lives; when it does so no more, it
has ended. Another host may well have a process of the same number: its clients are not looked at.
Drivers, and the workers of other nodes, are known by their lease alone (PROTOCOL.md 2.5).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

from openclaw_ray.actors.raylets import own_raylet, raylet_of

__all__ = ["Neighbours"]


class Neighbours:
    """The clients that have been seen alive beside this process."""

    def __init__(self) -> None:
        self._alive: set[str] = set()
        self._before: set[str] = set()

    def met(self, client: str, host: str, pid: int) -> None:
        """A client has just joined: it may end before the first look."""
        if host == socket.gethostname() and raylet_of(pid) == own_raylet():
            self._alive.add(client)

    def ended(self, clients: Iterable[tuple[str, str, int]]) -> set[str]:
        """Which of ``clients``, each with its host and process id, were seen alive and are so no more; told once."""
        now, ended = set(), set()
        for client, host, pid in clients:
            now.add(client)
            was_alive = client in self._alive
            self._alive.discard(client)
            self.met(client, host, pid)
            if was_alive and client not in self._alive:
                ended.add(client)
        self._alive -= self._before - now  # those have left by themselves
        self._before = now
        return ended
