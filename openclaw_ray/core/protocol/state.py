"""The registry's state and its one way to change it: mutate, note what changed, commit, then act.

1. A handler changes records and says so (`State.touch`), adds transcript rows, events, downlink messages and effects.
2. `State.commit` writes all of it in one transaction. If that fails, memory is ahead of the journal and must be thrown
   away: the caller builds a new state from the journal, as after a crash.
3. Only then are effects performed and answers given (PROTOCOL.md 1.2).
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openclaw_ray.core.auth import NO_SCOPE
from openclaw_ray.core.clock import Clock
from openclaw_ray.core.compact import grown
from openclaw_ray.core.events import Event
from openclaw_ray.core.keys import mint_child
from openclaw_ray.core.lanes import Lanes, Waiting, WaitingQueue
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.metrics import Tally
from openclaw_ray.core.named_map import PAGE, item_key, page_key
from openclaw_ray.core.placement import asks
from openclaw_ray.core.protocol.exchange import Exchange
from openclaw_ray.core.protocol.hubstate import HubBatch
from openclaw_ray.core.protocol.journal import Journal, Write
from openclaw_ray.core.protocol.measuring import saw
from openclaw_ray.core.protocol.messages import Archive, Branch, DownMessage, Effect, Row
from openclaw_ray.core.protocol.records import Actor, Claim, Client, Mark, Receiver, ReuseClass, Run, Session, thaw
from openclaw_ray.core.protocol.thread_record import Thread

__all__ = ["AgentEntry", "State", "child_key", "table_of"]

child_key = mint_child


@grown
@dataclass(frozen=True, slots=True)
class AgentEntry:
    """An agent that the runtime knows: which bundle has its code, and its settings.

    ``modules`` go by value in that bundle; inputs for it are pickled with them by value, too. ``tools`` are the names
    of those that it has beside the ones of every session.
    """

    id: str
    bundle: str
    origin: str
    hash: str
    spawns: bool
    resumable: bool
    follow_up: bool
    limits: AgentLimits
    modules: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass
class _Batch:
    """What the next push to the hub holds."""

    messages: dict[str, list[tuple[int, DownMessage]]] = field(default_factory=dict)
    rows: list[tuple[int, str, bytes]] = field(default_factory=list)
    begins: list[tuple[str, int]] = field(default_factory=list)
    events: list[tuple[int, bytes]] = field(default_factory=list)


class State:
    """Records, indexes and pending writes of one registry incarnation."""

    def __init__(self, journal: Journal, limits: RuntimeLimits, clock: Clock, *, pool_max: int, cpus: int) -> None:
        self.journal = journal
        self.limits = limits
        self.clock = clock
        self.pool_max = pool_max
        self.cpus = cpus
        self.depth_cap = limits.max_spawn_depth
        self.incarnation = 0
        self.recovering = False
        self.seq = 0
        self.agents: dict[str, AgentEntry] = {}
        self.sessions: dict[str, Session] = {}
        self.runs: dict[str, Run] = {}
        self.actors: dict[str, Actor] = {}
        self.clients: dict[str, Client] = {}
        self.marks: dict[int, Mark] = {}
        self.claims: dict[str, Claim] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.news: dict[str, dict[str, None]] = {}
        """Session key -> exchanges that it is to hear of with its next turn."""
        self.threads: dict[str, Thread] = {}
        self.hosts: dict[tuple[str, str], str] = {}
        """(channel, account) -> the client that serves it now."""
        self.thread_news: dict[str, None] = {}
        """Threads of which somebody is to be told something with the next commit."""
        self.receivers: dict[str, Receiver] = {}
        self.lanes = Lanes()
        self.queue = WaitingQueue()
        self.root_load: dict[str, int] = {}
        self.started_runs = 0
        self.warm_starts = 0
        self.cold_starts = 0
        self.refused = 0
        self.retired_actors: dict[str, int] = {}
        self.warned: set[str] = set()
        self.next_archive: float | None = None
        self.auth_scopes: dict[str, str] = {}
        """Agent id -> the name of what its credential stores held when they were last looked at; not journaled."""
        self.tally: Tally | None = None
        """What is measured, while somebody collects it; not journaled."""
        self.effects: list[Effect] = []
        self._timers: list[tuple[float, str]] = []
        self._dirty: dict[tuple[str, str | int], Any] = {}
        self._retired: set[tuple[str, str | int]] = set()
        self._writes: list[Write] = []
        self._seq_written = 0
        self._batch = _Batch()
        self._out = _Batch()

    # ------------------------------------------------------------------ numbers

    def next_seq(self) -> int:
        """The next number of the journal: for runs, marks, rows and events alike."""
        self.seq += 1
        return self.seq

    @property
    def bound(self) -> int:
        """Actors that are starting, bound, releasing or hold an untaken value (PROTOCOL.md 3.3)."""
        return sum(1 for a in self.actors.values() if a.state in ("bound", "releasing", "dying"))

    def agent_ids(self) -> frozenset[str]:
        """Configured agents, those passed in code included."""
        return frozenset(self.agents)

    def reuse_class(self, entry: AgentEntry, root: str, run: str) -> ReuseClass:
        """The class that an actor must be of to run this (sandbox is a constant until it exists)."""
        reuse = self.limits.pool_reuse
        code = entry.bundle
        if reuse == "agent":
            code = f"{entry.bundle}/{entry.id}"
        elif reuse == "tree":
            code = f"{entry.bundle}@{root}"
        elif reuse == "never":
            code = f"{entry.bundle}#{run}"
        asked = asks(entry.limits.resources, entry.limits.scheduling, self.limits.pool_scheduling)
        return (code, self.auth_scopes.get(entry.id, NO_SCOPE), "none", asked)

    # ------------------------------------------------------------------ changes

    def touch(self, record: Run | Session | Actor | Client | Mark | Claim | Exchange | Thread) -> None:
        """Write ``record`` in this transaction."""
        match record:
            case Run():
                self._dirty[table_of(record), record.id] = record
            case Session():
                self._dirty["sessions", record.key] = record
                if self.sessions.get(record.key) is record:  # it may have left memory in this very transaction
                    self._retired.discard(("sessions", record.key))
            case Actor():
                self._dirty["actors", record.id] = record
            case Client():
                self._dirty["clients", record.id] = record
            case Mark():
                self._dirty["marks", record.seq] = record
            case Claim():
                self._dirty["claims", record.map_id] = record
            case Exchange():
                self._dirty["exchanges", record.id] = record
            case Thread():
                self._dirty["threads", record.id] = record

    def retire(self, record: Run | Session) -> None:
        """Write ``record`` for the last time: it leaves memory and is read from the journal from now on."""
        self.touch(record)
        if isinstance(record, Run):
            self._retired.add((table_of(record), record.id))
            self.runs.pop(record.id, None)
        else:
            self._retired.add(("sessions", record.key))
            self.sessions.pop(record.key, None)

    def forget_mark(self, seq: int) -> None:
        """A stop's report was got, or nobody is left to get it. One that others may ask for stays in the journal."""
        mark = self.marks.pop(seq, None)
        if mark is None:
            return
        if mark.kept:
            self.touch(mark)
            self._retired.add(("marks", seq))
        else:
            self.drop("marks", seq)

    def forget_client(self, client: str) -> None:
        """A process is gone: its courier, its downlink, and the reports of stops that it asked for."""
        self.clients.pop(client, None)
        self.drop("clients", client)
        for mark in [m for m in self.marks.values() if m.client == client and m.done]:
            self.forget_mark(mark.seq)

    def release_claims(self, *, claim: str = "", client: str = "", receiver: str = "") -> None:
        """These tries at named maps are over: by their own id, their client, or the downlink that they end with."""
        for held in list(self.claims.values()):
            if claim == held.claim or client == held.client or receiver == held.receiver:
                del self.claims[held.map_id]
                self.drop("claims", held.map_id)

    def item_ended(self, run: Run) -> None:
        """Keep how an item of a named map ended. One that was stopped did not end by itself: what is known of an
        earlier try stands."""
        item = run.item
        if item is None or not item.digest or run.index is None or run.state is RunState.CANCELLED:
            return
        data = pickle.dumps((run.index, item.digest, run.id, run.state.value), protocol=5)
        key, page = item_key(item.map_id, run.index, item.digest), page_key(item.map_id, run.index // PAGE)
        self._writes.append(Write("items", key, data, False, (page,)))

    def drop(self, table: str, key: str | int) -> None:
        """Delete a record."""
        self._dirty[table, key] = None

    def put_bundle(self, key: str, data: bytes) -> None:
        """Keep an agents' bundle."""
        self._writes.append(Write("bundles", key, data))

    def note(self, key: str, data: bytes) -> None:
        """Keep a fact about the whole runtime."""
        self._writes.append(Write("meta", key, data))

    def plan(self, number: int, data: bytes) -> None:
        """Keep something to be done at a time, of which ``number`` is made (`cleanup`)."""
        self._writes.append(Write("due", number, data))

    def event(self, kind: str, run: Run | None = None, **fields: Any) -> None:
        """Journal an event and tell the watchers."""
        at = self.clock.wall()
        if run is None:
            event = Event(self.next_seq(), at, kind, **fields)
        else:
            actor = self.actors.get(run.actor)
            event = Event(
                self.next_seq(),
                at,
                kind,
                run.session,
                run.id,
                run.agent,
                run.requester,
                run.root,
                run.depth,
                run.label,
                node=actor.node if actor else None,
                pid=actor.pid if actor else None,
                **{"state": run.state.value, **fields},
            )
        if self.tally is not None:
            saw(self.tally, kind, run, began="warm" in fields)
        data = pickle.dumps(event, protocol=5)
        self._writes.append(Write("events", event.seq, data))
        self._batch.events.append((event.seq, data))

    def row(self, agent: str, row: Row | Archive | Branch) -> None:
        """Put a transcript row on its way to the hub; it stays in the journal until the hub has acknowledged it."""
        number = self.next_seq()
        data = pickle.dumps(row, protocol=5)
        self._writes.append(Write("rows", number, pickle.dumps((agent, data), protocol=5)))
        self._batch.rows.append((number, agent, data))

    def host_row(self, session: Session, role: str, text: str, *, key: str, meta: dict[str, Any] | None = None) -> None:
        """A row that the runtime itself writes, idempotent by ``key``."""
        self.row(
            session.agent,
            Row(session.session_id, session.number, -1, role, text, self.clock.wall(), key, meta),
        )

    def archive(self, session: Session, *, keeps_files: bool = False) -> None:
        """Have the transcript renamed, after the rows that are on their way, and its attachments removed unless it
        keeps them."""
        facts = session.facts
        files = facts is not None and facts.attachments is not None and not keeps_files
        self.row(session.agent, Archive(session.session_id, self.clock.wall(), files))

    def branch(self, source: Session, child: Session) -> None:
        """Have the child's transcript begin with what the source's has once the rows on their way are in it."""
        self.row(child.agent, Branch(child.session_id, source.session_id))

    def begin(self, session: Session) -> None:
        """Tell the hub of a new activation, so that rows of older ones are refused from then on (PROTOCOL.md 7.4)."""
        self._batch.begins.append((session.session_id, session.number))

    def effect(self, effect: Effect) -> None:
        """Do this after the commit."""
        self.effects.append(effect)

    def to_hub(self, client: str, number: int, message: DownMessage) -> None:
        """A numbered downlink message, of what is committed, for a client that polls the hub."""
        self._out.messages.setdefault(client, []).append((number, message))

    # ------------------------------------------------------------------ time

    def at(self, when: float, run: Run) -> None:
        """Look at ``run`` at ``when`` (monotonic); an entry that no longer holds is harmless."""
        heapq.heappush(self._timers, (when, run.id))

    def next_timer(self) -> float | None:
        """When the next run is to be looked at."""
        return self._timers[0][0] if self._timers else None

    def due_runs(self, now: float) -> list[Run]:
        """The runs to look at now, each once."""
        found: dict[str, None] = {}
        while self._timers and self._timers[0][0] <= now:
            found[heapq.heappop(self._timers)[1]] = None
        return [self.runs[run_id] for run_id in found if run_id in self.runs]

    # ------------------------------------------------------------------ queue

    def enqueue(self, run: Run, *, resume: bool = False) -> None:
        """Have a run wait for what it needs to start, or a turn for its slot; one that is held waits for its word."""
        if run.interrupted:
            return
        self.queue.add(
            Waiting(
                run.id, run.root, run.lane, run.lane_width, run.reserve_depth, run.klass, run.seq, resume
            )
        )

    def load_of(self, root: str) -> int:
        """Actors that a root's sessions hold now; fairness goes by it."""
        return self.root_load.get(root, 0)

    def count_load(self, root: str, by: int) -> None:
        """A session of ``root`` has got an actor (1) or given it back (-1)."""
        load = self.root_load.get(root, 0) + by
        if load > 0:
            self.root_load[root] = load
        else:
            self.root_load.pop(root, None)

    @property
    def turns_running(self) -> int:
        """Turns that run, those that wait excluded: what ``maxActiveSessions`` counts."""
        return sum(1 for a in self.actors.values() if a.run and self._running(a.run))

    def _running(self, run_id: str) -> bool:
        run = self.runs.get(run_id)
        return run is not None and run.state is RunState.RUNNING

    # ------------------------------------------------------------------ commit

    @property
    def changed(self) -> bool:
        """True if there is something to commit."""
        return bool(self._dirty or self._writes)

    def commit(self) -> tuple[Effect, ...]:
        """Write this transaction and give the effects that may now be performed.

        Raises:
            JournalFault: nothing was kept; this state is ahead of the journal and must be thrown away.
        """
        if self._dirty or self._writes:
            writes = [self._write(table, key, record) for (table, key), record in self._dirty.items()]
            writes += self._writes
            if self.seq != self._seq_written:
                writes.append(Write("meta", "seq", str(self.seq).encode()))
                self._seq_written = self.seq
            self.journal.commit(writes)
            self._dirty.clear()
            self._retired.clear()
            self._writes.clear()
        self._release(self._batch)
        self._batch = _Batch()
        effects, self.effects = tuple(self.effects), []
        return effects

    def _write(self, table: str, key: str | int, record: Any) -> Write:
        if record is None:
            return Write(table, key, None)
        live = (table, key) not in self._retired
        columns: tuple[Any, ...] = ()
        if table == "runs":
            columns = (
                record.root,
                record.session,
                record.requester,
                record.agent,
                record.state.value,
                record.created,
                record.ended,
            )
        elif table == "sessions":
            columns = (record.root, record.requester, record.agent, record.state, record.created)
        return Write(table, key, record.freeze(), live, columns)

    def _release(self, batch: _Batch) -> None:
        out = self._out
        for client, messages in batch.messages.items():
            out.messages.setdefault(client, []).extend(messages)
        out.rows += batch.rows
        out.begins += batch.begins
        out.events += batch.events

    @property
    def client_waits(self) -> bool:
        """True if the next batch has a message for a client."""
        return bool(self._out.messages)

    def take_batch(self) -> HubBatch | None:
        """All that is committed and not yet pushed to the hub; `None` if there is nothing."""
        out = self._out
        if not (out.messages or out.rows or out.begins or out.events):
            return None
        self._out = _Batch()
        return HubBatch(out.messages, out.rows, out.begins, out.events)

    # ------------------------------------------------------------------ reading back

    def journaled_run(self, run_id: str) -> Run | None:
        """A run from memory or from the journal, as it is now: one may have left memory in this transaction."""
        run = self.runs.get(run_id)
        if run is not None:
            return run
        if ("runs", run_id) in self._dirty:
            written: Run | None = self._dirty["runs", run_id]
            return written
        data = self.journal.get("runs", run_id)
        return None if data is None else thaw_run(data)

    def journaled_session(self, key: str) -> Session | None:
        """A session from memory or from the journal, in the same way."""
        session = self.sessions.get(key)
        if session is not None:
            return session
        if ("sessions", key) in self._dirty:
            written: Session | None = self._dirty["sessions", key]
            return written
        data = self.journal.get("sessions", key)
        if data is None:
            return None
        found: Session = thaw(Session, data)
        return found

    def snapshot(self) -> Mapping[str, int]:
        """Counts for statistics and for the check that nothing leaks."""
        return {
            "runs": len(self.runs),
            "sessions": len(self.sessions),
            "actors": len(self.actors),
            "queued": len(self.queue),
            "slots": self.lanes.total,
            "receivers": len(self.receivers),
            "bound": self.bound,
        }


def table_of(run: Run) -> str:
    """Where a run is journaled: clients' roots, which take no turns, are kept apart from what lists show."""
    return "roots" if run.route == "driver" else "runs"


def thaw_run(data: bytes) -> Run:
    """A run from its journaled form."""
    run: Run = thaw(Run, data)
    return run
