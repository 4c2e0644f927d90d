"""Stopping whole trees, from the call to the report that everything below is terminal.

* cooperative: every session waits where a cancel reaches it;
* deaf: one leaf sleeps in its thread and hears nothing, so its process is ended after the grace.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, of_rounds, percentiles
from openclaw_ray.bench.result import Measured, Skipped
from openclaw_ray.bench.rig import wait_until

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure", "tree_size"]

FULL = {"trees": [[1, 3], [2, 3], [3, 3], [1, 12], [4, 2]], "rounds": 20, "deaf_rounds": 5, "grace": 2.0}
QUICK = {"trees": [[1, 3], [2, 3], [3, 3]], "rounds": 5, "deaf_rounds": 2, "grace": 2.0}
_OF_THE_BUDGET = [3, 3]
_UP_WITHIN = 180.0


def tree_size(depth: int, fan: int) -> int:
    """Sessions of a tree: its top, and ``fan`` children each for ``depth`` levels below."""
    return sum(fan**level for level in range(depth + 1))


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    trees = [(int(depth), int(fan)) for depth, fan in config["trees"]]
    deepest = max(depth for depth, _ in trees) + 1
    largest = max(tree_size(*tree) for tree in trees)
    limits = {
        "maxSpawnDepth": deepest,
        "maxChildrenPerAgent": max(fan for _, fan in trees),
        "maxConcurrent": max(fan for _, fan in trees),
    }
    ray = {"stopGraceSeconds": float(config["grace"]), "pool": {"prewarm": largest, "max": largest + deepest}}
    found = Measured()
    with rig.runtime([_tree()], subagents=limits, ray=ray) as rt:
        rig.settled(rt, largest, within=_UP_WITHIN)
        for depth, fan in sorted(trees, key=lambda tree: tree_size(*tree)):
            for deaf in (0, 1):
                _stops(rig, rt, depth, fan, deaf, config, found)
    return found


def _stops(rig: Rig, rt: Runtime, depth: int, fan: int, deaf: int, config: Mapping[str, Any], found: Measured) -> None:
    size = tree_size(depth, fan)
    kind = "deaf" if deaf else "cooperative"
    rounds = int(config["deaf_rounds" if deaf else "rounds"])
    stops = [_one_stop(rt, depth, fan, deaf) for _ in range(rounds)]
    times, late = [lasted for lasted, _ in stops], sum(more for _, more in stops)
    if late:  # on a busy machine a session may not get to its cancel within the grace
        found.notes.append(f"{kind}, {size} sessions: {late} of {size * rounds} were ended by force, late, not deaf")
    rig.look(rt)
    name = f"{kind}_depth_{depth}_fan_{fan}"
    found.figures[name] = of_rounds([each * 1000 for each in times], "ms", Better.LESS)
    found.latency[name] = percentiles(times)
    point = {"kind": kind, "depth": depth, "fan": fan, "sessions": size}
    found.curves.setdefault("stop", []).append({**point, **found.latency[name]})
    if [depth, fan] == _OF_THE_BUDGET:
        found.budget[f"stop_{kind}_s"] = found.figures[name].median / 1000
    rig.say(f"  {size} sessions, {kind}: {found.figures[name].median:.0f} ms")


def _one_stop(rt: Runtime, depth: int, fan: int, deaf: int) -> tuple[float, int]:
    """Bring a tree up, stop it, and see that the report is right; gives the seconds, and how many sessions more than
    the deaf one were ended by force."""
    size = tree_size(depth, fan)
    receipt = rt.spawn(agent_id="tree", input=(depth, fan, bool(deaf)))
    states = ["running", "paused"]
    top = receipt.session_key
    up = wait_until(lambda: _waiting(rt, states, size) == size, _UP_WITHIN, every=0.05)
    if not up:
        rt.stop(top)
        raise Skipped(f"a tree of {size} sessions did not come up within {_UP_WITHIN:g} s")
    began = time.perf_counter()
    report = rt.stop(top)
    lasted = time.perf_counter() - began
    assert (report.stopped, report.failed) == (size, 0), f"{report.stopped} of {size} stopped, {report.failed} failed"
    assert report.forced >= deaf, f"{report.forced} forced, though a session was deaf"
    return lasted, report.forced - deaf


def _waiting(rt: Runtime, states: list[str], size: int) -> int:
    """Sessions that have come to where they wait."""
    rows = rt.runs(agent="tree", state=states, limit=2 * size)
    return sum(row.get("progress") == "waits" for row in rows)


def _tree() -> Any:
    import asyncio

    import openclaw_ray as oc

    @oc.agent(id="tree")
    async def tree(turn: oc.Turn) -> None:
        depth, fan, deaf = turn.input
        if depth:
            for number in range(fan):
                await turn.spawn(agent_id="tree", input=(depth - 1, fan, deaf and number == 0))
            turn.progress(text="waits")
            await turn.join()
        elif deaf:
            turn.progress(text="waits")
            time.sleep(3600)
        else:
            turn.progress(text="waits")
            await asyncio.sleep(3600)

    return tree
