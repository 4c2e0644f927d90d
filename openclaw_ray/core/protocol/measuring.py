"""What of the registry's transitions and state is measured (`openclaw_ray.core.metrics`): one place, off every rule.

1. Transitions are seen where their events are made: `State.event` calls `saw` if there is a tally.
2. What a limit refused is counted from the step's receipts; what a tool policy denied, the session's process tells.
3. The rest, as it is now, is read by `gauges` once a look, from indexes that the registry has anyhow.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from openclaw_ray.core import metrics as m
from openclaw_ray.core.lifecycle import result_status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openclaw_ray.core.protocol.messages import Admit
    from openclaw_ray.core.protocol.records import Run
    from openclaw_ray.core.protocol.state import State
    from openclaw_ray.core.results import Receipt

__all__ = ["gauges", "saw", "saw_refused"]

_TOOLS = {"spawn": "sessions_spawn", "map": "sessions_spawn", "steer": "subagents"}
"""By route; messages have several."""
_ACTOR_STATES = ("growing", "idle", "lent", "bound", "releasing", "dying")


def saw(tally: m.Tally, kind: str, run: Run | None, *, began: bool) -> None:
    """An event is being journaled; ``began``: it is a turn's start (1)."""
    if kind == "pool":
        tally.count(m.WORKERS_STARTED)
    if kind != "run" or run is None or run.route == "driver":
        return
    tally.count(m.SESSION_STATE, run.state.value)
    if run.state.terminal:
        tags = (result_status(run.state).value, run.route)
        tally.count(m.RUN_COMPLETED, *tags)
        if run.started is not None and run.ended is not None:
            tally.sample(m.RUN_DURATION, *tags, seconds=run.ended - run.started)
    elif began:
        tally.count(m.TURN_CREATED, run.agent, run.kind)
        if run.turns == 1 and run.started is not None:
            tally.sample(m.LANE_WAIT, m.lane_word(run.lane), seconds=run.started - run.created)


def saw_refused(tally: m.Tally, admits: Sequence[Admit], receipts: Sequence[Receipt]) -> None:
    """Those of a step's spawns and messages that were refused (2)."""
    for admit, receipt in zip(admits, receipts, strict=True):
        if not receipt.accepted:
            tally.count(m.BLOCKED, _TOOLS.get(admit.route, "sessions_send"), receipt.limit or receipt.status)


def gauges(s: State) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """(metric, values of its tags, value) of all that is as it is now; each tag that there can be has one (3)."""
    waiting: Counter[str] = Counter(dict.fromkeys(m.LANES, 0))
    for lane, count in s.queue.by_lane():
        waiting[m.lane_word(lane)] += count
    for word, count in waiting.items():
        yield m.LANE_SIZE, (word,), count
    running = s.turns_running
    yield m.SESSIONS, ("queued",), len(s.queue)
    yield m.SESSIONS, ("running",), running
    yield m.SESSIONS, ("waiting",), sum(1 for a in s.actors.values() if a.run) - running
    states = Counter(actor.state for actor in s.actors.values())
    for state in _ACTOR_STATES:
        yield m.WORKERS, (state,), states[state]
