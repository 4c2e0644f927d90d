"""The cluster as the registry sees it: nodes that come and go, and what an autoscaler is asked for (DESIGN.md 9).

1. CPUs and the ceiling of actors follow the nodes. A ceiling that is set stays; one that is what memory allows grows by
   the room of nodes that came, and is never less than at the start.
2. When more sessions are at work, or wait for nothing but a process, than the cluster could hold at the start, Ray's
   autoscaler is asked for CPUs in proportion (`cpus_wanted`), and for none any more as soon as they are fewer. Sessions
   whose agents ask for resources are no part of that: Ray itself sees each of them wait.
3. Ray keeps one such request for all of a cluster, the newest. It is made only while there is something to ask for, and
   taken back only if it was made: by this when less is wanted, by a registry that is started again and cannot know what
   the one before has asked for, and by who closes a runtime in the middle of it. Without an autoscaler nobody reads it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ray.exceptions import RayError

from openclaw_ray.actors.placing import live_nodes
from openclaw_ray.core.placement import Node, cpus_wanted, room_of

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistryActor

__all__ = ["ClusterWatch", "ask_autoscaler"]

_LOOK_EVERY = 1.0
_MOST_ASKED = 10_000


class ClusterWatch:
    """For a thread of its own: `run`. ``asked``: CPUs that are asked for, 0 for none, -1 if that is not known."""

    def __init__(self, registry: RegistryActor, *, again: bool) -> None:
        self.registry = registry
        self.asked = -1 if again else 0

    def run(self) -> None:
        """Look, for ever."""
        while True:
            time.sleep(_LOOK_EVERY)
            try:
                nodes = live_nodes()
                self._tell(nodes)
                self._ask(self._wanted(nodes))
            except RayError:
                continue  # the head is busy, or ending

    def _tell(self, nodes: list[Node]) -> None:
        """Have the core know of the nodes (1)."""
        settings, core = self.registry.settings, self.registry.core
        cpus, ceiling = _cpus(nodes), settings.pool_max
        if core.s.limits.pool_max is None:
            ceiling += max(0, _room(nodes) - settings.room)
        if nodes and (core.s.cpus, core.s.pool_max) != (cpus, ceiling):
            self.registry.enter(lambda core: core.cluster_is(cpus, ceiling))

    def _wanted(self, nodes: list[Node]) -> int:
        """CPUs that the cluster is to have (2)."""
        settings, core = self.registry.settings, self.registry.core
        most = core.s.limits.pool_max
        base = settings.pool_max if most is None else settings.room
        with self.registry.lock:
            if core.s.bound + len(core.s.queue) <= base:
                return 0
            sessions = core.birth.wanted()
        sessions = sessions if most is None else min(sessions, most)
        now = base + max(0, _room(nodes) - settings.room)
        return min(_MOST_ASKED, cpus_wanted(sessions, base, now, _cpus(nodes)))

    def _ask(self, cpus: int) -> None:
        """Ask for it, if that is news (3)."""
        if cpus != self.asked:
            ask_autoscaler(cpus)
            self.asked = cpus


def ask_autoscaler(cpus: int) -> None:
    """Have Ray's autoscaler bring the cluster to so many CPUs; 0 takes that back."""
    from ray.autoscaler.sdk import request_resources

    request_resources(num_cpus=cpus)


def _cpus(nodes: list[Node]) -> int:
    return max(1, int(sum(node.total.get("CPU", 0.0) for node in nodes)))


def _room(nodes: list[Node]) -> int:
    return room_of(node.room for node in nodes)
