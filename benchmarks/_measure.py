"""What all benchmarks share: percentiles, host facts, memory, and one JSON object on stdout."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from typing import Any, TextIO

__all__ = ["environment", "own_stdout", "percentiles", "print_report", "spread"]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p90, p99 and the most, in milliseconds."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 3)

    return {"p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": round(ordered[-1] * 1000, 3)}


def spread(figures: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {
        "median": round(statistics.median(figures), 4),
        "min": round(min(figures), 4),
        "max": round(max(figures), 4),
    }


def environment() -> dict[str, Any]:
    """Versions and the host, as far as they matter to the figures."""
    import psutil
    import ray

    import openclaw_ray

    return {
        "versions": {
            "openclaw_ray": openclaw_ray.__version__,
            "ray": ray.__version__,
            "python": platform.python_version(),
        },
        "host": {
            "cpus": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "system": f"{platform.system()} {platform.release()}",
            "load_before": [round(x, 2) for x in os.getloadavg()],
        },
    }


def own_stdout() -> TextIO:
    """Standard output for the report alone; what Ray prints to its driver goes to standard error from now on."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def print_report(report: dict[str, Any], out: TextIO) -> None:
    """The one JSON object."""
    json.dump(report, out, indent=2)
    out.write("\n")
    out.close()
