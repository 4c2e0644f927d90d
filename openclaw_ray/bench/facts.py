"""Versions and the host, as far as they matter to figures: no names, no addresses, no paths."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

__all__ = ["facts"]


def facts() -> dict[str, Any]:
    """``versions`` and ``host``; the load is that of now, so ask before anything is measured."""
    import psutil

    import openclaw_ray

    return {
        "versions": {
            "openclaw_ray": openclaw_ray.__version__,
            "ray": metadata.version("ray"),
            "python": platform.python_version(),
        },
        "host": {
            "cpus": len(os.sched_getaffinity(0)),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "system": f"{platform.system()} {platform.release()}",
            "load_before": [round(load, 2) for load in os.getloadavg()],
        },
    }
