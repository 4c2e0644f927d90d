"""The children of one turn or one client: what was asked for, what came back, what was given to the program.

It follows the contract of the runtime's requester: a completion comes by any way and more than once, and counts once; a
large value is taken before the program hears of the end; a stop goes down the handles once its mark's number is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openclaw_ray.core.mapping import Ticket
from openclaw_ray.core.message import MessageMode, SendAsk
from openclaw_ray.core.named_map import MapItem
from openclaw_ray.core.protocol.messages import (
    BINDING,
    Admit,
    Admitted,
    Bound,
    Completed,
    Consumed,
    DownMessage,
    Replied,
    SendOver,
    StopAsk,
    Stopped,
    Took,
    Verdict,
)
from openclaw_ray.core.results import Receipt, StopReport
from openclaw_ray.core.sent import Sent
from openclaw_ray.core.session_facts import ChildAsk
from openclaw_ray.testing.simulator.network import Lost
from openclaw_ray.testing.simulator.talker import Talker

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.script import Script

__all__ = ["Child", "Family", "Sending"]


@dataclass(slots=True)
class Child:
    """One run that was asked for."""

    run: str
    order: int
    ticket: Ticket | None = None
    receipt: Receipt | None = None
    end: Completed | None = None
    taking: bool = False
    value: object = None
    handed: bool = False
    bound: Bound | None = None

    @property
    def accepted(self) -> bool:
        """True once it is known to be admitted."""
        return self.receipt is not None and self.receipt.accepted


@dataclass(slots=True)
class Sending:
    """One message that was sent: its run, and the reply if it came while it was waited for."""

    run: str
    order: int
    ask: SendAsk
    receipt: Receipt | None = None
    reply: Sent | None = None
    over: bool = False


@dataclass(slots=True)
class _StopAsked:
    order: int
    run: str
    key: str
    report: StopReport | None = None
    refused: bool = False


class Family:
    """Children of ``script`` under the session ``key``."""

    def __init__(self, host: Talker, script: Script, key: str, receiver: str, activation: str) -> None:
        self.host = host
        self.script = script
        self.key = key
        self.receiver = receiver
        self.activation = activation
        self.children: dict[str, Child] = {}
        self.asked: list[Child] = []
        self.stops: dict[str, _StopAsked] = {}
        self._order = 0
        self._steers: dict[str, Child] = {}
        self.sends: dict[str, Sending] = {}

    # ------------------------------------------------------------------ birth

    def spawn(
        self,
        plan: int,
        *,
        route: str = "spawn",
        timeout: float | None = None,
        expects: bool = True,
        lane: str = "",
        lane_width: int = 0,
        ticket: Ticket | None = None,
        item: MapItem | None = None,
        key: str = "",
        agent: str = "",
        thread: str = "",
    ) -> Child:
        """Ask for a child; the caller pumps the courier when it has asked for all."""
        world = self.host.world
        agent = agent or self.host.cluster.program.plans[plan].agent
        self._order += 1
        child = Child(world.mint("r"), self._order, ticket)
        self.children[child.run] = child
        self.asked.append(child)
        self.host.admit(
            Admit(
                child.run,
                key or f"agent:{agent}:subagent:{world.mint('k')}",
                world.mint("s"),
                route,
                self.key,
                str(plan),
                self.activation,
                agent,
                timeout=timeout,
                expects=expects,
                lane=lane,
                lane_width=lane_width,
                index=ticket.index if ticket is not None else None,
                item=item,
                ask=ChildAsk(thread=True, mode=thread) if thread else None,
                cleanup="keep" if route == "ask" else self.host.cluster.program.plans[plan].cleanup,
            ),
            (self, child),
        )
        return child

    def answered(self, child: Child | Sending, receipt: Receipt) -> None:
        """The receipt of a child, or of a message."""
        if isinstance(child, Sending):
            self._send_answered(child, receipt)
            return
        if receipt.status == BINDING:
            return  # `Admitted` says what became of it
        child.receipt = receipt
        if not receipt.told:
            self.host.cluster.monitor.answered(child.run, receipt)
        steered = self._steers.pop(child.run, None)
        if steered is not None and receipt.accepted:
            self.children.setdefault(child.run, steered)
        for stop, asked in self.stops.items():
            if receipt.accepted and asked.key == self.key and child.order <= asked.order:
                self.host.cluster.monitor.asked_before(stop, child.run)
        self.script.receipt(child)

    def send(self, plan: int, ask: SendAsk) -> Sending:
        """Ask for a message; the caller pumps the courier."""
        self._order += 1
        send = Sending(self.host.world.mint("r"), self._order, ask)
        self.sends[send.run] = send
        new = self.host.world.mint("s")
        admit = Admit(send.run, "", new, "send", self.key, str(plan), self.activation, expects=False, send=ask)
        self.host.admit(admit, (self, send))
        return send

    def _send_answered(self, send: Sending, receipt: Receipt) -> None:
        send.receipt = receipt
        if receipt.accepted and not receipt.told and send.ask.mode != MessageMode.NOTIFY:
            self.host.cluster.monitor.answered(send.run, receipt)
            self.host.cluster.monitor.talks.accepted(send.run, self.key, steers=send.ask.mode == MessageMode.STEER)
        self.script.poke()

    def leave(self, send: Sending) -> None:
        """The reply is waited for no longer; with it, the program has it now."""
        send.over = True
        if send.reply is not None:
            self.host.cluster.monitor.talks.replied(self.receiver, send.run, send.reply)
        self.host.post(SendOver(self.receiver, send.run, send.reply is not None))

    def steer(self, old: Child, plan: int) -> Child:
        """Ask that a child go on with another plan; the caller pumps the courier."""
        self._order += 1
        new = Child(self.host.world.mint("r"), self._order)
        self._steers[new.run] = old
        admit = Admit(new.run, "", "", "steer", self.key, str(plan), self.activation, steers=old.run)
        self.host.admit(admit, (self, new))
        return new

    # ------------------------------------------------------------------ ends

    def hear(self, message: DownMessage) -> None:
        """A downlink message for this family."""
        match message:
            case Admitted():
                child = self.children.get(message.run)
                if child is not None and child.receipt is None:
                    self.answered(child, message.receipt)
            case Completed():
                self.ended(message)
            case Bound():
                child = self.children.get(message.run)
                if child is not None and child.end is None:
                    child.bound = message
            case Replied():
                send = self.sends.get(message.send)
                if send is not None and not send.over and send.reply is None:
                    send.reply = message.sent
                    self.script.poke()
            case Stopped():
                stop = self.stops.get(message.stop)
                if stop is not None and stop.report is None:
                    stop.report = message.report
                    self.host.cluster.monitor.stop_reported(message.stop, message.report)
                    self.script.poke()

    def ended(self, completed: Completed) -> None:
        """A completion came; each comes here once, whatever the ways it takes."""
        self.host.cluster.monitor.heard(self.receiver, completed.run)
        names = (completed.run, *completed.completion.replaces)
        child = next((self.children[run] for run in names if run in self.children), None)
        if child is None:
            child = Child(completed.run, 0)
        self.children[completed.run] = child
        if completed.held and completed.actor:
            child.taking = True
            self._take(child, completed)
        else:
            self._arrived(child, completed)

    def _take(self, child: Child, completed: Completed) -> None:
        from openclaw_ray.testing.simulator.pool import PoolProcess
        from openclaw_ray.testing.simulator.session import SessionProcess

        network = self.host.cluster.network
        where = [completed.actor]

        def ask() -> None:
            if where[0] == "pool":
                network.ask(self.host, "pool", "main", came, PoolProcess.on_value, completed.run)
            else:
                network.ask(self.host, where[0], "control", came, SessionProcess.on_take, completed.run)

        def came(value: object) -> None:
            if value is Lost.UNAVAILABLE:
                self.host.after(0.1, ask)
            elif (value is None or value is Lost.DIED) and where[0] != "pool":
                where[0] = "pool"  # it may have been parked there meanwhile
                ask()
            else:
                excused = self.script.over or completed.completion.fallback or self.host.was_silent
                if value is None and not excused:
                    self.host.cluster.monitor.value_lost(completed.run, completed.actor)
                child.value = value
                self.host.post(Took(completed.run))
                self._arrived(child, completed)

        ask()

    def _arrived(self, child: Child, completed: Completed) -> None:
        child.taking = False
        child.end = completed
        self.script.ended(child)

    def hand(self, children: list[Child], *, tell: bool = True) -> None:
        """These ends are given to the program now."""
        runs = []
        for child in children:
            if child.end is not None and not child.handed:
                child.handed = True
                runs.append(child.end.run)
                self.host.cluster.monitor.handed(self.receiver, child.end)
        if runs and tell:
            self.host.post(Consumed(self.receiver, tuple(runs)))

    def untold(self) -> dict[str, object]:
        """Large values that were taken and that no program was given, by run."""
        kept = [c for c in self.children.values() if c.value is not None and not c.handed]
        return {c.run if c.end is None else c.end.run: c.value for c in kept}

    # ------------------------------------------------------------------ stop

    def stop(self, *, run: str = "", key: str = "", by: str = "", scope: str = "tree") -> str:
        """Ask for a stop; gives its id."""
        stop = self.host.world.mint("stop")
        if key == self.key:
            self.drop_unsent()
        self.stops[stop] = _StopAsked(self._order, run, key)
        self.host.post(StopAsk(stop, key, run, by, scope))
        return stop

    def drop_unsent(self) -> None:
        """Take back what no step has carried (PROTOCOL.md 6.4): events go before admits, it would be born later."""
        for _, child in self.host.courier.drop_unsent(self.activation):
            child.receipt = Receipt("error", error="stopped before it was sent")
            if isinstance(child, Sending):
                self.script.poke()
            else:
                self.script.receipt(child)

    def stopped(self, stop: str) -> bool:
        """True once the stop's report is there, or the stop was refused."""
        found = self.stops[stop]
        return found.report is not None or found.refused

    def verdict(self, verdict: Verdict) -> None:
        """The registry's word on a stop of this family's."""
        stop = self.stops.get(verdict.run)
        if stop is None:
            return
        if verdict.word == "marked":
            for child in self.children.values():
                if self._meant(stop, child):
                    self._tell_stop(child, verdict.mark)
        else:
            stop.refused = True
            self.script.poke()

    def _meant(self, stop: _StopAsked, child: Child) -> bool:
        """Whether a stop is of this child, or of all."""
        if stop.run:
            return child.run == stop.run
        if stop.key == self.key:
            return True
        return child.receipt is not None and child.receipt.session_key == stop.key

    def cascade(self, mark: int) -> None:
        """The own turn was stopped: so are the children."""
        for child in self.children.values():
            self._tell_stop(child, mark)

    def _tell_stop(self, child: Child, mark: int) -> None:
        from openclaw_ray.testing.simulator.session import SessionProcess

        bound = child.bound
        if bound is not None and child.end is None and bound.born < abs(mark):
            self.host.cluster.network.tell(
                self.host,
                bound.actor,
                "control",
                SessionProcess.on_stop,
                bound.run,
                bound.activation,
                "stopped",
                mark,
            )
