"""Knees and limits on made-up curves: one that bends, one that is flat, noisy ones, and what a bound does."""

from __future__ import annotations

import random

import pytest
from made_up import curve

from openclaw_ray.bench.knee import Point, knee
from openclaw_ray.bench.limit_rule import (
    Bounds,
    Recommendation,
    Why,
    end_of_raising,
    next_concurrency,
    process_mb,
    recommend,
)

ROOM = Bounds(memory_mb=100_000, highest=64)


def raised(points: list[Point], bounds: Bounds) -> list[Point]:
    """The points of a curve that a run of the finder would have measured."""
    seen: list[Point] = []
    while (wanted := next_concurrency(seen, bounds)) is not None:
        seen.append(next(point for point in points if point.concurrency == wanted))
    return seen


def found(points: list[Point], bounds: Bounds) -> tuple[list[Point], Recommendation]:
    seen = raised(points, bounds)
    return seen, recommend(seen, bounds)


def test_the_knee_is_where_more_concurrency_stops_to_pay() -> None:
    bends = knee(curve(100, 200, 390, 400, 405))
    assert (bends.point.concurrency, bends.best.concurrency, bends.falls) == (4, 16, True)
    rises = knee(curve(100, 200, 400, 800))
    assert (rises.point.concurrency, rises.falls) == (8, False)
    assert knee(curve(100, 99, 101, 100)).point.concurrency == 1
    with pytest.raises(ValueError, match="at least one point"):
        knee([])


def test_raising_ends_soon_after_the_knee() -> None:
    seen, said = found(curve(100, 200, 390, 400, 405, 400, 300), ROOM)
    assert [point.concurrency for point in seen] == [1, 2, 4, 8, 16]
    assert (said.max_concurrent, said.pool_max, said.ended) == (4, 9, Why.FLAT)


def test_a_flat_curve_is_left_at_the_lowest_concurrency() -> None:
    seen, said = found(curve(100, 100, 100, 100, 100), ROOM)
    assert len(seen) == 3
    assert (said.max_concurrent, said.ended) == (1, Why.FLAT)


def test_a_curve_that_falls_ends_at_once() -> None:
    seen, said = found(curve(100, 200, 400, 250, 100), ROOM)
    assert [point.concurrency for point in seen] == [1, 2, 4, 8]
    assert (said.max_concurrent, said.ended) == (4, Why.FELL)


def test_a_curve_that_still_rises_says_that_the_limit_lies_beyond() -> None:
    _, said = found(curve(100, 200, 400, 800), Bounds(100_000, highest=8))
    assert (said.max_concurrent, said.ended) == (8, Why.HIGHEST)
    assert "the limit may lie beyond" in said.reasons[0]


def test_the_last_step_goes_to_the_highest_and_no_further() -> None:
    assert next_concurrency(curve(1, 2, 4, 8), Bounds(1e6, highest=12)) == 12
    assert next_concurrency([], ROOM) == 1


@pytest.mark.parametrize("noise", [0.05, 0.15])
def test_noise_does_not_move_the_recommendation(noise: float) -> None:
    chance = random.Random(11)
    answers = set()
    for _ in range(50):
        points = [
            Point(
                point.concurrency,
                tuple(rate * (1 + chance.uniform(-noise, noise)) for rate in point.rates * 2),
                p99_ms=point.p99_ms,
                memory_mb=point.memory_mb,
                processes=point.processes,
            )
            for point in curve(100, 200, 400, 410, 410, 410, 410)
        ]
        answers.add(found(points, ROOM)[1].max_concurrent)
    assert answers == {4}


def test_memory_bounds_both_figures() -> None:
    bounds = Bounds(memory_mb=450, highest=64, depth=3, process_mb=999)
    seen, said = found(curve(100, 200, 400, 800, 1600, memory=50), bounds)
    assert said.ended is Why.MEMORY
    assert seen[-1].memory_mb > 450
    # 450 MB hold 9 processes of 50; three are kept for parents that wait
    assert (said.max_concurrent, said.pool_max) == (6, 9)
    assert any("lowered from 8 to 6" in reason for reason in said.reasons)


def test_what_a_process_takes_is_measured_where_the_points_differ_enough() -> None:
    assert process_mb(curve(1, 1, 1, memory=30), ROOM) == 55.0
    assert process_mb(curve(1, 1, 1, 1, memory=30), ROOM) == 30.0
    shrinks = [Point(1, (1.0,), memory_mb=90, processes=1), Point(8, (1.0,), memory_mb=80, processes=8)]
    assert process_mb(shrinks, ROOM) == 1.0


def test_latency_bounds_the_concurrency() -> None:
    bounds = Bounds(100_000, latency_ms=45, highest=64)
    seen, said = found(curve(100, 200, 400, 800, p99=10), bounds)
    assert [point.p99_ms for point in seen] == [10, 20, 40, 80]
    assert (said.max_concurrent, said.ended) == (4, Why.LATENCY)


def test_a_bound_that_is_too_low_for_anything_is_said() -> None:
    _, said = found(curve(100, 200), Bounds(100_000, latency_ms=5, highest=64))
    assert said.max_concurrent == 1
    assert any("even the lowest concurrency is beyond a bound" in reason for reason in said.reasons)
    tight = recommend(curve(100), Bounds(memory_mb=60, depth=5))
    assert (tight.max_concurrent, tight.pool_max) == (1, 6)


def test_a_point_survives_its_json_and_nothing_ends_before_it_began() -> None:
    [point] = curve(123.0, noise=0.1)
    assert Point.from_json(point.to_json()).throughput == pytest.approx(123.0, abs=0.01)
    assert end_of_raising([], ROOM) is None
    with pytest.raises(ValueError, match="at least one point"):
        recommend([], ROOM)
