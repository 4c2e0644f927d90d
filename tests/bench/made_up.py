"""Results of runs that never were."""

from __future__ import annotations

import copy
from typing import Any

from openclaw_ray.bench.figures import Better, Figure
from openclaw_ray.bench.knee import Point

__all__ = ["curve", "document", "figure", "result"]

HOST = {"cpus": 2, "memory_gib": 8.0, "system": "Linux 6", "load_before": [0.1, 0.1, 0.1]}
VERSIONS = {"openclaw_ray": "0.1.0", "ray": "2.60.0", "python": "3.11.7"}


def curve(*rates: float, noise: float = 0.0, p99: float = 10.0, memory: float = 50.0) -> list[Point]:
    """Points at 1, 2, 4, … with these rates, ``noise`` to both sides of each, and latency and memory that double."""
    return [
        Point(
            2**place,
            (rate * (1 - noise), rate, rate * (1 + noise)),
            p50_ms=p99 * 2**place / 2,
            p99_ms=p99 * 2**place,
            memory_mb=memory * 2**place,
            processes=2**place,
        )
        for place, rate in enumerate(rates)
    ]


def figure(median: float, low: float | None = None, high: float | None = None, better: str = "more") -> Figure:
    """A figure; without a range of its own one of 1 % to both sides."""
    low, high = median * 0.99 if low is None else low, median * 1.01 if high is None else high
    return Figure(median, low, high, "1/s", Better(better), 5)


def result(name: str = "fork_join", **parts: Any) -> dict[str, Any]:
    """One benchmark's."""
    return {
        "benchmark": name,
        "quick": True,
        "config": {"width": 16},
        "seconds": 1.5,
        "figures": {},
        "latency": {},
        "curves": {},
        "budget": {},
        "budget_notes": {},
        "facts": {},
        "notes": [],
        "peak_memory_mb": 120.5,
        "versions": VERSIONS,
        "host": HOST,
        **parts,
    }


def document(*results: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A run's."""
    made = {"quick": True, "seconds": 12.0, "versions": VERSIONS, "host": HOST, "results": list(results), **parts}
    return copy.deepcopy(made)
