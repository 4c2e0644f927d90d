"""Chains: each session spawns the next one and waits for it, down to a depth; against bare actors that call each other.

The slope is what one more level costs. Every session of a chain keeps its process, so a chain needs as many.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, Figure, milliseconds, of_rounds, percentiles
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.rig import value_of

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"depths": [1, 2, 4, 8, 16], "rounds": 30}
QUICK = {"depths": [1, 2, 4, 8], "rounds": 10}


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    depths = sorted(int(depth) for depth in config["depths"])
    deepest, rounds = depths[-1], int(config["rounds"])
    found = Measured()
    subagents = {"maxSpawnDepth": deepest + 1}
    pool = {"prewarm": deepest, "max": 2 * deepest + 2}
    with rig.runtime([_chain()], subagents=subagents, ray={"pool": pool}) as rt:
        rig.settled(rt, deepest)
        for depth in depths:
            ours = [_ours(rt, depth) for _ in range(rounds + 2)][2:]
            theirs = _theirs(rig, depth, rounds)
            found.figures[f"chain_of_{depth}"] = milliseconds(ours)
            found.figures[f"bare_chain_of_{depth}"] = milliseconds(theirs)
            found.latency[f"chain_of_{depth}"] = percentiles(ours)
            found.curves.setdefault("depth", []).append(
                {"depth": depth, "p50_ms": found.latency[f"chain_of_{depth}"]["p50_ms"]}
            )
            rig.look(rt)
            rig.say(f"  {depth} deep: {found.figures[f'chain_of_{depth}'].median:.1f} ms")
    if deepest > depths[0]:
        first, last = found.figures[f"chain_of_{depths[0]}"], found.figures[f"chain_of_{deepest}"]
        bare_first, bare_last = (found.figures[f"bare_chain_of_{depth}"] for depth in (depths[0], deepest))
        levels = deepest - depths[0]
        slope, bare = (last.median - first.median) / levels, (bare_last.median - bare_first.median) / levels
        found.figures["one_more_level"] = Figure(
            slope, (last.low - first.high) / levels, (last.high - first.low) / levels, "ms", Better.LESS, rounds
        )
        if bare > 0:
            found.figures["one_more_level_vs_bare"] = of_rounds([slope / bare], "x", Better.LESS)
    return found


def _ours(rt: Runtime, depth: int) -> float:
    began = time.perf_counter()
    value = value_of(rt.result(rt.spawn(agent_id="chain", input=depth)))
    assert value == depth
    return time.perf_counter() - began


def _theirs(rig: Rig, depth: int, rounds: int) -> list[float]:
    ray = rig.ray()
    link = ray.remote(num_cpus=0)(_link())
    actors: list[Any] = []
    for _ in range(depth):
        actors.append(link.remote(actors[-1] if actors else None))
    try:
        times = []
        for _ in range(rounds + 2):
            began = time.perf_counter()
            assert ray.get(actors[-1].call.remote()) == depth
            times.append(time.perf_counter() - began)
        return times[2:]
    finally:
        for actor in actors:
            ray.kill(actor)


def _link() -> type[Any]:
    class Link:
        def __init__(self, below: Any) -> None:
            self.below = below

        def call(self) -> int:
            import ray

            return 1 + (ray.get(self.below.call.remote()) if self.below is not None else 0)

    return Link


def _chain() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="chain")
    async def chain(turn: oc.Turn) -> int:
        if turn.input == 1:
            return 1
        receipt = await turn.spawn(agent_id="chain", input=turn.input - 1)
        [done] = await turn.join([receipt])
        below: Any = done.result.raise_for_status().value
        return 1 + int(below)

    return chain
