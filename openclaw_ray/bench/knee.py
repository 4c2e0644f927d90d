"""The knee of a curve of throughput over concurrency: where more concurrency stops to pay. Pure.

1. The best throughput is the highest median among the points.
2. What differs by less than the tolerance is the same: a tenth, or as much as the rounds of one point differ among
   themselves (of all points the median), if that is more.
3. The knee is the lowest concurrency whose throughput is the same as the best: what comes after it only waits longer.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["TOLERANCE", "Point", "best", "knee", "tolerance"]

TOLERANCE = 0.10
"""Shares of throughput that count as nothing; a doubling of concurrency that gains less does not pay."""


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one concurrency.

    Attributes:
        concurrency: sessions at once.
        rates: sessions a second, one for each round.
        p50_ms, p99_ms: of one session, from its start to its end.
        memory_mb: of all session processes and the registry, when the point was measured.
        processes: session processes that were there.
    """

    concurrency: int
    rates: tuple[float, ...]
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    memory_mb: float = 0.0
    processes: int = 0

    @property
    def throughput(self) -> float:
        """Median of its rounds."""
        return statistics.median(self.rates)

    @property
    def noise(self) -> float:
        """The range of its rounds, as a share of the median."""
        return (max(self.rates) - min(self.rates)) / self.throughput if self.throughput else 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON form; `from_json` reads it."""
        return {
            "concurrency": self.concurrency,
            "rates": [round(rate, 2) for rate in self.rates],
            "p50_ms": round(self.p50_ms, 3),
            "p99_ms": round(self.p99_ms, 3),
            "memory_mb": round(self.memory_mb, 1),
            "processes": self.processes,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Point:
        """Out of its JSON form."""
        return cls(**{**data, "rates": tuple(data["rates"])})


@dataclass(frozen=True, slots=True)
class Knee:
    """Where the knee is.

    Attributes:
        point: the knee.
        best: the point of the best throughput.
        tolerance: share of throughput that counted as the same.
        falls: False if throughput still rose at the end of the curve: the knee may lie beyond it.
    """

    point: Point
    best: Point
    tolerance: float
    falls: bool


def tolerance(points: Sequence[Point]) -> float:
    """What counts as the same throughput among these points: see the module's text, 2."""
    return max(TOLERANCE, statistics.median(point.noise for point in points))


def best(points: Sequence[Point]) -> Point:
    """The point of the highest throughput; of equal ones the lowest concurrency.

    Raises:
        ValueError: there is no point.
    """
    if not points:
        raise ValueError("a knee needs at least one point")
    return min(points, key=lambda point: (-point.throughput, point.concurrency))


def knee(points: Sequence[Point]) -> Knee:
    """The knee of a curve.

    Raises:
        ValueError: there is no point.
    """
    top = best(points)
    same = tolerance(points)
    at = min(
        (point for point in points if point.throughput >= top.throughput * (1 - same)),
        key=lambda point: point.concurrency,
    )
    last = max(points, key=lambda point: point.concurrency)
    return Knee(at, top, same, falls=at is not last)
