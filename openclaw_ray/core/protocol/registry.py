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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from openclaw_ray.core.clock import Clock
from openclaw_ray.core.death import Death
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.named_map import ClaimAnswer
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.clients import Clients
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.deleting import Deleting, Deletion
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.hubstate import HubBatch
from openclaw_ray.core.protocol.journal import Journal, Write
from openclaw_ray.core.protocol.maps import Maps
from openclaw_ray.core.protocol.messages import (
    Answer,
    Bye,
    Completed,
    Consumed,
    Effect,
    Event,
    Got,
    Hello,
    Join,
    MapDone,
    Paused,
    Progress,
    Refused,
    Report,
    Resume,
    Rows,
    Settled,
    Start,
    Started,
    Step,
    StopAsk,
    Stopped,
    Took,
    UsageAdded,
    Verdict,
)
from openclaw_ray.core.protocol.records import Actor, Client
from openclaw_ray.core.protocol.recovery import restore
from openclaw_ray.core.protocol.reloading import reload
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.stopping import Stopping
from openclaw_ray.core.protocol.turns import Turns
from openclaw_ray.core.results import Receipt

__all__ = ["Registry"]

T = TypeVar("T")


class Registry:
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
        self.ending = Ending(self.s, self.down, self.birth)
        self.turns = Turns(self.s, self.down, self.ending)
        self.stopping = Stopping(self.s, self.down, self.ending)
        self.crew = Crew(self.s, self.down, self.birth, self.ending)
        self.clients = Clients(self.s, self.down, self.stopping)
        self.deleting = Deleting(self.s)
        self.maps = Maps(self.s, self.birth)
        self._idle_look = 0.0
        journal.commit([Write("meta", "incarnation", str(self._next_incarnation(journal)).encode())])
        restore(self.s, self.down)
        self.crew.begin_adoption()

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
        return tuple(self.birth.admit(step.client, admit) for admit in step.admits)

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
            case MapDone():
                self.turns.map_done(event)
            case StopAsk():
                return self.stopping.asked(client, event)
            case Refused():
                self.crew.refused(event)
            case Join():
                self.clients.join(event)
            case Bye():
                self.clients.bye(event)
            case Hello():
                self.crew.hello(event)
        return None

    def _stop_heard(self, stop: str) -> None:
        for mark in [m for m in self.s.marks.values() if m.stop == stop]:
            self.s.forget_mark(mark.seq)

    # ------------------------------------------------------------------ other entries

    def died(self, actor: str, detail: str | Death) -> tuple[Effect, ...]:
        """The death notice of a session actor (PROTOCOL.md 7.2)."""
        return self._entry(lambda: self.crew.died(actor, detail))

    def reported(self, report: Report) -> tuple[Effect, ...]:
        """An actor's report (PROTOCOL.md 7.5)."""
        return self._entry(lambda: self.crew.reported(report))

    def silent(self, actor: str) -> tuple[Effect, ...]:
        """An actor did not answer a report: unknown, not dead."""
        return self._entry(lambda: self.crew.silent(actor))

    def growth_failed(self, actor: str, why: str, *, never: bool = False) -> tuple[Effect, ...]:
        """The pool could not create an actor."""
        return self._entry(lambda: self.crew.growth_failed(actor, why, never=never))

    def pool_met(self, owned: Iterable[str], values: Iterable[str] = ()) -> tuple[Effect, ...]:
        """A pool says whom it owns and whose values it has, when it or this registry is new (PROTOCOL.md 7.3)."""
        return self._entry(lambda: self.crew.pool_met(owned, values))

    def value_held(self, run: str, taken_from: str = "") -> tuple[Effect, ...]:
        """The pool has taken a large value from an actor (PROTOCOL.md 4.3)."""
        return self._entry(lambda: self.ending.value_held(run, taken_from))

    def client_silent(self, client: str) -> tuple[Effect, ...]:
        """The hub has not heard of a client for its lease (PROTOCOL.md 2.5)."""
        return self._entry(lambda: self.clients.silent(client))

    def prewarm(self, count: int) -> tuple[Effect, ...]:
        """Ask for actors before anybody needs them."""
        return self._entry(lambda: self.birth.grow(count - len(self.s.actors)))

    def lend(self, who: str) -> tuple[Actor | None, tuple[Effect, ...]]:
        """An idle actor to try code on, see `Crew.lend`; without one, growth is asked for."""
        lent: list[Actor | None] = []

        def find() -> None:
            lent.append(self.crew.lend(who))
            if lent[0] is None and not any(a.state == "growing" for a in self.s.actors.values()):
                self.birth.grow(1)

        effects = self._entry(find)
        return lent[0], effects

    def give_back(self, actor: str, why: str = "") -> tuple[Effect, ...]:
        """The actor is free again, or ended if there is a reason."""
        return self._entry(lambda: self.crew.give_back(actor, why))

    def register(
        self, entries: Iterable[AgentEntry], bundle: str, data: bytes, paths: tuple[str, ...] = ()
    ) -> tuple[Effect, ...]:
        """Agents that the runtime knows from now on; their code is journaled."""

        def keep() -> None:
            known = tuple(entries)
            for entry in known:
                self.s.agents[entry.id] = entry
            self.s.put_bundle(bundle, pickle.dumps((known, data, paths), protocol=5))

        return self._entry(keep)

    def reload(self, limits: RuntimeLimits, agents: Mapping[str, AgentLimits], boot: str) -> tuple[Effect, ...]:
        """New limits from now on; see `reloading`."""
        return self._entry(lambda: reload(self.s, limits, agents, boot))

    def bundle(self, bundle: str) -> tuple[bytes, tuple[str, ...]]:
        """An agents' bundle: its code, and the folders that it needs on ``sys.path``.

        Raises:
            KeyError: there is none of that name.
        """
        data = self.s.journal.get("bundles", bundle)
        if data is None:
            raise KeyError(bundle)
        _, code, paths = pickle.loads(data)
        return code, paths

    def delete(self, key: str, session_id: str, revision: int) -> tuple[Deletion, tuple[Effect, ...]]:
        """Delete a session that was seen as ``(session_id, revision)``, see `Deleting`."""
        words: list[Deletion] = []
        effects = self._entry(lambda: words.append(self.deleting.delete(key, session_id, revision)))
        return words[0], effects

    def open_boot(self, boot: str) -> tuple[Effect, ...]:
        """The runtime's start ``boot``: close what an older one left un-ended; the same boot again is a restart."""
        return self._entry(lambda: self.clients.open_boot(boot, self.crew))

    def hub_again(self, clients: Iterable[str] | None = None) -> tuple[Effect, ...]:
        """The hub is a new one: everything unconfirmed goes again (PROTOCOL.md 7.4)."""

        def again() -> None:
            for receiver in list(self.s.receivers) if clients is None else clients:
                self.down.again(receiver)

        return self._entry(again)

    def tick(self) -> tuple[Effect, ...]:
        """What time does: deadlines, graces, repeats, idle actors, the end of adoption."""

        def due() -> None:
            now = self.s.clock.mono()
            self.turns.due(now)
            self.down.due(now)
            if now >= self._idle_look:
                self._idle_look = now + 1.0
                self.crew.due(now)

        return self._entry(due)

    def next_due(self) -> float:
        """When `tick` is to be called next, on the monotonic clock; at most a second away."""
        now = self.s.clock.mono()
        timer = self.s.next_timer()
        latest = now + (0.05 if self.s.recovering else 1.0)
        return latest if timer is None else min(latest, timer)

    def ended(self, run_id: str) -> Completed | None:
        """The end of a run as a message, read-only; `None` while it goes on.

        Raises:
            KeyError: there is no such run.
        """
        run = self.s.journaled_run(run_id)
        if run is None:
            raise KeyError(run_id)
        return self.birth.completed(run, "") if run.terminal else None

    def claim_map(
        self, map_id: str, claim: str, client: str, receiver: str
    ) -> tuple[ClaimAnswer, tuple[Effect, ...]]:
        """A try at a map that has a name asks for it, see `Maps.claim`."""
        answers: list[ClaimAnswer] = []
        effects = self._entry(lambda: answers.append(self.maps.claim(map_id, claim, client, receiver)))
        return answers[0], effects

    def take_batch(self) -> HubBatch | None:
        """What is committed and to be pushed to the hub; not within a transaction."""
        self.down.gather()
        return self.s.take_batch()

    @property
    def client_waits(self) -> bool:
        """True if the next batch has a message for a client."""
        return self.down.client_waits or self.s.client_waits

    def _entry(self, change: Callable[[], None]) -> tuple[Effect, ...]:
        change()
        self.crew.adopted(self.s.clock.mono())
        self.birth.grant_all()
        self.down.flush()
        return self.s.commit()


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
