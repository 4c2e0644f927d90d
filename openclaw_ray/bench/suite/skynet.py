"""Skynet: a tree in which each session has ten children, down to numbered leaves whose sum is the checksum; against the
same tree of Ray tasks.

A session that waits for its children keeps its process, so the breadth of the tree is bounded by ``width``: so many
children of one session at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, in_turn, rates, ratio
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.rig import value_of

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"levels": 3, "width": 4, "rounds": 3, "processes": 32}
QUICK = {"levels": 2, "width": 5, "rounds": 2, "processes": 12}
_WAYS = 10


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    levels, width, processes = (int(config[name]) for name in ("levels", "width", "processes"))
    size = _WAYS**levels
    sessions = sum(_WAYS**level for level in range(levels + 1))
    limits = {"maxSpawnDepth": levels + 1, "maxChildrenPerAgent": _WAYS, "maxConcurrent": width}
    found = Measured(facts={"sessions": sessions, "checksum": _checksum(size)})
    seconds: dict[str, list[float]] = {"sessions": [], "tasks": []}
    with rig.runtime(
        [_skynet(), _leaf()], subagents=limits, ray={"pool": {"prewarm": processes, "max": processes}}
    ) as rt:
        rig.settled(rt, processes)
        for number, name in in_turn(seconds, int(config["rounds"])):
            lasted = _ours(rt, size, width) if name == "sessions" else _theirs(rig, size)
            rig.look(rt)
            rig.say(f"  round {number + 1}: {sessions} {name}, {sessions / lasted:.0f}/s")
            if number >= 0:
                seconds[name].append(lasted)
    for name, values in seconds.items():
        found.figures[name] = rates(sessions, values)
    found.figures["sessions_vs_tasks"] = ratio(seconds["tasks"], seconds["sessions"], Better.MORE)
    return found


def _checksum(size: int) -> int:
    return size * (size - 1) // 2


def _ours(rt: Runtime, size: int, width: int) -> float:
    began = time.perf_counter()
    value = value_of(rt.result(rt.spawn(agent_id="skynet", input=(0, size, width))))
    lasted = time.perf_counter() - began
    assert value == _checksum(size), f"the checksum of {size} leaves is {_checksum(size)}, not {value}"
    return lasted


def _theirs(rig: Rig, size: int) -> float:
    ray = rig.ray()

    @ray.remote  # type: ignore[untyped-decorator]
    def skynet(first: int, size: int) -> int:
        if size == 1:
            return first
        import ray

        part = size // 10
        below = [again.remote(first + number * part, part) for number in range(10)]
        return sum(ray.get(below))

    again = skynet
    began = time.perf_counter()
    assert ray.get(skynet.remote(0, size)) == _checksum(size)
    return time.perf_counter() - began


def _skynet() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="skynet")
    async def skynet(turn: oc.Turn) -> int:
        first, size, width = turn.input
        part = size // 10
        below = [(first + number * part, part, width) for number in range(10)]
        results = await turn.map("leaf" if part == 1 else "skynet", below, width=width)
        return sum(int(result.raise_for_status().value or 0) for result in results)

    return skynet


def _leaf() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="leaf", spawns=False)
    def leaf(turn: oc.SyncTurn) -> int:
        return int(turn.input[0])

    return leaf
