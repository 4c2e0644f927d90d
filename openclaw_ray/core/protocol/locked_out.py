"""Runs that wait for resources which sessions hold that wait for them: none of them would ever go on (SCENARIOS.md 74).

A session that waits in join or map keeps its process, and with it what its agent asks of Ray. That is no harm unless
those below it need the same.

1. A waiting session is *stuck* on a resource if something below it lives, and all of that waits itself or is queued for
   a process that needs this resource. What runs below it, or could, may bring it on.
2. A run is locked out if all that the cluster has, less what stuck sessions hold, is not enough for it.
3. It ends with `CannotPlace`, and so do its kind below the same stuck session, the oldest such session alone: that one
   goes on, and what it then frees may do for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import PauseReason, RunState
from openclaw_ray.core.placement import Asks, amounts
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State

__all__ = ["locked_out"]


def locked_out(s: State, asked: Asks, total: Mapping[str, float]) -> tuple[list[Run], dict[str, float]]:
    """The queued runs of this key that are to end, and what stuck sessions hold of what they need.

    Args:
        asked: what the processes of these runs ask for.
        total: what the cluster has of it, by the same names.
    """
    needs = amounts(asked)
    queued = [s.runs[each.run] for each in s.queue.waiting() if not each.resume]
    alike = [run for run in queued if _asks_of(run) == asked]
    stuck: dict[str, Run] = {}
    held = dict.fromkeys(needs, 0.0)
    for actor in s.actors.values():
        holds = {name: amount for name, amount in amounts(actor.resources).items() if name in needs}
        holder = s.runs.get(actor.run)
        if holds and holder is not None and any(_is_stuck(s, holder, name) for name in holds):
            stuck[holder.id] = holder
            for name, amount in holds.items():
                held[name] += amount
    if not any(total.get(name, 0.0) - held[name] < amount for name, amount in needs.items()):
        return [], held
    for holder in sorted(stuck.values(), key=lambda run: run.seq):
        below = [run for run in alike if any(above is holder for above in lineage.ancestors(s.runs, run))]
        if below:
            return below, held
    return [], held


def _is_stuck(s: State, holder: Run, name: str) -> bool:
    if not _waits(holder) or not holder.live_below:
        return False
    return all(
        _waits(run) or (run.state is RunState.QUEUED and name in amounts(_asks_of(run))) for run in _below(s, holder)
    )


def _waits(run: Run) -> bool:
    """Whether its process is kept, or its session has none, until others have ended."""
    return run.state is RunState.PAUSED and not run.resuming and run.pause is not PauseReason.MESSAGE


def _below(s: State, top: Run) -> Iterator[Run]:
    found = (s.runs.get(run_id) for run_id in lineage.subtree(s.runs, top.id))
    return (run for run in found if run is not None and run is not top and not run.terminal)


def _asks_of(run: Run) -> Asks:
    return run.klass[3]
