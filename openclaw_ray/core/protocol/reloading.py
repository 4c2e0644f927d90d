"""New limits in a running registry (DESIGN.md 11, SCENARIOS.md 64).

1. All of it is one entry: committed whole, or the registry goes on with the old limits.
2. A turn that runs keeps what it was started with; a run keeps the timeout that it was spawned with.
3. Lanes are of the spawning session, not of the turn: runs that wait are looked at under the new width at once. A
   narrower lane stops nobody; it lets nobody in until it has room.
4. The limits are kept for this boot of the runtime, so that a registry that is started again has them, too. The next
   start of the runtime brings its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace

from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.protocol.journal import Journal
from openclaw_ray.core.protocol.state import State

__all__ = ["kept_limits", "reload"]

_KEY = "limits"


def reload(s: State, limits: RuntimeLimits, agents: Mapping[str, AgentLimits], boot: str) -> None:
    """Put new limits in force.

    Args:
        limits: the runtime's. What a runtime has for life (depth, pool size, journal) must be as it was.
        agents: new limits of agents that are known; the others keep theirs.
        boot: the runtime's start for which they hold.
    """
    s.limits = limits
    for agent, own in agents.items():
        if agent in s.agents:
            s.agents[agent] = replace(s.agents[agent], limits=own)
    for key, data in list(s.journal.live("bundles")):
        entries, code, paths = pickle.loads(data)
        known = tuple(replace(entry, limits=agents.get(entry.id, entry.limits)) for entry in entries)
        s.put_bundle(str(key), pickle.dumps((known, code, paths), protocol=5))
    _change_widths(s)
    s.note(_KEY, pickle.dumps((boot, limits), protocol=5))


def _change_widths(s: State) -> None:
    """Give the lanes of the runtime's own making their new width (3)."""
    queued = {waiting.run: waiting.resume for waiting in s.queue.waiting()}
    for run in s.runs.values():
        if run.lane == "main":
            width = s.limits.main_lane
        elif run.lane == "subagent" or run.lane.startswith("subagent:"):
            width = s.limits.max_concurrent
        else:
            continue
        if run.lane_width != width:
            run.lane_width = width
            s.touch(run)
            if run.id in queued:
                s.queue.remove(run.id)
                s.enqueue(run, resume=queued[run.id])


def kept_limits(journal: Journal, boot: str, first: RuntimeLimits) -> RuntimeLimits:
    """The limits in force: those of the last reload in this boot, else those that it began with (4)."""
    data = journal.get("meta", _KEY)
    if data is None:
        return first
    of, limits = pickle.loads(data)
    return limits if of == boot else first
