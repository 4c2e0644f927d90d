"""Making things go wrong when a schedule says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_ray.testing.simulator.process import Process
from openclaw_ray.testing.simulator.setup import Fault, FaultKind

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["Faults"]

_CALM_AFTER = 3.0
"""Seconds after the last fault from which the network is calm, too."""


class Faults:
    """The faults of one schedule.

    Attributes:
        active: False once all of them lie behind.
        struck: how many had an effect.
    """

    def __init__(self, cluster: Cluster, faults: tuple[Fault, ...]) -> None:
        self.cluster = cluster
        self.active = True
        self.struck = 0
        self._between = {f.nth: f.target for f in faults if f.kind is FaultKind.BETWEEN}
        self._commits = {f.nth for f in faults if f.kind is FaultKind.COMMIT}
        others = [f for f in faults if f.kind not in (FaultKind.BETWEEN, FaultKind.COMMIT)]
        timed = [f for f in others if f.at >= 0.0]
        for fault in timed:
            cluster.world.at(fault.at, self._strike, fault)
        self._counted = {f.nth: f for f in others if f.at < 0.0}
        self.last = max((f.at + f.lasts for f in timed), default=0.0)
        cluster.world.at(self.last + _CALM_AFTER, self._over)

    def _over(self) -> None:
        self.active = False
        self._between.clear()
        self._commits.clear()
        self._counted.clear()
        self.cluster.network.calm()
        self.cluster.world.note("no more faults")

    # ------------------------------------------------------------------ counted

    def commit_fails(self, transaction: int) -> bool:
        """Whether the commit of this transaction is to fail."""
        if transaction in self._commits:
            self._commits.discard(transaction)
            self.struck += 1
            return True
        return False

    def dies_after_effects(self, transaction: int) -> int | None:
        """After how many effects of this transaction the registry dies, `None` if it does not."""
        found = self._between.pop(transaction, None)
        if found is not None:
            self.struck += 1
        return found

    def strike_at(self, transaction: int) -> None:
        """What goes wrong with this transaction, once its effects are on their way."""
        fault = self._counted.pop(transaction, None)
        if fault is not None:
            self._strike(fault)

    # ------------------------------------------------------------------ timed

    def _strike(self, fault: Fault) -> None:
        network = self.cluster.network
        match fault.kind:
            case FaultKind.REGISTRY | FaultKind.HUB | FaultKind.POOL:
                process = network.find(fault.kind.value)
                if process is not None:
                    self.struck += 1
                    process.kill("fault")
            case FaultKind.STALL:
                process = network.find("registry")
                if process is not None:
                    self.struck += 1
                    process.pause(fault.lasts)
            case FaultKind.SESSION | FaultKind.SILENCE:
                self._strike_one(fault, "session-", silence=fault.kind is FaultKind.SILENCE)
            case FaultKind.CUT_OFF:
                self._cut_off(fault)
            case FaultKind.CLIENT | FaultKind.CLIENT_SILENCE:
                self._strike_one(fault, "client-", silence=fault.kind is FaultKind.CLIENT_SILENCE)

    def _cut_off(self, fault: Fault) -> None:
        """A process that is taken for dead speaks on for a while: the fences must hold."""
        registry = self.cluster.registry
        live = [
            p for name, p in self.cluster.network.processes.items() if p.alive and name.startswith("session-")
        ]
        if not live or registry is None:
            return
        process = live[fault.target % len(live)]
        self.struck += 1
        process.killable = False
        self.cluster.world.note(f"{process.name} is declared dead")
        registry.receive(registry.on_death, process.name, "declared dead")
        self.cluster.world.after(fault.lasts, self._found, process)

    def _found(self, process: Process) -> None:
        process.killable = True
        process.kill("it was declared dead")

    def _strike_one(self, fault: Fault, prefix: str, *, silence: bool) -> None:
        live = [p for name, p in self.cluster.network.processes.items() if p.alive and name.startswith(prefix)]
        if not live:
            return
        process = live[fault.target % len(live)]
        self.struck += 1
        if silence:
            process.pause(fault.lasts)
        else:
            process.kill("fault")
