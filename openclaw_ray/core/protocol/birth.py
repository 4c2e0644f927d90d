"""Birth: grant slot + actor + epoch together, start one-way (PROTOCOL.md 3.2-3.5).

1. **grant**: at the end of every step the queue is scanned; what may start takes its lane slot, its actor and the
   actor's next epoch together, or nothing.
2. **start**: a fresh activation of the session, with every pending completion in it. May be sent again to the same
   actor, never to another.
3. What has no actor yet asks the pool for growth, or evicts an idle actor of another class.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from openclaw_ray.core.lanes import Waiting, may_bind
from openclaw_ray.core.lifecycle import RunKind, RunState
from openclaw_ray.core.liveness import RESUMES_MOST
from openclaw_ray.core.message import MessageSource, News, Talk
from openclaw_ray.core.placement import Scheduling, amounts
from openclaw_ray.core.protocol import yielding
from openclaw_ray.core.protocol.admitting import Admitting
from openclaw_ray.core.protocol.completion import completion_of
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import Bound, Completed, Exit, Grow, Resumed, Spec, Start
from openclaw_ray.core.protocol.records import Actor, Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.steered import tell_steered
from openclaw_ray.core.resume_text import resume_text

if TYPE_CHECKING:
    from openclaw_ray.core.policy.rules import Sender

__all__ = ["Birth"]

ASK_AFTER = 2.0
"""Seconds after a grant without a sign of the run before its actor is asked (PROTOCOL.md 3.4)."""


class Birth(Admitting):
    """Grants and growth, over admission."""

    def __init__(self, state: State, down: Down) -> None:
        super().__init__(state, down)
        self._actor_number = 0

    # ------------------------------------------------------------------ grant

    def grant_all(self) -> None:
        """Start all that may start, then ask for the actors that the others lack (2, 4)."""
        s = self.s
        if not s.queue or s.recovering:
            return
        bound, running = s.bound, s.turns_running
        idle: dict[object, list[Actor]] = {}
        at_work: Counter[str] = Counter()
        for actor in s.actors.values():
            if actor.state == "idle":
                idle.setdefault((actor.klass or actor.resources), []).append(actor)
            at_work[actor.node] += actor.state == "bound"

        def idle_for(waiting: Waiting) -> list[Actor]:
            return self._of_class(idle, waiting)

        def rules_allow(waiting: Waiting) -> bool:
            if not s.lanes.free(waiting.lane, waiting.lane_width):
                return False
            most = s.limits.max_active_sessions
            if most is not None and running >= most:
                return False
            return waiting.resume or may_bind(bound, s.pool_max, waiting.depth, s.depth_cap)

        while (
            pick := s.queue.pick(
                lambda w: rules_allow(w) and (w.resume or bool(idle_for(w))), s.load_of
            )
        ) is not None:
            s.queue.remove(pick.run)
            run = s.runs[pick.run]
            running += 1
            if pick.resume:
                self._resumed(run)
                continue
            bound += 1
            self.start(run, self._one_of(idle_for(pick), at_work))
        self._grow(rules_allow, bound)
        if s.exchanges:
            self.talks.unstick()

    def _of_class(self, idle: dict[object, list[Actor]], waiting: Waiting) -> list[Actor]:
        """Idle actors of the class, else those that have none yet (PROTOCOL.md 7.6)."""
        klass = waiting.klass
        assert isinstance(klass, tuple)
        return idle.get(klass) or idle.get(klass[3]) or []

    def _one_of(self, idle: list[Actor], at_work: Counter[str]) -> Actor:
        """Take the newest of the idle actors, on several nodes one where the fewest are at work; the most, if they are
        to be packed."""
        if len(at_work) < 2:
            return idle.pop()
        pack = self.s.limits.pool_scheduling == Scheduling.PACK
        actor = min(reversed(idle), key=lambda a: -at_work[a.node] if pack else at_work[a.node])
        idle.remove(actor)
        at_work[actor.node] += 1
        return actor

    def _resumed(self, run: Run) -> None:
        run.state = RunState.RUNNING
        run.pause = None
        run.resuming = False
        self._take_slot(run)
        self.s.touch(run)
        self.s.event("run", run)
        self.tell_resumed(run)

    def tell_resumed(self, run: Run) -> None:
        """Its turn may go on."""
        self.down.tell(run.activation, Resumed(run.id, run.activation, run.wait))

    def _take_slot(self, run: Run) -> None:
        run.generation += 1
        run.slot = run.generation
        self.s.lanes.acquire(run.lane, run.lane_width, run.id, run.generation)

    def start(self, run: Run, actor: Actor) -> None:
        """Bind the run's session to ``actor`` under its next epoch and send the start (2, 3)."""
        s = self.s
        session = s.sessions[run.session]
        now = s.clock.mono()
        warm = actor.activations > 0
        actor.epoch += 1
        actor.state = "bound"
        actor.klass = run.klass
        actor.activations += 1
        session.number += 1
        session.state = "active"
        run.activation = actor.activation = f"{session.session_id}.{session.number}"
        run.actor = run.ran_on = actor.id
        actor.run = run.id
        run.turns += 1
        if run.kind == RunKind.RESUME:
            session.resumes = (*session.resumes, s.clock.wall())[-RESUMES_MOST:]
        run.warm = warm
        run.confirmed = False
        run.resuming, run.wait = False, -1
        run.state = RunState.RUNNING
        run.pause = None
        run.granted_at = now
        run.resend_at = now + ASK_AFTER
        s.at(run.resend_at, run)
        self._start_clock(run, now)
        self._take_slot(run)
        s.count_load(run.root, 1)
        s.started_runs += 1
        if warm:
            s.warm_starts += 1
        else:
            s.cold_starts += 1
        run.given = self._given(session)
        if session.key in s.news:
            self.talks.give(run)
        yielding.started(s, run)
        self.down.open(run.activation, actor.id, actor.id)
        s.begin(session)
        for record in (run, session, actor):
            s.touch(record)
        s.event("run", run, warm=warm)
        s.effect(Start(actor.id, actor.epoch, self.spec(run, session)))
        if session.waiting and s.exchanges:
            tell_steered(s, self.down, run)

    def _start_clock(self, run: Run, now: float) -> None:
        """The deadline counts from the first start (PROTOCOL.md 5.5)."""
        if run.started is not None:
            return
        run.started = self.s.clock.wall()
        if run.timeout > 0:
            run.deadline = now + run.timeout
            self.s.at(run.deadline, run)

    def _given(self, session: Session) -> tuple[str, ...]:
        """What the start carries: every pending completion of the session (PROTOCOL.md 3.5), but for those that a wake
        to come is to tell of (`yielding`)."""
        run = self.s.runs[session.run]
        return tuple(session.pending) if run.waits is None else yielding.given(self.s, run, session)

    def tell_bound(self, run: Run) -> None:
        """Parents hold their children's actor handles (PROTOCOL.md 2.4): told once the turn is known to last."""
        receiver = self.receiver_of(run.requester)
        actor = self.s.actors.get(run.actor)
        if receiver and actor is not None:
            handle = self.handle_for(receiver, actor)
            self.down.tell(receiver, Bound(run.id, run.activation, actor.id, handle, run.seq))

    def receiver_of(self, session_key: str) -> str:
        """The downlink that a session's program hears on now: its client's, its running turn's, or none."""
        session = self.s.sessions.get(session_key)
        if session is None:
            return ""
        if session.client:
            client = self.s.clients.get(session.client)
            return session.client if client is not None and not client.gone else ""
        run = self.s.runs.get(session.run)
        return run.activation if run is not None and run.in_turn else ""

    def handle_for(self, receiver: str, actor: Actor) -> object:
        """The actor's handle, the first time that the receiver's process is told of it."""
        known = self._known_handles(receiver)
        if known is None or actor.id in known:
            return None
        known.add(actor.id)
        return actor.handle

    def _known_handles(self, receiver: str) -> set[str] | None:
        found = self.s.receivers.get(receiver)
        client = self.s.clients.get(found.client if found is not None else receiver)
        return client.known_handles if client is not None else None

    def spec(self, run: Run, session: Session) -> Spec:
        """What the turn starts with, the same for each repeat of the same activation."""
        s = self.s
        completions = []
        given = [s.runs[child_id] for child_id in run.given if child_id in s.runs]
        for child in sorted(given, key=lambda c: (c.created, c.ended or 0.0, c.session)):
            completions.append(self.completed(child, run.activation))
        entry = s.agents[run.agent]
        first, resumed = run.turns == 1, run.kind == RunKind.RESUME
        at = s.threads.get(run.post) if run.post else None
        source, news = self._talk(run.talk) if run.talk is not None else (None, ())
        return Spec(
            run.id,
            run.activation,
            session.number,
            session.key,
            session.session_id,
            run.agent,
            entry.bundle,
            run.kind,
            run.turns,
            resume_text(run.task) if resumed else run.task if first else _told(run),
            session.depth,
            session.role,
            entry.spawns and session.depth < s.depth_cap,
            session.label,
            session.requester,
            session.root,
            run.route,
            run.created,
            run.input if first or resumed or _has_files(session) else None,
            tuple(completions),
            session.state_json,
            run.index,
            run.task,
            run.transcripts,
            session.facts,
            source,
            news,
            () if resumed or run.waits is None else run.waits.told,
            s.depth_cap,
            s.limits.attachments,
            _writer(run),
            self.threads.bindings(run),
            at.conversation if at is not None and at.bound else "",
        )

    def _talk(self, talk: Talk) -> tuple[MessageSource | None, tuple[News, ...]]:
        """Where a run's message came from, and the news that its start carries."""
        known = self.s.exchanges
        exchange = known.get(talk.exchange)
        news = tuple(known[x].news() for x in talk.news if x in known)
        return (None if exchange is None else exchange.source()), news

    def completed(self, child: Run, receiver: str) -> Completed:
        """A child's end as a message for ``receiver``."""
        outcome = child.outcome
        held = outcome.held if outcome is not None else 0
        holder = self.s.actors.get(child.held_by)
        return Completed(
            child.id,
            completion_of(self.s, child),
            outcome.value if outcome is not None else None,
            held,
            child.held_by,
            self.handle_for(receiver, holder) if holder is not None else None,
        )

    # ------------------------------------------------------------------ growth

    def _grow(self, rules_allow: object, bound: int) -> None:
        """Ask for actors that waiting runs lack; evict idle ones of another class if the ceiling is reached (4)."""
        assert callable(rules_allow)
        s = self.s
        lacking: dict[tuple[tuple[str, object], ...], int] = {}
        lane_left: dict[str, int] = {}
        room = s.pool_max - bound
        for waiting in s.queue.waiting():
            if room <= 0 or sum(lacking.values()) >= s.cpus:
                break
            if waiting.resume or not rules_allow(waiting):
                continue
            left = lane_left.get(waiting.lane)
            if left is None:
                left = waiting.lane_width - s.lanes.taken(waiting.lane) if waiting.lane_width else s.pool_max
            if left <= 0 or not may_bind(s.pool_max - room, s.pool_max, waiting.depth, s.depth_cap):
                continue
            lane_left[waiting.lane] = left - 1
            klass = waiting.klass
            assert isinstance(klass, tuple)
            lacking[klass[3]] = lacking.get(klass[3], 0) + 1
            room -= 1
        for resources, wanted in lacking.items():
            growing = sum(1 for a in s.actors.values() if a.state == "growing" and a.resources == resources)
            # as many at a time as there are CPUs: a creation keeps one busy, and live turns need them too
            self.grow(min(wanted, s.cpus) - growing, resources)

    def wanted(self) -> int:
        """Actors that the work of now could use: the bound ones, and one for each queued run that waits for nothing but
        that. Those that ask Ray for something are not counted: Ray sees them wait by itself."""
        s = self.s
        left: dict[str, int] = {}
        count = s.bound
        for waiting in s.queue.waiting():
            if waiting.resume or amounts(s.runs[waiting.run].klass[3]):
                continue
            if waiting.lane_width:
                free = left.setdefault(waiting.lane, waiting.lane_width - s.lanes.taken(waiting.lane))
                if free <= 0:
                    continue
                left[waiting.lane] = free - 1
            count += 1
        return count

    def grow(self, count: int, resources: tuple[tuple[str, object], ...] = ()) -> None:
        """Ask the pool for up to ``count`` actors under the ceiling."""
        s = self.s
        while count > s.pool_max - len(s.actors) and self._evict():
            pass
        count = min(count, s.pool_max - len(s.actors))
        if count <= 0:
            return
        ids = []
        for _ in range(count):
            self._actor_number += 1
            actor = Actor(f"session-{s.incarnation}-{self._actor_number}", resources=resources)
            actor.born_at = s.clock.mono()
            s.actors[actor.id] = actor
            s.touch(actor)
            ids.append(actor.id)
        s.effect(Grow(tuple(ids), resources))

    def _evict(self) -> bool:
        """End the idle actor that has been idle longest; False if there is none."""
        idle = [a for a in self.s.actors.values() if a.state == "idle"]
        if not idle:
            return False
        self.retire_actor(min(idle, key=lambda a: a.idle_at), "evicted for another class")
        return True

    def retire_actor(self, actor: Actor, why: str) -> None:
        """End an actor that is not to be used again; it counts until it is gone."""
        s = self.s
        s.retired_actors[why] = s.retired_actors.get(why, 0) + 1
        if actor.state == "idle":
            # nothing runs there, so nothing is lost with it: it stops counting at once
            del s.actors[actor.id]
            s.drop("actors", actor.id)
            s.forget_client(actor.id)
            self.down.close(actor.id)
        else:
            actor.state = "dying"
            s.touch(actor)
        s.effect(Exit(actor.id, why))


def _told(run: Run) -> str:
    """The newest message that a further turn is started for."""
    return run.waits.told[-1].text if run.waits is not None and run.waits.told else ""

def _has_files(session: Session) -> bool:
    """Its input is wanted at each turn: the next one may be on a node where its attachments are not."""
    return session.facts is not None and session.facts.attachments is not None


def _writer(run: Run) -> Sender | None:
    """Who wrote the newest message of the turn, if it answers senders alone."""
    senders = run.senders
    return senders.who[-1] if senders is not None and senders.turn == run.turns and run.kind != RunKind.RESUME else None
