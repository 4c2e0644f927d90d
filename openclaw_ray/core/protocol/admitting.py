"""Admission: check and reserve in one step (PROTOCOL.md 3.1).

The checks of SPEC.md C stage 1 in their order, no stop mark on any ancestor; then session, run and lineage at once.
There is no time between check and reservation.
"""

from __future__ import annotations

from openclaw_ray.core import lineage
from openclaw_ray.core.admission import Refusal, SpawnFacts, SpawnLimits, check_spawn
from openclaw_ray.core.keys import normalise_agent_id, role
from openclaw_ray.core.lifecycle import DeliveryState, RunKind
from openclaw_ray.core.limits import Compat
from openclaw_ray.core.message import heir
from openclaw_ray.core.named_map import MapItem
from openclaw_ray.core.policy.rules import Senders
from openclaw_ray.core.protocol.audiences import stamp_of
from openclaw_ray.core.protocol.child_facts import child_facts
from openclaw_ray.core.protocol.commands import Commands
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.executors import counts_no_more
from openclaw_ray.core.protocol.message_run import nested_lane
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.messaging import Messaging, refused
from openclaw_ray.core.protocol.names import ChildNames
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.threads import Threads
from openclaw_ray.core.results import Receipt

__all__ = ["Admitting"]


class Admitting(Messaging):
    """Who may be born."""

    def __init__(self, state: State, down: Down) -> None:
        super().__init__(state, down)
        self.names = ChildNames(state)
        self.threads = Threads(state, down, self.admit)
        self.commands = Commands(state, self.threads)

    # ------------------------------------------------------------------ admit

    def admit(self, client: str, admit: Admit, thread: str = "") -> Receipt:
        """Check and reserve in one (1). ``thread``: the conversation that its child asks for is there (`threads`)."""
        s = self.s
        known = s.journaled_run(admit.run)
        if known is not None:
            return Receipt("accepted", known.id, known.session, known.agent)
        requester = self._asker(admit)
        if requester is None:
            return self._refuse(Receipt("error", error=f"requester session {admit.requester!r} is not known"))
        parent = self._parent(client, requester, admit)
        if isinstance(parent, Receipt):
            return self._refuse(parent)
        operator = bool(requester.client)
        if admit.sender is not None and (not operator or (admit.send is not None and admit.send.mode == "notify")):
            return self._refuse(Receipt("forbidden", error=_no_sender(requester, operator), limit="sender"))
        if admit.route == "ask":
            if not operator:
                why = "messages to other sessions are the operator's; a session spawns children"
                text = f"{requester.key} may not ask {admit.session_key}: {why}"
                return self._refuse(Receipt("forbidden", error=text))
            return self._message(client, parent, requester, admit)
        if admit.route == "send":
            return self._send(client, parent, requester, admit)
        if admit.route == "say":
            return self._say(client, parent, requester, admit)
        agent_id = admit.agent_id if admit.agent_id is not None else requester.agent
        refusal = self.threads.refusal(parent, admit) or self._check(requester, parent, operator, admit)
        if refusal is not None:
            return self._refuse(refused(refusal, agent_id))
        entry = s.agents[normalise_agent_id(agent_id) or agent_id]
        facts = child_facts(s, requester, entry, admit, parent)
        if isinstance(facts, Refusal):
            return self._refuse(refused(facts, agent_id))
        if admit.session_key in s.sessions:
            return self._refuse(Receipt("error", error=f"session key {admit.session_key!r} is taken"))
        if admit.item is not None and self._taken_over(admit.item):
            text = f"a later try has taken map {admit.item.map_id!r} over, as this client had been silent for too long"
            return self._refuse(Receipt("error", error=text, limit="mapId"))
        if admit.ask is not None and admit.ask.thread and not thread:
            return self.threads.ask(client, requester, parent, entry.id, admit)
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
            task_name=admit.task_name,
            cleanup=admit.cleanup,
            facts=facts,
            stamp=stamp_of(s, requester, parent),
        )
        s.sessions[child.key] = child
        self._new_run(client, child, parent, requester, entry, admit)
        if facts is None:
            return Receipt("accepted", admit.run, child.key, entry.id)
        if facts.context == "fork":
            s.branch(requester, child)
        return Receipt(
            "accepted",
            admit.run,
            child.key,
            entry.id,
            model=facts.model,
            context=facts.context,
            attachments=facts.attachments,
        )

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
            text = f"{requester.key} may not spawn: agent {own.id!r} is declared with spawns=False; take that away"
            return Refusal("forbidden", text, "spawns")
        facts = SpawnFacts(
            requester_key=requester.key,
            requester_agent=requester.agent,
            depth=requester.depth,
            active_children=self._active_children(requester),
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
        return check_spawn(facts, limits) or self._per_call(operator, admit) or self.names.taken(requester, admit)

    def _active_children(self, requester: Session) -> int:
        """Children that count; those that are stale are looked for only where it depends on them (SPEC.md H3)."""
        if requester.active < self.s.limits.max_children:
            return requester.active
        own = (run for run in self.s.runs.values() if run.requester == requester.key)
        return requester.active - sum(counts_no_more(self.s, run) for run in own)

    def _per_call(self, operator: bool, admit: Admit) -> Refusal | None:
        """``ray.compat`` 2026.7 takes a child's timeout from the configuration alone (DESIGN.md 11)."""
        if operator or admit.route != "spawn" or admit.timeout is None or self.s.limits.compat is Compat.V2026_9:
            return None
        path = "agents.defaults.subagents.runTimeoutSeconds"
        text = f"runTimeoutSeconds is not taken with ray.compat {self.s.limits.compat.value}; set {path}"
        return Refusal("error", text, "runTimeoutSeconds", path=path)

    def _taken_over(self, item: MapItem) -> bool:
        """Whether another try holds the map's name: two of them would run an item twice."""
        held = self.s.claims.get(item.map_id)
        return held is not None and held.claim != item.claim

    def _may_spawn(self, own: AgentEntry, operator: bool) -> bool:
        """``spawns=False`` is held to, as the reserve rule counts such a session as a leaf (PROTOCOL.md 3.3)."""
        return own.spawns or operator

    def _stopping(self, parent: Run, operator: bool) -> bool:
        """Whether a stop mark lies on the parent or above; a client's root lives on after a stop (PROTOCOL.md 6.1)."""
        return not (operator and parent.route == "driver") and bool(lineage.bound_by_mark(self.s.runs, parent))

    def _new_run(
        self, client: str, session: Session, parent: Run, requester: Session, entry: AgentEntry, admit: Admit
    ) -> None:
        s = self.s
        spawns = entry.spawns and session.depth < s.depth_cap
        timeout = s.limits.run_timeout_seconds if admit.timeout is None else admit.timeout
        if admit.route == "ask":
            lane, width = ("main", s.limits.main_lane) if not session.depth else (nested_lane(session.key), 1)
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
            task_name=admit.task_name,
            input=admit.input,
            index=admit.index,
            transcripts=admit.transcripts,
            item=admit.item,
            talk=heir(parent.talk),
            client=client,
            kind=RunKind.MESSAGE if admit.route == "ask" else RunKind.TASK,
            deliver_to="" if admit.route == "ask" and not admit.expects else requester.key,
            delivery=(
                DeliveryState.PENDING if admit.route == "spawn" and admit.expects else DeliveryState.NOT_REQUIRED
            ),
            born_turn=parent.turns if admit.activation else 0,
            senders=None if admit.sender is None else Senders((admit.sender,), 1),
        )
        s.runs[run.id] = run
        session.last_run = run.id
        lineage.born(s.runs, run.id, run)
        self._reserve(requester)
        self.names.took(requester, run)
        s.touch(session)
        s.touch(run)
        s.event("run", run)
        self._in_line(session, run)

    def _reserve(self, requester: Session) -> None:
        """The child counts from here on, long before it has a process."""
        requester.active += 1

    def _in_line(self, session: Session, run: Run) -> None:
        """The serial lane: one run of a session at a time (PROTOCOL.md 5.6)."""
        session.aborted = False
        if session.run:
            session.waiting.append(run.id)
        else:
            session.run = run.id
            self.s.enqueue(run)


def _no_sender(requester: Session, operator: bool) -> str:
    """Why a message may not say who wrote it: only what the operator brings in has been written by anybody."""
    if operator:
        return "a notice is told with a turn of somebody else's: it has no sender; leave out mode or sender"
    return f"{requester.key} is a session: what it sends has no sender; leave it out"
