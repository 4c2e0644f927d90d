"""Counting anew: what a registry keeps in memory must be what its records and its journal say.

`recount` works counters and indexes out of the records alone. `derived` is what a registry has beyond its records;
one that is made from the journal must have the same.
"""

from __future__ import annotations

from typing import Any

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import PauseReason, RunState
from openclaw_ray.core.protocol.executors import Executor, executor_of
from openclaw_ray.core.protocol.journal import MemoryJournal
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import ThreadState
from openclaw_ray.testing.simulator.setup import Setup

__all__ = ["derived", "leftovers", "recount", "registry_faults", "twin"]


def registry_faults(core: Registry, journal: MemoryJournal, setup: Setup) -> list[str]:
    """All differences between a registry's memory, a count of its records, and its twin from the journal."""
    found = recount(core.s)
    mine, other = derived(core.s), derived(twin(journal, setup, core).s)
    for name, value in mine.items():
        if other.get(name) != value:
            found.append(f"{name}: {value} in memory, {other.get(name)} from the journal")
    found += [f"{name}: only from the journal: {value}" for name, value in other.items() if name not in mine]
    return found


def twin(journal: MemoryJournal, setup: Setup, core: Registry) -> Registry:
    """A registry made from a copy of the journal."""
    return Registry(
        journal.copy(), setup.limits, core.s.clock, pool_max=setup.pool_max, cpus=setup.cpus
    )


# --------------------------------------------------------------------------- counters against records


def recount(s: State) -> list[str]:
    """Counters that are not what the records say."""
    found: list[str] = []
    for run in s.runs.values():
        children = {r.id for r in s.runs.values() if r.parent == run.id}
        if set(run.children) != children:
            found.append(f"{run.id} has children {set(run.children)}, records say {children}")
        open_children = sum(1 for c in children if not s.runs[c].terminal)
        if run.unsettled != open_children:
            found.append(f"{run.id} has {run.unsettled} unsettled children, records say {open_children}")
        below = sum(
            1 for r in s.runs.values() if not r.terminal and any(a is run for a in lineage.ancestors(s.runs, r))
        )
        if run.live_below != below:
            found.append(f"{run.id} has {run.live_below} living below, records say {below}")
    found += _sessions(s) + _slots(s) + _actors(s) + _executors(s)
    return found


def _executors(s: State) -> list[str]:
    open_runs = (run for run in s.runs.values() if not run.terminal and run.route != "driver")
    return [f"nothing brings {run.id} to its end" for run in open_runs if executor_of(s, run) is Executor.NONE]


def _sessions(s: State) -> list[str]:
    found: list[str] = []
    for session in s.sessions.values():
        active = sum(1 for r in s.runs.values() if r.requester == session.key and (not r.terminal or r.live_below))
        binding = (t for t in s.threads.values() if t.state is ThreadState.BINDING)
        active += sum(1 for t in binding if t.requester == session.key)
        if session.active != active:
            found.append(f"{session.key} has {session.active} active children, records say {active}")
        owned = [r.id for r in s.runs.values() if r.session == session.key and not r.terminal]
        if sorted(filter(None, [session.run, *session.waiting])) != sorted(owned):
            found.append(f"{session.key} has runs {session.run} {session.waiting}, records say {owned}")
        pending = {r.id for r in s.runs.values() if r.terminal and r.deliver_to == session.key}
        if set(session.pending) != pending:
            found.append(f"{session.key} has pending {set(session.pending)}, records say {pending}")
    return found


def _slots(s: State) -> list[str]:
    found: list[str] = []
    for run in s.runs.values():
        wants = run.state is RunState.QUEUED and s.sessions[run.session].run == run.id
        resumes = run.state is RunState.PAUSED and run.pause is PauseReason.WAITING
        queued = run.id in s.queue
        if (wants and not queued) or (queued and not (wants or resumes)):
            found.append(f"{run.id} is {run.state} and {'in' if queued else 'not in'} the queue")
    holders = {(run.lane, run.id, run.slot) for run in s.runs.values() if run.slot >= 0 and run.lane}
    taken = {(lane, run, gen) for lane, runs in s.lanes._taken.items() for run, gen in runs.items()}
    if holders != taken:
        found.append(f"slots are taken by {taken}, records say {holders}")
    return found


def _actors(s: State) -> list[str]:
    found: list[str] = []
    load: dict[str, int] = {}
    for run in s.runs.values():
        if run.in_turn:
            load[run.root] = load.get(run.root, 0) + 1
            actor = s.actors.get(run.actor)
            if actor is None or actor.run != run.id:
                found.append(f"{run.id} is on {run.actor}, which runs {actor.run if actor else 'nothing, it is gone'}")
    if load != s.root_load:
        found.append(f"roots hold {s.root_load} actors, records say {load}")
    for actor in s.actors.values():
        holding = [r.id for r in s.runs.values() if r.held_by == actor.id]
        runs = bool(actor.run) and actor.run in s.runs and s.runs[actor.run].in_turn
        if actor.state == "bound" and not runs:
            found.append(f"{actor.id} is bound without a live run ({actor.run!r})")
        if actor.state == "releasing" and not holding:
            found.append(f"{actor.id} is releasing and holds nothing")
        if actor.state == "idle" and (holding or runs):
            found.append(f"{actor.id} is idle and holds {holding}, runs {actor.run!r}")
    return found


# --------------------------------------------------------------------------- memory against journal


def derived(s: State) -> dict[str, Any]:
    """What a registry works out from its records, by name."""
    out: dict[str, Any] = {}
    for run in s.runs.values():
        out[f"run {run.id}"] = (
            set(run.children),
            run.unsettled,
            run.live_below,
            run.state,
            run.activation,
            run.slot,
            run.deliver_to,
        )
    for session in s.sessions.values():
        out[f"session {session.key}"] = (session.run, session.waiting, set(session.pending), session.active)
    for actor in s.actors.values():
        out[f"actor {actor.id}"] = (actor.state, actor.epoch, actor.run)
    for mark in s.marks.values():
        out[f"mark {mark.seq}"] = (mark.stop, mark.open, mark.done)
    for thread in s.threads.values():
        out[f"thread {thread.id}"] = (thread.session, thread.conversation, thread.state, thread.posts, thread.waiter)
    out["claims"] = {(c.map_id, c.claim, c.client, c.receiver) for c in s.claims.values()}
    out["lanes"] = s.lanes.statistics()
    out["load"] = s.root_load
    out["next archive"] = s.next_archive
    out["queue"] = {(w.run, w.resume, w.age) for w in s.queue.waiting()}
    return out


# --------------------------------------------------------------------------- at the end


def leftovers(s: State, dead_sessions: set[str]) -> list[str]:
    """What must be gone when all has ended. ``dead_sessions``: those that died with completions pending for them."""
    found = [f"{lane.taken} slots are taken in {lane.lane}" for lane in s.lanes.statistics()]
    if len(s.queue):
        found.append(f"{[w.run for w in s.queue.waiting()]} wait in the queue")
    for actor in s.actors.values():
        if actor.state not in ("idle", "growing"):
            found.append(f"{actor.id} is {actor.state}, run {actor.run!r}")
    for run in s.runs.values():
        if run.route == "driver" or (run.terminal and run.deliver_to in dead_sessions):
            continue
        held_up = run.terminal and any(
            s.runs[r].deliver_to in dead_sessions for r in lineage.subtree(s.runs, run.id) if r in s.runs
        )
        if not held_up:
            found.append(
                f"run {run.id} is {run.state}, deliver_to {run.deliver_to!r}, held by {run.held_by!r}, "
                f"{run.live_below} living below"
            )
    found += [f"mark {mark.seq} is kept" for mark in s.marks.values()]
    found += [f"map {claim.map_id} is claimed by {claim.client}" for claim in s.claims.values()]
    return found
