"""What brings an un-ended run to its end, and which un-ended run no longer counts (SPEC.md H3).

1. What has an un-ended run is its *executor*: a watched process, a place in line, children or a message that it waits
   for, or a start that is still to decide on it. Each of these brings it to its end by itself; a process that is known
   to have it proves it alive, whatever its age.
2. Without one, or with a start that never came to decide, it is *stale* once it is older than max(2 h, timeout + 60 s):
   it counts neither against ``maxChildrenPerAgent`` nor in lists; what lives below it counts.
"""

from __future__ import annotations

from enum import StrEnum

from openclaw_ray.core.lifecycle import PauseReason, RunState
from openclaw_ray.core.liveness import is_stale
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State

__all__ = ["Executor", "counts_no_more", "executor_of", "is_old"]


class Executor(StrEnum):
    """What brings an un-ended run to its end (1)."""

    PROCESS = "process"
    """A session process whose death would be noticed has a turn of it."""
    LINE = "line"
    """It waits for a slot, an actor, or its turn in its session."""
    CHILDREN = "children"
    """It has no turn, and goes on when the last of its children has ended."""
    MESSAGE = "message"
    """It has no turn, and goes on with the next message to its session (`telling`)."""
    HELD = "held"
    """It is of an older start; this one is to decide on it."""
    NONE = "none"
    """Nothing."""


def executor_of(s: State, run: Run) -> Executor:
    """What an un-ended run has (1)."""
    session = s.sessions.get(run.session)
    if session is None:
        return Executor.NONE
    if run.interrupted:
        return Executor.HELD
    if run.actor:
        actor = s.actors.get(run.actor)
        return Executor.PROCESS if actor is not None and actor.run == run.id else Executor.NONE
    if run.id in s.queue or (run.id in session.waiting and session.run in s.runs):
        return Executor.LINE
    if run.state is not RunState.PAUSED:
        return Executor.NONE
    if run.unsettled > 0:
        return Executor.CHILDREN
    return Executor.MESSAGE if run.pause is PauseReason.MESSAGE else Executor.NONE


def counts_no_more(s: State, run: Run) -> bool:
    """Whether an un-ended run is stale, with nothing that has it and nothing that lives below it (2)."""
    if run.terminal or run.live_below or run.route == "driver" or not is_old(s, run):
        return False
    return executor_of(s, run) in (Executor.NONE, Executor.HELD)


def is_old(s: State, run: Run) -> bool:
    """Whether its age proves nothing any more (2)."""
    started = None if run.started is None else round(run.started * 1000)
    return is_stale(round(run.created * 1000), started, round(run.timeout * 1000), round(s.clock.wall() * 1000))
