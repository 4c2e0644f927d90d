"""From the journal back into memory: what a new registry incarnation starts with (PROTOCOL.md 1.2, 2.3, 7.5).

1. Live records are read; everything worked out from them (lineage, counts, lanes, queue, pending completions,
   downlinks) is worked out anew.
2. A run that was granted keeps its actor; whether the actor has it is asked by `crew.Crew.begin_adoption`.
3. Rows and events that the hub has not acknowledged are pushed again.
"""

from __future__ import annotations

import pickle
from typing import Any

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import DeliveryState, RunState
from openclaw_ray.core.protocol.birth import ASK_AFTER
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.exchange import Exchange
from openclaw_ray.core.protocol.records import Actor, Claim, Client, Mark, Run, Session, thaw
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import Thread, ThreadState

__all__ = ["relate", "restore"]


def restore(s: State, down: Down) -> None:
    """Fill a new state from its journal (1)."""
    s.seq = s._seq_written = int(s.journal.get("meta", "seq") or b"0")
    for _, data in s.journal.live("bundles"):
        entries, _code, _paths = pickle.loads(data)
        for entry in entries:
            s.agents[entry.id] = entry
    _read(s, "clients", Client, s.clients, "id")
    _read(s, "sessions", Session, s.sessions, "key")
    _read(s, "actors", Actor, s.actors, "id")
    _read(s, "roots", Run, s.runs, "id")
    _read(s, "runs", Run, s.runs, "id")
    _read(s, "marks", Mark, s.marks, "seq")
    _read(s, "claims", Claim, s.claims, "map_id")
    _read(s, "exchanges", Exchange, s.exchanges, "id")
    _read(s, "threads", Thread, s.threads, "id")
    relate(s)
    for run in s.runs.values():
        _run(s, down, run)
    for client in s.clients.values():
        if client.root and not client.gone:
            down.open(client.id, client.id)
        elif client.id in s.actors:
            down.open(client.id, client.id, client.id)
    s.hosts = {c.channel[:2]: c.id for c in s.clients.values() if c.channel is not None and not c.gone}
    for thread in s.threads.values():
        s.thread_news[thread.id] = None
        requester = s.sessions.get(thread.requester)
        if thread.state is ThreadState.BINDING and requester is not None:
            requester.active += 1
    for mark in s.marks.values():
        mark.open = {r for r in mark.runs if r in s.runs and not s.runs[r].terminal}
    for number, data in s.journal.after("rows", 0, limit=1_000_000):
        agent, row = pickle.loads(data)
        s._out.rows.append((number, agent, row))


def _read(s: State, table: str, cls: type[Any], into: dict[Any, Any], key: str) -> None:
    for _, data in s.journal.live(table):
        record = thaw(cls, data)
        into[getattr(record, key)] = record


def relate(s: State) -> None:
    """Children, unsettled and living counts of every run, from who is whose parent."""
    for run in s.runs.values():
        run.children.clear()
        run.unsettled = run.live_below = 0
    for run in s.runs.values():
        parent = s.runs.get(run.parent)
        if parent is not None:
            parent.children[run.id] = None
            if not run.terminal:
                parent.unsettled += 1
        if not run.terminal:
            for above in lineage.ancestors(s.runs, run):
                above.live_below += 1


def _run(s: State, down: Down, run: Run) -> None:
    """One run's place in lanes, queue, its session and its requester."""
    now = s.clock.mono()
    session = s.sessions.get(run.session)
    if session is not None and not run.terminal:
        if not session.run:
            session.run = run.id
        elif session.run != run.id:
            session.waiting.append(run.id)
    requester = s.sessions.get(run.requester)
    if requester is not None and (not run.terminal or run.live_below):
        requester.active += 1
    if run.terminal:
        if run.deliver_to and run.delivery is not DeliveryState.SUSPENDED:
            target = s.sessions.get(run.deliver_to)
            if target is not None:
                target.pending[run.id] = None
        return
    if run.slot >= 0:
        s.lanes.acquire(run.lane, run.lane_width, run.id, run.slot)
    if run.actor:
        s.count_load(run.root, 1)
        down.open(run.activation, run.actor, run.actor)
        if run.expired or run.mark or lineage.bound_by_mark(s.runs, run):
            run.grace_at = now + s.limits.stop_grace_seconds
            s.at(run.grace_at, run)
        elif not run.confirmed:
            run.resend_at = now + ASK_AFTER
            s.at(run.resend_at, run)
        if run.resuming:
            s.enqueue(run, resume=True)
    elif run.state is RunState.QUEUED and session is not None and session.run == run.id:
        s.enqueue(run)
    if run.deadline is not None and not run.expired:
        s.at(run.deadline, run)
