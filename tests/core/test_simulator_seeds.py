"""Thousands of seeded schedules, and generated ones that shrink, over the invariants of DESIGN.md 3.

``OPENCLAW_RAY_SCHEDULES`` (schedules for each weather, 400 by default) and ``OPENCLAW_RAY_FIRST_SEED`` make a longer
round of it. A broken schedule says how to replay it.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openclaw_ray.testing.simulator import Schedule, Weather, run_schedule, simulate
from openclaw_ray.testing.simulator.generate import schedule_by

EACH = int(os.environ.get("OPENCLAW_RAY_SCHEDULES", "400"))
FIRST = int(os.environ.get("OPENCLAW_RAY_FIRST_SEED", "0"))


@pytest.mark.parametrize("weather", list(Weather))
@pytest.mark.timeout(max(120, EACH))
def test_no_invariant_breaks_in_seeded_schedules(weather: Weather) -> None:
    outlines = [simulate(seed, weather) for seed in range(FIRST, FIRST + EACH)]
    assert len(outlines) == EACH
    assert sum(outline.runs for outline in outlines) > 3 * EACH
    assert sum(outline.turns for outline in outlines) > 3 * EACH
    if weather is not Weather.CALM:
        assert sum(outline.faults for outline in outlines) > EACH / 2


def test_a_round_has_at_least_two_thousand_schedules() -> None:
    assert EACH * len(Weather) >= 2000


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """The generator's schedules, with hypothesis for its dice, so that a broken one shrinks."""
    return schedule_by(draw(st.randoms(use_true_random=False)), draw(st.sampled_from(list(Weather))))


@given(schedules())
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
def test_no_invariant_breaks_in_generated_schedules(schedule: Schedule) -> None:
    run_schedule(schedule)
