"""All processes of one schedule, and what ties them together: births, deaths, and what survives them."""

from __future__ import annotations

from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.testing.simulator.client import ClientProcess
from openclaw_ray.testing.simulator.faults import Faults
from openclaw_ray.testing.simulator.hub import HubProcess, Transcripts
from openclaw_ray.testing.simulator.journal import WatchedJournal
from openclaw_ray.testing.simulator.monitor import Monitor
from openclaw_ray.testing.simulator.network import Network
from openclaw_ray.testing.simulator.pool import PoolProcess
from openclaw_ray.testing.simulator.registry import RegistryProcess
from openclaw_ray.testing.simulator.session import SessionProcess
from openclaw_ray.testing.simulator.setup import BUNDLES, Schedule
from openclaw_ray.testing.simulator.world import World

__all__ = ["Cluster"]


class Cluster:
    """One runtime in virtual time.

    Attributes:
        looks: share of transactions after which everything is counted anew.
    """

    def __init__(self, schedule: Schedule, *, trace: bool = False, looks: float = 0.01) -> None:
        self.schedule = schedule
        self.setup = schedule.setup
        self.program = schedule.program
        self.world = World(schedule.seed, trace=trace)
        self.network = Network(self.world, self.setup.habits, schedule.fresh_meddling())
        self.looks = looks
        self.transactions = 0
        self.pool_deaths = 0
        self.boots = 0
        self.monitor = Monitor(self)
        self.faults = Faults(self, schedule.faults)
        self.journal = WatchedJournal(self)
        self.transcripts = Transcripts()
        self.clients: list[ClientProcess] = []
        self._first()

    def _first(self) -> None:
        self._pool()
        self._hub()
        registry = RegistryProcess(self)
        self.network.processes["registry"] = registry
        core = registry.core
        for bundle, entries in BUNDLES.items():
            core.register(entries, bundle, b"code")
        registry.begin()
        registry.entry(lambda: registry.core.prewarm(self.setup.prewarm))
        for number, operations in enumerate(self.program.clients):
            client = ClientProcess(self, number, operations)
            self.clients.append(client)
            self.network.processes[client.name] = client

    # ------------------------------------------------------------------ named processes

    @property
    def registry(self) -> RegistryProcess | None:
        """The live registry process."""
        found = self.network.find("registry")
        return found if isinstance(found, RegistryProcess) else None

    @property
    def core(self) -> Registry | None:
        """The live registry."""
        registry = self.registry
        return registry.core if registry is not None else None

    def _pool(self) -> None:
        self.network.processes["pool"] = PoolProcess(self)
        if self.registry is not None:
            self.registry.meet_pool()

    def _hub(self) -> None:
        self.boots += 1
        hub = HubProcess(self)
        self.network.processes["hub"] = hub
        hub.begin()

    def _registry(self) -> None:
        try:
            registry = RegistryProcess(self)
        except JournalFault:
            self.registry_died()
            return
        self.network.processes["registry"] = registry
        self.monitor.rebuilt(registry.core)
        registry.begin()
        for actor in list(registry.core.s.actors.values()):
            if actor.state != "growing":
                registry.stand(actor.id)

    def said_bye(self, client: str) -> bool:
        """Whether a client leaves in order, and was not given up."""
        return any(c.name == client and c.alive and c.said_bye and not c.was_silent for c in self.clients)

    def registry_died(self) -> None:
        """It is back after a while."""
        self.world.after(self._down(), self._registry)

    def hub_died(self) -> None:
        """It is back after a while."""
        self.world.after(self._down(), self._hub)

    def pool_died(self) -> None:
        """It is back after a while, empty."""
        self.pool_deaths += 1
        self.world.after(self._down() + 1.0, self._pool)

    def _down(self) -> float:
        return 0.2 + 1.4 * self.world.random.random()

    # ------------------------------------------------------------------ session processes

    def session_born(self, actor: str) -> None:
        """A session process is there."""
        process = SessionProcess(self, actor)
        self.network.processes[actor] = process
        self.world.note(f"{actor} is born")
        process.hello()

    def session_died(self, process: SessionProcess) -> None:
        """A session process has died: the registry hears of it."""
        registry = self.registry
        if registry is not None:
            registry.notice(process.name)
        pool = self.network.find("pool")
        if isinstance(pool, PoolProcess):
            pool.after(self.notice_delay(), pool.notice, process.name)

    def notice_delay(self) -> float:
        """Seconds from a death to its notice."""
        return 0.006 + self.setup.notice * self.world.random.random()
