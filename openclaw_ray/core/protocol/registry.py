"""The registry: the one writer of truth (PROTOCOL.md 1). Events in, answers and effects out; no I/O but the journal.

1. `Registry.step` applies a courier's events, then its admits, then grants what may start, and commits all of it with
   the client's seq and answer in one transaction. The answer and the effects follow the commit. If a session process
   gets its next run by the step that ended its last one, the start is in the answer: one call less.
2. The same (client, seq) again gives the same answer, over a crash too.
3. Every other entry (`died`, `reported`, `tick`, …) is a transaction of the same kind.
4. If a commit fails, this object is ahead of the journal: throw it away and make a new one from the journal, as after a
   crash. A new one has a higher ``incarnation``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from openclaw_ray.core.clock import Clock
from openclaw_ray.core.delivery_faults import DeliveryFault
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.protocol.archiving import Archiving
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.cleanup import Cleanup
from openclaw_ray.core.protocol.clients import Clients
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.entries import Entries
from openclaw_ray.core.protocol.journal import Journal, Write
from openclaw_ray.core.protocol.limiting import Limiting
from openclaw_ray.core.protocol.maps import Maps
from openclaw_ray.core.protocol.measuring import saw_refused
from openclaw_ray.core.protocol.messages import (
    Admitted,
    Answer,
    BackOff,
    Blocked,
    Bye,
    ChannelUp,
    Completed,
    Consumed,
    Effect,
    Event,
    Got,
    Hello,
    Join,
    LimitAsk,
    LimitDone,
    MapDone,
    Paused,
    Posted,
    Progress,
    Refused,
    Resume,
    Rows,
    SendOver,
    Settled,
    Start,
    Started,
    Step,
    StopAsk,
    Stopped,
    TakeSteered,
    ThreadBound,
    ThreadOver,
    Took,
    UsageAdded,
    Verdict,
)
from openclaw_ray.core.protocol.orphans import Orphans
from openclaw_ray.core.protocol.patching import Patching
from openclaw_ray.core.protocol.records import Client, Session
from openclaw_ray.core.protocol.recovery import restore
from openclaw_ray.core.protocol.redelivering import Redelivering
from openclaw_ray.core.protocol.resuming import Resuming
from openclaw_ray.core.protocol.retention import Retention
from openclaw_ray.core.protocol.session_views import SessionViews
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.steered import take_steered
from openclaw_ray.core.protocol.steering import STEER, Steering
from openclaw_ray.core.protocol.stopping import Stopping
from openclaw_ray.core.protocol.turns import Turns
from openclaw_ray.core.protocol.upkeep import Upkeep
from openclaw_ray.core.results import Receipt

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Entries):
    """One incarnation of the registry over a journal."""

    def __init__(
        self,
        journal: Journal,
        limits: RuntimeLimits,
        clock: Clock,
        *,
        pool_max: int,
        cpus: int,
        agent_limits: Callable[[str], AgentLimits] | None = None,
    ) -> None:
        self.s = State(journal, limits, clock, pool_max=pool_max, cpus=cpus)
        self.down = Down(self.s)
        self.birth = Birth(self.s, self.down)
        self.limiting = Limiting(self.s, self.down)
        self.ending = Ending(self.s, self.down, self.birth, self.limiting)
        self.turns = Turns(self.s, self.down, self.ending)
        self.stopping = Stopping(self.s, self.down, self.ending)
        self.steering = Steering(self.s, self.birth, self.stopping)
        self.crew = Crew(self.s, self.down, self.birth, self.ending)
        self.clients = Clients(self.s, self.down, self.stopping)
        self.cleanup = Cleanup(self.s, self.ending)
        self.archiving = Archiving(self.s, self._archived_unheard, lambda run: self.upkeep.drop([run], apply=True))
        self.redelivering = Redelivering(self.s, self.ending)
        self.resuming = Resuming(self.s, self.ending)
        self.maps = Maps(self.s, self.birth)
        self.views = SessionViews(self.s)
        self.patching = Patching(self.s, self.views.sight)
        self.orphans = Orphans(self.s, self.ending)
        self.upkeep = Upkeep(self.s, self.orphans)
        self.retention = Retention(self.s, self.upkeep)
        self._idle_look = 0.0
        journal.commit([Write("meta", "incarnation", str(self._next_incarnation(journal)).encode())])
        restore(self.s, self.down)
        self.limiting.restore()
        self.birth.talks.again()
        self.crew.begin_adoption()

    def _archived_unheard(self, session: Session) -> None:
        self.ending.fail_pending(session, DeliveryFault.ARCHIVED)

    def _next_incarnation(self, journal: Journal) -> int:
        data = journal.get("meta", "incarnation")
        self.s.incarnation = int(data or b"0") + 1
        return self.s.incarnation

    # ------------------------------------------------------------------ step

    def step(self, step: Step) -> tuple[Answer, tuple[Effect, ...]]:
        """Apply one step of one courier (1, 2).

        Raises:
            JournalFault: nothing was kept (4).
        """
        s = self.s
        client = s.clients.get(step.client)
        if client is not None and self._is_repeat(client, step):
            return self._repeat(client), ()
        if s.recovering:
            return Answer(s.incarnation, step.seq, "recovering"), ()
        if client is None:
            if not any(self._comes_in(event) for event in step.events):
                return Answer(s.incarnation, step.seq, "stale"), ()
            client = s.clients[step.client] = Client(step.client)
        if step.seq < client.seq:
            return Answer(s.incarnation, step.seq, "stale"), ()
        word, verdicts = self._take_events(step)
        receipts = self._take_admits(step)
        self.birth.grant_all()
        self.birth.threads.flush()
        down = self.down.ride(step.client)
        self.down.flush()
        answer = Answer(s.incarnation, step.seq, word, tuple(verdicts), receipts, "", down)
        client.seq = step.seq
        if word == "stale":
            s.clients.pop(step.client, None)
            self.down.close(step.client)
        elif step.client in s.clients:
            # what rides along follows from state after a crash and is not kept with the answer
            client.answer = _keep(step.seq, verdicts, receipts)
            s.touch(client)
        return _with_its_start(step, answer, s.commit())

    def _comes_in(self, event: Event) -> bool:
        """Whether an event may make a process known: not a `Join` that comes again after its client has left."""
        return isinstance(event, Hello) or (isinstance(event, Join) and not self.clients.has_left(event))

    def _take_events(self, step: Step) -> tuple[str, list[Verdict]]:
        word = "ok"
        verdicts: list[Verdict] = []
        for event in step.events:
            if isinstance(event, Hello):
                word = word if self.crew.hello(event) else "stale"
                self.down.open(step.client, step.client, event.actor)
                continue
            verdict = self._apply(step.client, event)
            if verdict is not None:
                verdicts.append(verdict)
        return word, verdicts

    def _take_admits(self, step: Step) -> tuple[Receipt, ...]:
        receipts = tuple(
            self.steering.asked(step.client, admit) if admit.route == STEER else self.birth.admit(step.client, admit)
            for admit in step.admits
        )
        if self.s.tally is not None:
            saw_refused(self.s.tally, step.admits, receipts)
        return receipts

    def _is_repeat(self, client: Client, step: Step) -> bool:
        """The step that was answered last, once more (2)."""
        return client.seq == step.seq and bool(client.answer)

    def _repeat(self, client: Client) -> Answer:
        seq, verdicts, receipts = pickle.loads(client.answer)
        return Answer(self.s.incarnation, seq, "ok", verdicts, receipts)

    def _apply(self, client: str, event: Event) -> Verdict | None:
        match event:
            case Settled():
                return self.ending.settle(event)
            case Got():
                self.ending.got(event.runs)
                for message in self.down.got(event):
                    if isinstance(message, Stopped):
                        self._stop_heard(message.stop)
                    elif isinstance(message, Completed):
                        self.ending.got((message.run,))
                    elif isinstance(message, Admitted):
                        self.birth.threads.heard_receipt(message.run)
            case Consumed():
                self.ending.consumed(event.receiver, event.runs)
            case Started():
                self.turns.started(event)
            case Paused():
                self.turns.paused(event)
            case Resume():
                self.turns.resume(event)
            case Took():
                self.ending.took(event.run)
            case Rows():
                self.turns.rows(event)
            case Progress():
                self.turns.progress(event)
            case UsageAdded():
                self.turns.usage(event)
            case Blocked():
                self.turns.blocked(event)
            case MapDone():
                self.turns.map_done(event)
            case LimitAsk():
                self.limiting.asked(event)
            case LimitDone():
                self.limiting.done(event)
            case BackOff():
                self.limiting.back_off(event)
            case StopAsk():
                return self.stopping.asked(client, event)
            case Refused():
                self.crew.refused(event)
            case Join():
                self.clients.join(event)
            case SendOver():
                self.birth.talks.send_over(event)
            case TakeSteered():
                return take_steered(self.s, self.ending, event)
            case ChannelUp():
                self.birth.threads.up(event)
            case ThreadBound():
                self.birth.threads.bound(event)
            case Posted():
                self.birth.threads.posted(event)
            case ThreadOver():
                self.birth.threads.over(event)
            case Bye():
                self.clients.bye(event)
            case Hello():
                self.crew.hello(event)
        return None

    def _stop_heard(self, stop: str) -> None:
        for mark in [m for m in self.s.marks.values() if m.stop == stop]:
            self.s.forget_mark(mark.seq)


def _keep(seq: int, verdicts: list[Verdict], receipts: tuple[object, ...]) -> bytes:
    """The answer as it is journaled: without live handles."""
    plain = tuple(_without_handle(v) for v in verdicts)
    return pickle.dumps((seq, plain, receipts), protocol=5)


def _with_its_start(
    step: Step, answer: Answer, effects: tuple[Effect, ...]
) -> tuple[Answer, tuple[Effect, ...]]:
    """Let the start of the process that stepped go with its answer, if it can.

    One that says hello is only being made, and is called; so is one whose input is an object of Ray's, which must
    travel as an argument to be counted.
    """
    if answer.word != "ok" or any(isinstance(event, Hello) for event in step.events):
        return answer, effects
    for effect in effects:
        if isinstance(effect, Start) and effect.actor == step.client:
            if effect.spec.input is not None and effect.spec.input.ref is not None:
                break
            rest = tuple(other for other in effects if other is not effect)
            return replace(answer, start=(effect.epoch, effect.spec)), rest
    return answer, effects


def _without_handle(verdict: Verdict) -> Verdict:
    if verdict.deliver is None or verdict.deliver.handle is None:
        return verdict
    return replace(verdict, deliver=replace(verdict.deliver, handle=None))
