"""The registry's process: the pure registry over a journal, with the shell's duties around it (PROTOCOL.md 1, 7).

1. A handler is one transaction; its effects and its answer follow the commit. It may die in between.
2. A commit that fails makes memory useless: a new registry is made from the journal, as after a crash.
3. It stands on every session actor for the death notice, asks for reports, and ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from openclaw_ray.core.named_map import ClaimAnswer, ItemRow
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.cleanup import CleanupWord
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import (
    Answer,
    DieIf,
    DropValue,
    Effect,
    Exit,
    Grow,
    Hello,
    HoldValue,
    Kill,
    Notify,
    Report,
    ReportAsk,
    Start,
    Step,
    Stop,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.testing.simulator.hub_link import HubLink
from openclaw_ray.testing.simulator.network import Lost
from openclaw_ray.testing.simulator.process import Process

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["RegistryProcess"]

T = TypeVar("T")

_REPORT_WITHIN = 1.0
"""Seconds after which an actor that did not answer `report` is silent."""


class RegistryProcess(Process):
    """One life of the registry's process."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.world, "registry")
        self.cluster = cluster
        self.standing: set[str] = set()
        self._tick_at = float("inf")
        self.hub = HubLink(self)
        self.core = self._new()

    def begin(self) -> None:
        """Go to work; a separate step, as the first calls need this process to be found."""
        self._tick()
        self.hub.begin()
        if self.core.s.incarnation > 1:
            self.meet_pool()

    def meet_pool(self) -> None:
        """This registry or that pool is new: hear which actors it owns."""
        from openclaw_ray.testing.simulator.pool import PoolProcess

        def came(has: tuple[tuple[str, ...], tuple[str, ...]] | Lost) -> None:
            if isinstance(has, Lost):
                self.after(0.2, self.meet_pool)
            else:
                self.entry(lambda: self.core.pool_met(*has))

        self.cluster.network.ask(self, "pool", "main", came, PoolProcess.on_owned)

    # ------------------------------------------------------------------ the registry and its transactions

    def _new(self) -> Registry:
        """A new incarnation from the journal (2). Handles are found again by name."""
        setup = self.cluster.setup
        core = Registry(
            self.cluster.journal,
            setup.limits,
            self.world.clock,
            pool_max=setup.pool_max,
            cpus=setup.cpus,
        )
        for actor in core.s.actors.values():
            if actor.state != "growing":
                actor.handle = f"handle of {actor.id}"
        return core

    def _anew(self) -> None:
        try:
            self.core = self._new()
        except JournalFault:
            self.kill("its journal refuses")
            return
        self.cluster.monitor.rebuilt(self.core)
        self.standing.clear()
        self.hub.forget()
        for actor in list(self.core.s.actors.values()):
            if actor.state != "growing":
                self.stand(actor.id)
        self.after(0.0, self._tick)

    def _enter(self, entry: Callable[[], T]) -> T | None:
        """One transaction (1); `None` if its commit failed."""
        cluster = self.cluster
        cluster.transactions += 1
        try:
            result = entry()
        except JournalFault:
            self.world.note("commit failed: the registry is made anew")
            self._anew()
            return None
        cluster.monitor.transaction(self.core)
        return result

    def perform(self, effects: tuple[Effect, ...]) -> bool:
        """Do what was committed; False if the process died in the middle of it."""
        most = self.cluster.faults.dies_after_effects(self.cluster.transactions)
        for i, effect in enumerate(effects):
            if most is not None and i >= most:
                break
            self._do(effect)
        if most is not None:
            self.kill("between commit and answer")
            return False
        self._plan_tick()
        self.hub.nudge()
        self.cluster.faults.strike_at(self.cluster.transactions)
        return True

    # ------------------------------------------------------------------ calls

    def on_step(self, step: Step) -> Answer | Lost:
        """A courier's step."""
        done = self._enter(lambda: self.core.step(step))
        if done is None:
            return Answer(self.core.s.incarnation, step.seq, "unavailable", detail="commit failed")
        answer, effects = done
        if self.world.log is not None:
            self.world.note(f"  answer {answer}"[:700])
        if answer.word == "ok":
            for event in step.events:
                if isinstance(event, Hello):
                    self.stand(event.actor)
        if answer.start is not None:
            self.cluster.monitor.granted(step.client, *answer.start)
        if not self.perform(effects):
            return Lost.UNAVAILABLE
        return answer

    def on_claim_map(self, map_id: str, claim: str, client: str, receiver: str) -> ClaimAnswer | Lost:
        """A client claims the name of a map."""
        done = self._enter(lambda: self.core.claim_map(map_id, claim, client, receiver))
        if done is None or not self.perform(done[1]):
            return Lost.UNAVAILABLE
        return done[0]

    def on_map_page(self, map_id: str, page: int) -> list[ItemRow]:
        """A client asks what was done."""
        return self.core.maps.page(map_id, page)

    def on_session(self, key: str) -> tuple[str, int] | None:
        """A client looks at a session: its id and its revision."""
        session = find_session(self.core.s, key)
        return None if session is None else (session.session_id, session.number)

    def on_reset(self, key: str, session_id: str, revision: int, new_id: str) -> CleanupWord | Lost:
        """A client resets a session that it has stopped."""
        done = self._enter(lambda: self.core.reset(key, session_id, revision, new_id))
        if done is None or not self.perform(done[1]):
            return Lost.UNAVAILABLE
        return done[0]

    def on_unbind(self, key: str) -> None:
        """The operator drops what a session is bound to."""
        self.entry(lambda: self.core.unbind(key)[1])

    def on_growth_failed(self, actor: str, why: str) -> None:
        """The pool could not create an actor."""
        self.entry(lambda: self.core.growth_failed(actor, why))

    def on_value_held(self, run: str, actor: str) -> None:
        """The pool has a large value, from this actor."""
        self.entry(lambda: self.core.value_held(run, actor))

    def on_death(self, actor: str, detail: str) -> None:
        """The standing call on an actor has failed; the pool lets go of it, whatever ended it."""
        from openclaw_ray.testing.simulator.pool import PoolProcess

        self.standing.discard(actor)
        self.entry(lambda: self.core.died(actor, detail))
        self.cluster.network.tell(self, "pool", "main", PoolProcess.on_kill, actor, detail)

    def entry(self, entry: Callable[[], tuple[Effect, ...]]) -> None:
        """A transaction that nobody waits for."""
        effects = self._enter(entry)
        if effects is not None:
            self.perform(effects)

    # ------------------------------------------------------------------ time

    def _plan_tick(self) -> None:
        due = self.core.next_due()
        if due < self._tick_at - 1e-9:
            self._tick_at = due
            self.after(max(0.0, due - self.world.now), self._tick_due, due)

    def _tick_due(self, due: float) -> None:
        if due == self._tick_at:
            self._tick()

    def _tick(self) -> None:
        self._tick_at = float("inf")
        self.entry(self.core.tick)
        if self.alive:
            self._plan_tick()

    # ------------------------------------------------------------------ effects

    def _do(self, effect: Effect) -> None:
        from openclaw_ray.testing.simulator.pool import PoolProcess
        from openclaw_ray.testing.simulator.session import SessionProcess

        network = self.cluster.network
        match effect:
            case Start(actor, epoch, spec):
                self.cluster.monitor.granted(actor, epoch, spec)
                network.tell(self, actor, "turn", SessionProcess.on_start, epoch, spec)
            case Notify(actor, receiver, incarnation, messages):
                network.tell(
                    self, actor, "control", SessionProcess.on_notify, receiver, incarnation, messages
                )
            case Stop(actor, run, activation, reason, mark):
                network.tell(self, actor, "control", SessionProcess.on_stop, run, activation, reason, mark)
            case DieIf(actor, run):
                network.tell(self, actor, "control", SessionProcess.on_die_if, run)
            case Kill(actor, why):
                network.tell(self, "pool", "main", PoolProcess.on_kill, actor, why)
            case Exit(actor, why):
                network.tell(self, "pool", "main", PoolProcess.on_kill, actor, why)
            case Grow(actors, _):
                network.tell(self, "pool", "main", PoolProcess.on_grow, actors)
            case HoldValue(actor, run):
                network.tell(self, "pool", "main", PoolProcess.on_hold, run, actor)
            case DropValue(run):
                network.tell(self, "pool", "main", PoolProcess.on_drop, run)
            case ReportAsk(actor):
                self._ask_report(actor)

    def _ask_report(self, actor: str) -> None:
        from openclaw_ray.testing.simulator.session import SessionProcess

        core = self.core
        open_question = [True]

        def came(answer: Report | Lost) -> None:
            if not open_question or self.core is not core:
                return
            open_question.clear()
            if isinstance(answer, Report):
                self.entry(lambda: self.core.reported(answer))
            elif answer is Lost.DIED:
                self.entry(lambda: self.core.died(actor, "not there any more"))
            else:
                self.entry(lambda: self.core.silent(actor))

        self.cluster.network.ask(self, actor, "control", came, SessionProcess.on_report)
        self.after(_REPORT_WITHIN, came, Lost.UNAVAILABLE)

    def stand(self, actor: str) -> None:
        """The standing call on an actor (3); one that is dead already raises at once."""
        if actor in self.standing:
            return
        self.standing.add(actor)
        if self.cluster.network.find(actor) is None:
            self.after(self.cluster.notice_delay(), self.on_death, actor, "found dead")

    def notice(self, actor: str) -> None:
        """An actor that is stood on has died."""
        if actor in self.standing:
            self.after(self.cluster.notice_delay(), self.on_death, actor, "its process died")

    def on_hub_is_new(self, boot: int) -> None:
        """A new hub asks for all that is unacknowledged (PROTOCOL.md 7.4)."""
        self.hub.is_new(boot)

    # ------------------------------------------------------------------ death

    def gone(self) -> None:
        """It comes back by itself."""
        self.cluster.registry_died()
