"""The registry's line to the pool: calls that are repeated until answered, and a notice when the pool is a new one.

1. Every call to the pool may be made twice (`grow` and `kill` go by actor id, `hold` and `drop` by run), so one whose
   answer does not come is made again: a growth that is lost with a pool would keep its runs waiting.
2. A standing call falls when the pool dies. Of each pool, old or new, it is asked what it owns: what it owns and the
   registry does not know is ended, what was to grow and is not there is asked for again (`Crew.pool_met`).
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import ray
from ray.exceptions import RayError

from openclaw_ray.actors.asking import AGAIN_AFTER, Line
from openclaw_ray.actors.exit_watch import is_gone
from openclaw_ray.actors.names import find_actor

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistryActor

__all__ = ["PoolLine"]

_ANSWER_WITHIN = 10.0


class PoolLine(Line):
    """All that a registry process says to the pool (1)."""

    def __init__(self, registry: RegistryActor) -> None:
        super().__init__(registry.settings.runtime, "pool")
        self.registry = registry
        self._pid = 0

    @property
    def gone(self) -> bool:
        """True from the death of the pool, which is on this host, until the next one was met."""
        return bool(self._pid) and is_gone(self._pid)

    def stand(self) -> None:
        """Meet each pool, and wait for its end (2); for a thread of its own, for ever."""
        while True:
            with contextlib.suppress(RayError, ValueError):  # it has died, or is being started again
                pool = find_actor(self.registry.settings.runtime, "pool")
                asked = [pool.owned.remote(), pool.holds.remote(), pool.ping.remote()]
                owned, values, alive = ray.get(asked, timeout=_ANSWER_WITHIN)
                self._pid = alive["pid"]
                if self.registry.enter(lambda core, o=owned, v=values: core.pool_met(o, v)):  # type: ignore[misc]
                    ray.get(pool.stand.remote())
            time.sleep(AGAIN_AFTER)
