"""How long a runtime lives, and who holds its state dir meanwhile (DESIGN.md 5).

1. One that a process owns ends with it: Ray sees to that, and the process holds the state dir.
2. One that belongs to no process is held by its registry. It ends with its last client's lease, or, if it is a service,
   when it is taken down.
3. Once a second the registry of one that ends by itself sees whether any client lives. When none has for a whole lease,
   hub and pool are ended, with the pool its session processes, and then the registry ends itself. A client that comes
   before is in time. The first one has longer: whoever starts the runtime joins when its agents have been tried out.
"""

from __future__ import annotations

import contextlib
import time
from enum import StrEnum
from typing import TYPE_CHECKING

from openclaw_ray.actors.names import find_actor
from openclaw_ray.store.statelock import StateLock

if TYPE_CHECKING:
    from openclaw_ray.actors.settings import RegistrySettings

__all__ = ["PARTS", "LastLease", "Lifetime", "hold_state"]

_FIRST_CLIENT_SECONDS = 60.0
PARTS = ("pool", "hub", "registry")
"""The named actors of a runtime, in the order in which they are ended."""


class Lifetime(StrEnum):
    """When a runtime ends."""

    OWNER = "owner"
    """With the process that started it."""
    CLIENTS = "clients"
    """When it has had no client for the length of a lease."""
    SERVICE = "service"
    """When it is taken down."""


def hold_state(settings: RegistrySettings) -> StateLock | None:
    """Take the state dir of a runtime that belongs to no process.

    Raises:
        RuntimeInUse, StateDirError: another process has the state dir.
    """
    if settings.lifetime is Lifetime.OWNER:
        return None
    return StateLock(settings.state_dir, settings.runtime, _gcs_address()).acquire()


class LastLease:
    """Watches over the clients of a runtime that ends with the last of them."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._runtime = settings.runtime
        self._ends = settings.lifetime is Lifetime.CLIENTS
        self._lease = settings.limits.client_lease_seconds
        self._alive_at = time.monotonic() + _FIRST_CLIENT_SECONDS

    def look(self, alive: bool) -> None:
        """Told once a second whether any client lives (3)."""
        now = time.monotonic()
        if alive:
            self._alive_at = now
        elif self._ends and now - self._alive_at >= self._lease:
            self._end()

    def _end(self) -> None:
        import ray

        for part in PARTS:
            with contextlib.suppress(ValueError):
                ray.kill(find_actor(self._runtime, part))


def _gcs_address() -> str:
    import ray

    return str(ray.get_runtime_context().gcs_address)
