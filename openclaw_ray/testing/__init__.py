"""Doubles and tools for tests, shipped: the protocol in virtual time, and a clock that stands still.

`simulate` runs the random schedule of a seed, `run_schedule` one that was put together by hand; see
`openclaw_ray.testing.simulator`. What kills and looks at real processes is in ``openclaw_ray.testing.chaos`` and
``openclaw_ray.testing.leaks``, waiting without sleeps in ``openclaw_ray.testing.eventually``. Nothing here imports Ray.
"""

from __future__ import annotations

from openclaw_ray.core.clock import FakeClock
from openclaw_ray.core.ids import SeededIds
from openclaw_ray.testing.simulator import (
    Outline,
    Schedule,
    ScheduleBroken,
    Weather,
    random_schedule,
    run_schedule,
    simulate,
)

__all__ = [
    "FakeClock",
    "Outline",
    "Schedule",
    "ScheduleBroken",
    "SeededIds",
    "Weather",
    "random_schedule",
    "run_schedule",
    "simulate",
]
