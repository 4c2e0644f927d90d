"""Figures: medians with ranges, percentiles by rank, ratios round by round, fairness."""

from __future__ import annotations

import random

import pytest

from openclaw_ray.bench.figures import (
    Better,
    Figure,
    fairness,
    in_turn,
    milliseconds,
    of_rounds,
    percentiles,
    rates,
    ratio,
    rounded,
)


def test_a_figure_of_rounds_is_their_median_with_the_least_and_the_most() -> None:
    found = of_rounds([3.0, 1.0, 2.0], "ms", "less")
    assert (found.median, found.low, found.high, found.count) == (2.0, 1.0, 3.0, 3)
    assert found.spread == 1.0
    assert rates(100, [2.0, 1.0]).median == 75.0
    with pytest.raises(ValueError, match="at least one round"):
        of_rounds([], "ms", "less")


def test_percentiles_are_by_nearest_rank() -> None:
    found = percentiles([value / 1000 for value in range(1, 101)])
    assert found == {"p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "max_ms": 100.0}
    assert set(percentiles([0.002]).values()) == {2.0}


def test_the_range_of_a_median_holds_the_true_one_in_95_of_100_draws() -> None:
    chance = random.Random(7)
    inside = 0
    for _ in range(400):
        found = milliseconds([chance.expovariate(1.0) / 1000 for _ in range(60)])
        inside += found.low <= 0.693147 <= found.high
    assert 0.93 <= inside / 400 <= 1.0
    few = milliseconds([0.001, 0.002, 0.009])
    assert (few.low, few.median, few.high) == (1.0, 2.0, 9.0)


def test_a_ratio_is_taken_round_by_round_so_that_a_slow_minute_falls_out() -> None:
    ours, theirs = [1.0, 4.0, 2.0], [0.5, 2.0, 1.0]
    found = ratio(theirs, ours, Better.MORE)
    assert (found.median, found.low, found.high) == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="2 rounds of one contender, 1 of the other"):
        ratio([1.0, 2.0], [1.0], "more")


def test_contenders_take_turns_after_a_round_of_each_to_warm_up() -> None:
    assert in_turn("ab", 2) == [(-1, "a"), (-1, "b"), (0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_fairness_counts_starts_only_while_all_roots_have_some_to_start() -> None:
    in_turn_starts = {"long": [0, 2, 4, 6, 8, 10], "short": [1, 3, 5]}
    assert fairness(in_turn_starts) == 1.0  # type: ignore[arg-type]
    by_age = {"long": [0, 1, 2, 3, 4, 5], "short": [6, 7, 8]}
    assert fairness(by_age) < 0.8  # type: ignore[arg-type]
    one_has_all = {"a": [float(n) for n in range(1_000)], "b": [1_000.0]}
    assert fairness(one_has_all) == pytest.approx(0.5, abs=0.01)
    with pytest.raises(ValueError, match="at least one start"):
        fairness({"a": [1.0], "b": []})


def test_numbers_keep_four_digits_that_mean_something() -> None:
    assert [rounded(value) for value in (0.0, 0.00123456, 1.23456, 123.456, 123456.7)] == [
        0.0,
        0.001235,
        1.235,
        123.5,
        123457.0,
    ]


def test_a_figure_survives_its_json() -> None:
    found = Figure(2.0, 1.0, 3.0, "ms", Better.LESS, 4)
    assert Figure.from_json(found.to_json()) == found
    with pytest.raises(ValueError, match="sideways"):
        Figure.from_json({**found.to_json(), "better": "sideways"})
