"""The registry's line to the pool: calls that are repeated until answered, and a notice when the pool is a new one.

1. Every call to the pool may be made twice (`grow` and `kill` go by actor id, `hold` and `drop` by run), so one whose
   answer does not come is made again: a growth that is lost with a pool would keep its runs waiting.
2. A standing call falls when the pool dies. Of each pool, old or new, it is asked what it owns: what it owns and the
   registry does not know is ended, what was to grow and is not there is asked for again (`Crew.pool_met`).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayActorError, RayError

from openclaw_ray.actors.names import find_actor

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistryActor

__all__ = ["PoolLine"]

_AGAIN_AFTER = 0.1
_ANSWER_WITHIN = 10.0


class PoolLine:
    """All that a registry process says to the pool."""

    def __init__(self, registry: RegistryActor) -> None:
        self.registry = registry
        self._pool: Any = None

    def call(self, method: str, *args: Any) -> None:
        """Have the pool do it, sooner or later (1); never waits."""
        try:
            if self._pool is None:
                self._pool = find_actor(self.registry.settings.runtime, "pool")
            answer = getattr(self._pool, method).remote(*args)
        except (RayError, ValueError):
            self._pool = None
            self._later(method, *args)
            return

        def came(answered: Any) -> None:
            if isinstance(answered.exception(), RayActorError):
                self._later(method, *args)

        answer.future().add_done_callback(came)

    def _later(self, method: str, *args: Any) -> None:
        again = threading.Timer(_AGAIN_AFTER, self.call, (method, *args))
        again.daemon = True
        again.start()

    def stand(self) -> None:
        """Meet each pool, and wait for its end (2); for a thread of its own, for ever."""
        while True:
            try:
                pool = find_actor(self.registry.settings.runtime, "pool")
                owned = tuple(ray.get(pool.owned.remote(), timeout=_ANSWER_WITHIN))
                if self.registry.enter(lambda core, ids=owned: core.pool_met(ids)):  # type: ignore[misc]
                    ray.get(pool.stand.remote())
            except (RayError, ValueError):
                pass  # it has died, or is being started again
            time.sleep(_AGAIN_AFTER)
