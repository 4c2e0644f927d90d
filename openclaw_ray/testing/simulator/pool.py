"""The pool's process: it creates, owns and ends session processes, and holds large values (PROTOCOL.md 7.1, 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_ray.testing.simulator.network import Lost
from openclaw_ray.testing.simulator.process import Process

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["PoolProcess"]


class PoolProcess(Process):
    """One life of the pool."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.world, "pool")
        self.cluster = cluster
        self.owned: set[str] = set()
        self.values: dict[str, object] = {}

    def on_grow(self, actors: tuple[str, ...]) -> None:
        """Create session processes; each is there after a while."""
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        random = self.world.random.random
        for actor in actors:
            if actor in self.owned:
                continue
            if self.cluster.faults.active and random() < self.cluster.setup.failing_births:
                self.cluster.network.tell(
                    self, "registry", "main", RegistryProcess.on_growth_failed, actor, "scripted"
                )
                continue
            self.owned.add(actor)
            self.after(0.02 + 0.2 * random(), self._born, actor)

    def _born(self, actor: str) -> None:
        if actor in self.owned:
            self.cluster.session_born(actor)

    def on_owned(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which session processes it owns, and of which runs it holds values."""
        return tuple(sorted(self.owned)), tuple(self.values)

    def on_kill(self, actor: str, why: str) -> None:
        """End a session process at once."""
        self.owned.discard(actor)
        process = self.cluster.network.find(actor)
        if process is not None and process.killable:
            self.cluster.monitor.killed(actor, why)
            process.kill(f"killed by the pool: {why}")

    def notice(self, actor: str) -> None:
        """An actor that it owns has died: told to a registry that has not met it (PROTOCOL.md 7.1)."""
        if actor in self.owned:
            self.owned.discard(actor)
            self._lost(actor)

    def _lost(self, actor: str) -> None:
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        if self.cluster.registry is None:
            self.after(0.1, self._lost, actor)
            return
        self.cluster.network.tell(self, "registry", "main", RegistryProcess.on_growth_failed, actor, "its process died")

    def on_hold(self, run: str, actor: str) -> None:
        """Take a large value whose requester has no process."""
        from openclaw_ray.testing.simulator.session import SessionProcess

        def came(value: object) -> None:
            if value is Lost.UNAVAILABLE:
                self.after(0.1, self.on_hold, run, actor)
            elif not isinstance(value, Lost) and value is not None:
                self.values[run] = value
                self._say_held(run, actor)

        self.cluster.network.ask(self, actor, "control", came, SessionProcess.on_take, run)

    def _say_held(self, run: str, actor: str) -> None:
        """Said until a registry has heard it, as `openclaw_ray.actors.asking.Line` does."""
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        def heard(answer: object) -> None:
            if isinstance(answer, Lost):
                self.after(0.1, self._say_held, run, actor)

        self.cluster.network.ask(self, "registry", "main", heard, RegistryProcess.on_value_held, run, actor)

    def on_value(self, run: str) -> object:
        """A held value, `None` if it is not here."""
        return self.values.get(run)

    def on_drop(self, run: str) -> None:
        """Let go of a value."""
        self.values.pop(run, None)

    def gone(self) -> None:
        """All that it owns ends with it; it comes back by itself."""
        for actor in sorted(self.owned):
            process = self.cluster.network.find(actor)
            if process is not None:
                self.world.after(0.03 * self.world.random.random(), process.kill, "the pool died")
        self.cluster.pool_died()
