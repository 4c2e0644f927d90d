"""One fault at every point of a schedule: with each transaction of the registry something dies, or its commit fails.

``OPENCLAW_RAY_SCHEDULES`` makes it more programs: one for each 400.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from openclaw_ray.testing.simulator import Fault, FaultKind, Weather, random_schedule, run_schedule

PROGRAMS = max(1, int(os.environ.get("OPENCLAW_RAY_SCHEDULES", "400")) // 400)
FIRST = int(os.environ.get("OPENCLAW_RAY_FIRST_SEED", "0")) + 3

POINTS = {
    "the registry dies before it has done or said anything": Fault(FaultKind.BETWEEN),
    "the registry dies after the first effect": Fault(FaultKind.BETWEEN, target=1),
    "the commit fails": Fault(FaultKind.COMMIT),
    "the registry dies when all is on its way": Fault(FaultKind.REGISTRY, at=-1.0),
    "the oldest session process dies": Fault(FaultKind.SESSION, at=-1.0),
    "the next one is declared dead and lives on": Fault(FaultKind.CUT_OFF, at=-1.0, target=1, lasts=2.5),
    "the hub dies": Fault(FaultKind.HUB, at=-1.0),
    "the pool dies": Fault(FaultKind.POOL, at=-1.0),
}


@pytest.mark.parametrize("point", POINTS)
def test_no_invariant_breaks_wherever_it_happens(point: str) -> None:
    schedules = 0
    for seed in range(FIRST, FIRST + PROGRAMS):
        calm = random_schedule(seed, Weather.CALM)
        for nth in range(1, run_schedule(calm).transactions + 1):
            faulty = replace(calm, faults=(replace(POINTS[point], nth=nth),), weather=point, origin=-1)
            run_schedule(faulty, looks=0.0)
            schedules += 1
    assert schedules >= 20 * PROGRAMS
