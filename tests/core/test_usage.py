"""Usage: sums per subtree, the unknown marked and never taken for zero (SCENARIOS.md M 85)."""

from __future__ import annotations

from openclaw_ray.core.results import Usage


def test_reports_of_one_run_add_up_field_by_field() -> None:
    total = Usage(input_tokens=1).plus(Usage(output_tokens=2)).plus(Usage(1, 1, 0.5))
    assert total == Usage(2, 3, 0.5)


def test_what_nobody_reported_stays_unknown() -> None:
    assert Usage().plus(Usage()).unknown
    assert Usage().with_below(Usage()) == Usage()


def test_a_part_that_reported_nothing_makes_the_sum_partial() -> None:
    below = Usage().with_part(Usage(1, 1)).with_part(Usage()).with_part(Usage(2, 2))
    assert below == Usage(3, 3, partial=True)
    assert Usage(4, 4).with_below(below) == Usage(7, 7, partial=True)


def test_a_parent_that_reported_nothing_is_such_a_part() -> None:
    assert Usage().with_below(Usage().with_part(Usage(5, 5))) == Usage(5, 5, partial=True)


def test_with_all_parts_known_the_sum_is_whole() -> None:
    below = Usage().with_part(Usage(1, 1)).with_part(Usage(2, 2))
    assert Usage(4, 4).with_below(below) == Usage(7, 7)


def test_a_partial_part_makes_the_sum_partial() -> None:
    assert Usage(1, 1).with_below(Usage().with_part(Usage(2, 2, partial=True))).partial
