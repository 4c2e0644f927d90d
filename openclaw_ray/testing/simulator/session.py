"""A simulated session process: one activation at a time, control calls beside it (PROTOCOL.md 3.4, 4.2, 6, 7.7)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.messages import (
    Completed,
    DownMessage,
    Hello,
    Refused,
    Report,
    Settled,
    Spec,
    Verdict,
)
from openclaw_ray.core.results import Receipt
from openclaw_ray.testing.simulator.talker import Talker
from openclaw_ray.testing.simulator.turn import ScriptedTurn

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["SessionProcess"]


class SessionProcess(Talker):
    """One session actor."""

    def __init__(self, cluster: Cluster, actor: str) -> None:
        super().__init__(cluster, actor)
        self.activation = Activation(actor)
        self.turn: ScriptedTurn | None = None
        self._starts: deque[tuple[int, Spec]] = deque()
        self._begun: set[str] = set()
        self._early: dict[str, list[DownMessage]] = {}

    def hello(self) -> None:
        """Say that it is there."""
        self.post(Hello(self.name, "node", 1, f"handle of {self.name}"))

    # ------------------------------------------------------------------ group turn: one at a time

    def on_start(self, epoch: int, spec: Spec) -> None:
        """Run a turn, after the one that runs."""
        if self.turn is not None:
            self._starts.append((epoch, spec))
            return
        answer = self.activation.start(epoch, spec)
        if answer is StartAnswer.REPEAT:
            return
        if answer is not StartAnswer.RUN:
            self.post(Refused(spec.run, spec.activation, answer.value))
            return
        self._begun.add(spec.activation)
        self.cluster.monitor.turn_begins(self.name, epoch, spec)
        turn = self.turn = ScriptedTurn(self, epoch, spec)
        early = self._early.pop(spec.activation, [])
        turn.begin()
        for message in early:
            turn.hear(message)

    def turn_over(self, event: Settled) -> None:
        """The turn has ended: outcome into the outbox and on its way; the next start, if one waits."""
        self.cluster.monitor.turn_ends(event.activation)
        self.activation.settled(event)
        self.turn = None
        self.courier.close_receiver(event.activation)
        self.post(event)
        if self._starts:
            epoch, spec = self._starts.popleft()
            self.after(0.0, self.on_start, epoch, spec)

    # ------------------------------------------------------------------ group control

    def on_notify(
        self, receiver: str, incarnation: int, messages: tuple[tuple[int, DownMessage], ...]
    ) -> None:
        """Downlink messages. What is for a turn that has not begun here is not confirmed, and so comes again."""
        if receiver != self.name and (self.turn is None or self.turn.spec.activation != receiver):
            return
        for message in self.courier.down(receiver, incarnation, messages):
            self.message(receiver, message)
        self.pump()

    def on_deliver(self, activation: str, completed: Completed) -> None:
        """A child announces its end itself."""
        turn = self.turn
        if turn is not None and turn.spec.activation == activation:
            if self.courier.announced(completed.run):
                turn.family.ended(completed)
            self.pump()

    def on_stop(self, run: str, activation: str, reason: str, mark: int) -> None:
        """Cancel this activation, or never start it."""
        here = self.activation.stop(activation, reason, mark)
        if mark and activation not in self._begun:
            self.cluster.monitor.stopped_unseen(activation)
        turn = self.turn
        if here and turn is not None:
            turn.cancel(reason, mark)

    def on_die_if(self, run: str) -> None:
        """End if this run is still here."""
        if self.activation.dies_for(run):
            self.cluster.monitor.ended_by_force(self.name, run)
            self.kill("die_if")

    def on_report(self) -> Report:
        """What runs here and is still owed."""
        return self.activation.report()

    def on_take(self, run: str) -> object:
        """The large value of a run; `None` if it is not here."""
        return self.activation.held.get(run)

    # ------------------------------------------------------------------ from the courier

    def receipt(self, token: Any, receipt: Receipt) -> None:
        """To the family that asked."""
        family, child = token
        family.answered(child, receipt)

    def verdict(self, verdict: Verdict) -> None:
        """The registry's word: the outbox is emptied, a parent with a running turn is told."""
        if verdict.run.startswith("stop"):
            if self.turn is not None:
                self.turn.family.verdict(verdict)
            return
        if self.turn is not None and self.turn.steer_verdict(verdict):
            return
        self.activation.verdict(verdict.run)
        to = verdict.deliver
        if to is not None:
            holder = self.name if to.held else ""
            completed = Completed(verdict.run, to.completion, to.value, to.held, holder)
            self.cluster.network.tell(
                self, to.actor, "control", SessionProcess.on_deliver, to.activation, completed
            )

    def message(self, receiver: str, message: DownMessage) -> None:
        """A downlink message for the turn; what came with an answer before its turn began waits for it."""
        turn = self.turn
        if turn is not None and receiver in (turn.spec.activation, self.name):
            turn.hear(message)
        elif receiver not in self._begun:
            self._early.setdefault(receiver, []).append(message)

    def granted(self, epoch: int, spec: Spec) -> None:
        """A start that came with an answer."""
        self.on_start(epoch, spec)

    def stale(self) -> None:
        """End."""
        self.kill("told that it is stale")

    def gone(self) -> None:
        """Its death: seen by the monitor, by the pool, and later by the registry."""
        if self.turn is not None:
            self.turn.close()
            self.cluster.monitor.turn_ends(self.turn.spec.activation)
        self.cluster.session_died(self)
