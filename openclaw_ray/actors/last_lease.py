"""A runtime that belongs to no process ends with its last client's lease (DESIGN.md 5).

1. Its registry holds the state dir: the process that started it may be gone at any time.
2. Once a second it sees whether any client lives. When none has for a whole lease, hub and pool are ended, with the
   pool its session processes, and then the registry ends itself. A client that comes before is in time.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from openclaw_ray.actors.names import find_actor
from openclaw_ray.store.statelock import StateLock

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistrySettings

__all__ = ["LastLease"]


class LastLease:
    """Taken by the registry of a detached runtime.

    Raises:
        RuntimeInUse, StateDirError: another process has the state dir.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._runtime = settings.runtime
        self._lease = settings.limits.client_lease_seconds
        self._lock = StateLock(settings.state_dir, settings.runtime, _gcs_address()).acquire()
        self._alive_at = time.monotonic()

    def look(self, alive: bool) -> None:
        """Told once a second whether any client lives (2)."""
        now = time.monotonic()
        if alive:
            self._alive_at = now
        elif now - self._alive_at >= self._lease:
            self._end()

    def _end(self) -> None:
        import ray

        for part in ("pool", "hub", "registry"):
            with contextlib.suppress(ValueError):
                ray.kill(find_actor(self._runtime, part))


def _gcs_address() -> str:
    import ray

    return str(ray.get_runtime_context().gcs_address)
