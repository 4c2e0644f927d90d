"""The limit finder's rule: how far to raise concurrency, and what to recommend from what was measured. Pure.

1. Concurrency is doubled from point to point.
2. Raising ends when a bound is hit (memory, latency), when throughput fell or stayed the same over two doublings, or
   when the highest allowed concurrency was measured.
3. A point beyond a bound is left out of the recommendation. Of the others the knee is ``maxConcurrent``.
4. ``pool.max`` is what lets ``maxConcurrent`` sessions below one parent run together under the reserve rule
   (PROTOCOL.md 3.3): one process for each of them, and one for each level of waiting sessions. If memory does not
   hold that many, ``maxConcurrent`` is lowered until it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from openclaw_ray.bench.knee import Point, best, knee, tolerance

__all__ = ["Bounds", "Recommendation", "Why", "end_of_raising", "next_concurrency", "process_mb", "recommend"]

_TELLING = 4
"""Session processes by which two points must differ to tell what one takes."""


class Why(StrEnum):
    """Why raising ended."""

    FELL = "throughput fell"
    """More concurrency gave less."""
    FLAT = "throughput stayed the same"
    """Two doublings gave nothing."""
    MEMORY = "memory bound hit"
    """The processes took more than they may."""
    LATENCY = "latency bound hit"
    """A session took longer than it may."""
    HIGHEST = "highest concurrency measured"
    """Throughput still rose: the limit lies beyond what was tried."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What must not be exceeded.

    Attributes:
        memory_mb: of all session processes together.
        latency_ms: p99 of one session; `None` is no bound.
        highest: the highest concurrency to try.
        depth: ``maxSpawnDepth``: levels below a root.
        process_mb: what one more session process takes, where the points do not tell.
    """

    memory_mb: float
    latency_ms: float | None = None
    highest: int = 64
    depth: int = 5
    process_mb: float = 55.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to set.

    Attributes:
        max_concurrent: ``agents.defaults.subagents.maxConcurrent``.
        pool_max: ``ray.pool.max``.
        ended: why raising ended.
        reasons: sentences for people, the most telling first.
    """

    max_concurrent: int
    pool_max: int
    ended: Why
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "maxConcurrent": self.max_concurrent,
            "pool.max": self.pool_max,
            "ended": self.ended.value,
            "reasons": list(self.reasons),
        }


def end_of_raising(points: Sequence[Point], bounds: Bounds) -> Why | None:
    """Why concurrency is raised no further (2); `None` while it is."""
    if not points:
        return None
    last = points[-1]
    if last.memory_mb > bounds.memory_mb:
        return Why.MEMORY
    if bounds.latency_ms is not None and last.p99_ms > bounds.latency_ms:
        return Why.LATENCY
    if len(points) >= 3:
        same = tolerance(points)
        before = best(points[:-1]).throughput
        if last.throughput < before * (1 - same):
            return Why.FELL
        if max(p.throughput for p in points[-2:]) < best(points[:-2]).throughput * (1 + same):
            return Why.FLAT
    if last.concurrency >= bounds.highest:
        return Why.HIGHEST
    return None


def next_concurrency(points: Sequence[Point], bounds: Bounds) -> int | None:
    """Which concurrency to measure next (1); `None` if raising has ended."""
    if end_of_raising(points, bounds) is not None:
        return None
    return min(points[-1].concurrency * 2, bounds.highest) if points else 1


def recommend(points: Sequence[Point], bounds: Bounds) -> Recommendation:
    """What to set, from the points in the order in which they were measured (3, 4).

    Raises:
        ValueError: there is no point.
    """
    if not points:
        raise ValueError("a recommendation needs at least one point")
    ended = end_of_raising(points, bounds) or Why.HIGHEST
    within = [p for p in points if p.memory_mb <= bounds.memory_mb]
    if bounds.latency_ms is not None:
        within = [p for p in within if p.p99_ms <= bounds.latency_ms]
    reasons = [_why(ended, points[-1], bounds)]
    if not within:
        within = [min(points, key=lambda p: p.concurrency)]
        reasons.append("even the lowest concurrency is beyond a bound: it is recommended for want of a better one")
    found = knee(within)
    at = found.point
    reasons.append(
        f"{at.concurrency} at once gives {at.throughput:.1f} sessions/s, p99 {at.p99_ms:.1f} ms; the best within the "
        f"bounds is {found.best.throughput:.1f}/s at {found.best.concurrency}; less than {found.tolerance:.0%} apart "
        "counts as the same"
    )
    each = process_mb(points, bounds)
    wanted, room = at.concurrency, max(1, int(bounds.memory_mb // each))
    width = max(1, min(wanted, room - bounds.depth))
    pool = width + bounds.depth
    if width < wanted:
        reasons.append(
            f"lowered from {wanted} to {width}: {bounds.memory_mb:.0f} MB hold {room} processes of "
            f"{each:.0f} MB, and {bounds.depth} are kept for waiting parents"
        )
    reasons.append(f"pool.max is {width} + {bounds.depth}: one process for each level of waiting sessions besides")
    return Recommendation(width, pool, ended, tuple(reasons))


def process_mb(points: Sequence[Point], bounds: Bounds) -> float:
    """Memory of one more session process: as the points tell if they differ by four of them or more, else as assumed.

    Not less than a megabyte: a curve that falls says that something else shrank meanwhile.
    """
    low, high = (by(points, key=lambda p: p.processes) for by in (min, max))
    more = high.processes - low.processes
    if more < _TELLING:
        return bounds.process_mb
    return max(1.0, (high.memory_mb - low.memory_mb) / more)


def _why(ended: Why, last: Point, bounds: Bounds) -> str:
    at = f"at {last.concurrency} at once"
    match ended:
        case Why.MEMORY:
            return f"raising ended {at}: {last.memory_mb:.0f} MB, bound {bounds.memory_mb:.0f} MB"
        case Why.LATENCY:
            return f"raising ended {at}: p99 {last.p99_ms:.1f} ms, bound {bounds.latency_ms:g} ms"
        case Why.HIGHEST:
            return f"raising ended {at}, the most that was tried; the limit may lie beyond it (--highest)"
        case _:
            return f"raising ended {at}: {ended.value}"
