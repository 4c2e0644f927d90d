"""core.clock and core.ids."""

from __future__ import annotations

import uuid

import pytest

from openclaw_ray.core.clock import Clock, FakeClock, SystemClock
from openclaw_ray.core.ids import Ids, RandomIds, SeededIds


def test_a_fake_clock_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock(start=100.0)
    assert (clock.wall(), clock.mono()) == (100.0, 0.0)
    clock.advance(2.5)
    assert (clock.wall(), clock.mono()) == (102.5, 2.5)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_time_does_not_go_back(seconds: float) -> None:
    with pytest.raises(ValueError, match="advanced"):
        FakeClock().advance(seconds)


def test_the_system_clock_never_goes_back() -> None:
    clock: Clock = SystemClock()
    first = clock.mono()
    assert clock.mono() >= first
    assert clock.wall() > 1_700_000_000


@pytest.mark.parametrize("ids", [RandomIds(), SeededIds(1)], ids=["random", "seeded"])
def test_ids_are_uuids_of_version_4(ids: Ids) -> None:
    for made in (ids.uuid(), ids.run_id(), ids.session_id()):
        assert str(uuid.UUID(made)) == made
        assert uuid.UUID(made).version == 4
        assert uuid.UUID(made).variant == uuid.RFC_4122


def test_random_ids_differ() -> None:
    ids = RandomIds()
    assert len({ids.uuid() for _ in range(1000)}) == 1000


def test_the_same_seed_gives_the_same_ids() -> None:
    first, again, other = SeededIds(7), SeededIds(7), SeededIds(8)
    made = [first.run_id(), first.session_id(), first.uuid()]
    assert made == [again.run_id(), again.session_id(), again.uuid()]
    assert len({*made, other.uuid()}) == 4
