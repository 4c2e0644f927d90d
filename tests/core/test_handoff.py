"""core.handoff: how long one hand-off of a completion lasts (SPEC.md A1, ``announceTimeoutMs``)."""

from __future__ import annotations

import pytest

from openclaw_ray.core.handoff import HandOff


def course(timeout: float, until: float) -> tuple[list[float], list[float]]:
    """When it is said again, and when one is over, if nobody ever answers."""
    hand_off, said, over = HandOff.at(0.0), [], []
    while (now := hand_off.look_at(timeout)) <= until:
        if hand_off.over(now, timeout):
            over.append(now)
            hand_off = hand_off.anew(now)
        if hand_off.is_said_again:
            said.append(now)
            hand_off = hand_off.again(now)
    return said, over


@pytest.mark.parametrize(
    ("timeout", "said", "over"),
    [
        (120.0, [5, 15, 35], [120, 240]),
        (30.0, [5, 15, 30], [30, 60, 90, 120, 150, 180, 210, 240]),
        (5.0, [5, 10, 15], list(range(5, 251, 5))),
        (1.0, [1, 2, 3], list(range(1, 251))),
        (1000.0, [5, 15, 35], []),
    ],
)
def test_it_is_said_three_times_more_and_is_over_after_its_time(
    timeout: float, said: list[float], over: list[float]
) -> None:
    assert course(timeout, 250.0) == (said, over)


def test_its_time_counts_from_when_the_receiver_was_told_first_and_not_from_a_repeat() -> None:
    late = HandOff.at(100.0).again(105.0).again(115.0)
    assert not late.over(219.9, 120.0)
    assert late.over(220.0, 120.0)


def test_a_next_one_has_its_whole_time_again() -> None:
    assert HandOff.at(0.0).again(5.0).again(15.0).again(35.0).anew(120.0).look_at(120.0) == 240.0
