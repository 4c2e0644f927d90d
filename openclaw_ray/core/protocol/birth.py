"""Birth: admit and reserve in one step, grant slot + actor + epoch together, start one-way (PROTOCOL.md 3).

1. **admit**: the checks of SPEC.md C stage 1 in their order, no stop mark on any ancestor; then session, run and
   lineage at once. There is no time between check and reservation.
2. **grant**: at the end of every step the queue is scanned; what may start takes its lane slot, its actor and the
   actor's next epoch together, or nothing.
3. **start**: a fresh activation of the session, with every pending completion in it. May be sent again to the same
   actor, never to another.
4. What has no actor yet asks the pool for growth, or evicts an idle actor of another class.
"""

from __future__ import annotations

from openclaw_ray.core import lineage
from openclaw_ray.core.admission import Refusal, SpawnFacts, SpawnLimits, check_spawn
from openclaw_ray.core.keys import main_key, normalise_agent_id, role
from openclaw_ray.core.lanes import Waiting, may_bind
from openclaw_ray.core.lifecycle import DeliveryState, RunKind, RunState
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import Admit, Bound, Completed, Exit, Grow, Resumed, Spec, Start
from openclaw_ray.core.protocol.records import Actor, Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.results import Receipt

__all__ = ["Birth"]

ASK_AFTER = 2.0
"""Seconds after a grant without a sign of the run before its actor is asked (PROTOCOL.md 3.4)."""


class Birth:
    """Admission, grants and growth."""

    def __init__(self, state: State, down: Down) -> None:
        self.s = state
        self.down = down
        self._actor_number = 0

    # ------------------------------------------------------------------ admit

    def admit(self, client: str, admit: Admit) -> Receipt:
        """Check and reserve in one (1)."""
        s = self.s
        known = s.journaled_run(admit.run)
        if known is not None:
            return Receipt("accepted", known.id, known.session, known.agent)
        requester = s.sessions.get(admit.requester)
        if requester is None:
            return self._refuse(Receipt("error", error=f"requester session {admit.requester!r} is not known"))
        parent = self._parent(client, requester, admit)
        if isinstance(parent, Receipt):
            return self._refuse(parent)
        operator = bool(requester.client)
        if admit.route == "ask":
            if not operator:
                why = "messages to other sessions are the operator's; a session spawns children"
                return self._refuse(Receipt("forbidden", error=f"{requester.key} may not ask {admit.session_key}: {why}"))
            return self._admit_message(client, parent, requester, admit)
        agent_id = admit.agent_id if admit.agent_id is not None else requester.agent
        refusal = self._check(requester, parent, operator, admit)
        if refusal is not None:
            return self._refuse(
                Receipt(
                    refusal.status,
                    agent_id=agent_id,
                    error=refusal.error,
                    limit=refusal.limit,
                    value=refusal.value,
                    maximum=refusal.maximum,
                    path=refusal.path,
                )
            )
        entry = s.agents[normalise_agent_id(agent_id) or agent_id]
        if admit.session_key in s.sessions:
            return self._refuse(Receipt("error", error=f"session key {admit.session_key!r} is taken"))
        depth = requester.depth + 1
        child = Session(
            admit.session_key,
            admit.session_id,
            entry.id,
            depth,
            requester.key,
            requester.root,
            role(depth, s.depth_cap).role,
            s.clock.wall(),
            admit.label,
        )
        s.sessions[child.key] = child
        self._new_run(client, child, parent, requester, entry, admit)
        return Receipt("accepted", admit.run, child.key, entry.id)

    def _refuse(self, receipt: Receipt) -> Receipt:
        self.s.refused += 1
        return receipt

    def _parent(self, client: str, requester: Session, admit: Admit) -> Run | Receipt:
        """The run that the new one is a child of, fenced by the requester's activation."""
        run = self.s.runs.get(requester.run)
        if admit.activation:
            if run is None or run.activation != admit.activation or not run.in_turn:
                return Receipt("error", error=f"the turn {admit.activation} that asked for this has ended")
        elif client not in self.s.clients or not self.s.clients[client].root:
            return Receipt("error", error=f"client {client!r} has not joined")
        if run is None:  # an operator's spawn on behalf of a session that has no run
            run = self.s.runs.get(self.s.sessions[self.s.clients[client].root].run)
        if run is None:
            return Receipt("error", error=f"the root of client {client!r} has ended")
        return run

    def _check(self, requester: Session, parent: Run, operator: bool, admit: Admit) -> Refusal | None:
        s = self.s
        own = s.agents.get(requester.agent)
        if own is not None and not self._may_spawn(own, operator):
            text = f"{requester.key} may not spawn: agent {own.id!r} is declared with spawns=False"
            return Refusal("forbidden", text, "spawns")
        facts = SpawnFacts(
            requester_key=requester.key,
            requester_agent=requester.agent,
            depth=requester.depth,
            active_children=requester.active,
            operator=operator,
            agent_id=admit.agent_id,
            stopping=self._stopping(parent, operator),
        )
        limits = SpawnLimits(
            max_spawn_depth=s.depth_cap,
            max_children=s.limits.max_children,
            require_agent_id=own.limits.require_agent_id if own else False,
            allow_agents=own.limits.allow_agents if own else None,
            allow_path=own.limits.allow_path if own else "agents.defaults.subagents.allowAgents",
            require_path=own.limits.require_path if own else "agents.defaults.subagents.requireAgentId",
            configured=s.agent_ids(),
        )
        return check_spawn(facts, limits)

    def _may_spawn(self, own: AgentEntry, operator: bool) -> bool:
        """What ``spawns=False`` promises is held to: the reserve rule counts such a session as a leaf (PROTOCOL.md 3.3)."""
        return own.spawns or operator

    def _stopping(self, parent: Run, operator: bool) -> bool:
        """Whether a stop mark lies on the parent or above; a client's root lives on after a stop (PROTOCOL.md 6.1)."""
        return not (operator and parent.route == "driver") and bool(lineage.bound_by_mark(self.s.runs, parent))

    def _admit_message(self, client: str, parent: Run, requester: Session, admit: Admit) -> Receipt:
        """Route ``ask``: a message to an agent's main session or to an existing top-level one."""
        s = self.s
        entry: AgentEntry | None
        target = s.sessions.get(admit.session_key)
        if target is not None and target.depth > 0:
            return self._refuse(
                Receipt("error", error=f"session {target.key} runs one task of its requester's and takes no messages")
            )
        if target is None:
            agent_id = normalise_agent_id(admit.agent_id or "")
            entry = s.agents.get(agent_id or "")
            if entry is None or admit.session_key != main_key(entry.id):
                known = ", ".join(sorted(s.agents)) or "none"
                return self._refuse(
                    Receipt("error", error=f"no agent or session {admit.session_key!r} (agents: {known})")
                )
            target = Session(
                admit.session_key,
                admit.session_id,
                entry.id,
                0,
                "",
                admit.session_key,
                role(0, s.depth_cap).role,
                s.clock.wall(),
            )
            s.sessions[target.key] = target
        entry = s.agents.get(target.agent)
        if entry is None:
            return self._refuse(Receipt("error", error=f"agent {target.agent!r} is not registered any more"))
        self._new_run(client, target, parent, requester, entry, admit)
        return Receipt("accepted", admit.run, target.key, entry.id)

    def _new_run(
        self, client: str, session: Session, parent: Run, requester: Session, entry: AgentEntry, admit: Admit
    ) -> None:
        s = self.s
        spawns = entry.spawns and session.depth < s.depth_cap
        timeout = s.limits.run_timeout_seconds if admit.timeout is None else admit.timeout
        if admit.route == "ask":
            lane, width = "main", s.limits.main_lane
            timeout = admit.timeout or 0.0
        elif admit.lane and requester.client:
            lane, width = admit.lane, admit.lane_width
        elif requester.client:
            lane, width = "", 0
        else:
            lane = "subagent" if s.limits.global_lane else f"subagent:{requester.key}"
            width = s.limits.max_concurrent
        run = Run(
            admit.run,
            s.next_seq(),
            session.key,
            session.session_id,
            entry.id,
            admit.route,
            requester.key,
            parent.id,
            session.root,
            session.depth,
            session.depth if spawns else s.depth_cap,
            admit.task,
            s.clock.wall(),
            lane,
            width,
            s.reuse_class(entry, session.root, admit.run),
            timeout=timeout,
            expects=admit.expects,
            label=admit.label,
            input=admit.input,
            index=admit.index,
            transcripts=admit.transcripts,
            client=client,
            kind=RunKind.MESSAGE if admit.route == "ask" else RunKind.TASK,
            deliver_to=requester.key,
            delivery=(
                DeliveryState.PENDING if admit.route == "spawn" and admit.expects else DeliveryState.NOT_REQUIRED
            ),
        )
        s.runs[run.id] = run
        lineage.born(s.runs, run.id, run)
        self._reserve(requester)
        s.touch(session)
        s.touch(run)
        s.event("run", run)
        self._in_line(session, run)

    def _reserve(self, requester: Session) -> None:
        """The child counts from here on, long before it has a process."""
        requester.active += 1

    def _in_line(self, session: Session, run: Run) -> None:
        """The serial lane: one run of a session at a time (PROTOCOL.md 5.6)."""
        if session.run:
            session.waiting.append(run.id)
        else:
            session.run = run.id
            self.s.enqueue(run)

    # ------------------------------------------------------------------ grant

    def grant_all(self) -> None:
        """Start all that may start, then ask for the actors that the others lack (2, 4)."""
        s = self.s
        if not s.queue or s.recovering:
            return
        bound, running = s.bound, s.turns_running
        idle: dict[object, list[Actor]] = {}
        for actor in s.actors.values():
            if actor.state == "idle":
                idle.setdefault((actor.klass or actor.resources), []).append(actor)

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
            self.start(run, idle_for(pick).pop())
        self._grow(rules_allow, bound)

    def _of_class(self, idle: dict[object, list[Actor]], waiting: Waiting) -> list[Actor]:
        """Idle actors of the class, else those that have none yet (PROTOCOL.md 7.6)."""
        klass = waiting.klass
        assert isinstance(klass, tuple)
        return idle.get(klass) or idle.get(klass[3]) or []

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
        self.down.open(run.activation, actor.id, actor.id)
        s.begin(session)
        for record in (run, session, actor):
            s.touch(record)
        s.event("run", run, warm=warm)
        s.effect(Start(actor.id, actor.epoch, self.spec(run, session)))

    def _start_clock(self, run: Run, now: float) -> None:
        """The deadline counts from the first start (PROTOCOL.md 5.5)."""
        if run.started is not None:
            return
        run.started = self.s.clock.wall()
        if run.timeout > 0:
            run.deadline = now + run.timeout
            self.s.at(run.deadline, run)

    def _given(self, session: Session) -> tuple[str, ...]:
        """What the start carries: every pending completion of the session (PROTOCOL.md 3.5)."""
        return tuple(session.pending)

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
        for child_id in run.given:
            child = s.runs.get(child_id)
            if child is not None:
                completions.append(self.completed(child, run.activation))
        entry = s.agents[run.agent]
        first = run.turns == 1
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
            run.task if first else "",
            session.depth,
            session.role,
            entry.spawns and session.depth < s.depth_cap,
            session.label,
            session.requester,
            session.root,
            run.route,
            run.created,
            run.input if first else None,
            tuple(sorted(completions, key=lambda c: (c.completion.created_at, c.run))),
            session.state_json,
            run.index,
            run.task,
            run.transcripts,
        )

    def completed(self, child: Run, receiver: str) -> Completed:
        """A child's end as a message for ``receiver``."""
        from openclaw_ray.core.protocol.ending import completion_of

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
