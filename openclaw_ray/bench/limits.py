"""The limit finder: measures one point after the other until its rule says that it is enough, and recommends.

The rule is `openclaw_ray.bench.limit_rule`; here is what it is asked about. The agent of the measurement works for a
while on the CPU and waits for a while, as told: a limit is one for that mix.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.facts import facts
from openclaw_ray.bench.knee import Point
from openclaw_ray.bench.limit_rule import Bounds, Recommendation, next_concurrency, recommend
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.sweep import measure_point

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig

__all__ = ["default_bounds", "find_limits"]

_SPARE = 0.8
"""Share of the available memory that session processes may take if nobody says."""


def default_bounds(*, memory_mb: float | None, latency_ms: float | None, highest: int, depth: int) -> Bounds:
    """Bounds for this host; the memory that is there now, less a fifth, if none is given."""
    import psutil

    memory = psutil.virtual_memory().available / 2**20 * _SPARE if memory_mb is None else memory_mb
    return Bounds(memory, latency_ms, highest, depth)


def find_limits(
    rig: Rig, bounds: Bounds, *, cpu_ms: float, wait_ms: float, seconds: float, rounds: int
) -> tuple[dict[str, Any], Recommendation]:
    """Measure, and give the result as JSON with the recommendation.

    Args:
        cpu_ms, wait_ms: what each session does.
        seconds: how long one round of a point is to last, about.
        rounds: of each point.
    """
    here = facts()
    began = time.monotonic()
    points: list[Point] = []
    pool = {"prewarm": 2, "max": bounds.highest + bounds.depth}
    limits = {"maxSpawnDepth": bounds.depth}
    with rig.runtime([_worker()], subagents=limits, ray={"pool": pool}) as rt:
        while (width := next_concurrency(points, bounds)) is not None:
            expected = points[-1].throughput if points else 1000 / (cpu_ms + wait_ms + 10)
            items = [(cpu_ms, wait_ms)] * max(3 * width, int(expected * seconds))
            points.append(measure_point(rig, rt, "worker", items, width=width, rounds=rounds, warm_up=6 * width))
    said = recommend(points, bounds)
    measured = rig.take_peak(
        Measured(curves={"concurrency": [point.to_json() for point in points]}, notes=list(said.reasons))
    )
    config: Mapping[str, Any] = {
        "cpu_ms": cpu_ms,
        "wait_ms": wait_ms,
        "rounds": rounds,
        "memory_mb": round(bounds.memory_mb),
        "latency_ms": bounds.latency_ms,
        "highest": bounds.highest,
        "depth": bounds.depth,
    }
    head = {"benchmark": "limits", "quick": False, "config": config, "seconds": round(time.monotonic() - began, 1)}
    return {**head, **measured.to_json(), "recommendation": said.to_json(), **here}, said


def _worker() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="worker", spawns=False)
    def worker(turn: oc.SyncTurn) -> str:
        cpu_ms, wait_ms = turn.input
        until = time.thread_time() + cpu_ms / 1000
        while time.thread_time() < until:
            pass
        if wait_ms:
            time.sleep(wait_ms / 1000)
        return "ok"

    return worker
