"""One point of a curve over concurrency: many short sessions, so many at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import percentiles
from openclaw_ray.bench.knee import Point

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["measure_point", "timed_map"]


def timed_map(rt: Runtime, agent: str, items: Sequence[Any], width: int) -> tuple[float, list[float]]:
    """Map, and give the seconds of the whole and of each session: from its start, which is when it is granted a
    process, to its end, as the registry has them. Waiting for a place is not in it; times are whole milliseconds."""
    began = time.perf_counter()
    results = rt.map(agent, items, width=width)
    whole = time.perf_counter() - began
    assert len(results) == len(items)
    return whole, [result.raise_for_status().runtime_ms / 1000 for result in results]


def measure_point(
    rig: Rig, rt: Runtime, agent: str, items: Sequence[Any], *, width: int, rounds: int, warm_up: int
) -> Point:
    """A point: as many processes as it wants, a warm-up of ``warm_up`` items, then ``rounds`` rounds of all of them."""
    rig.grow(rt, width)
    timed_map(rt, agent, items[: max(1, min(warm_up, len(items)))], width)
    rates: list[float] = []
    each: list[float] = []
    for _ in range(rounds):
        whole, lasted = timed_map(rt, agent, items, width)
        rates.append(len(items) / whole)
        each += lasted
    latency = percentiles(each)
    memory = rig.look(rt)
    processes = sum(rt.stats().actors.values())
    rig.say(f"  {width} at once: {max(rates):.0f}/s, p50 {latency['p50_ms']:.1f} ms, {memory:.0f} MB")
    return Point(width, tuple(rates), latency["p50_ms"], latency["p99_ms"], memory, processes)
