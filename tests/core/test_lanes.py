"""Lanes, the reserve rule and the waiting queue, bare (DESIGN.md 9, PROTOCOL.md 3.2, 3.3)."""

from __future__ import annotations

import pytest

from openclaw_ray.core.lanes import Lanes, LaneStatistics, Waiting, WaitingQueue, may_bind


def waiting(run: str, age: int, **options: object) -> Waiting:
    made = {"root": "root", "lane": "lane", "lane_width": 1, "depth": 1, "klass": "class", **options}
    return Waiting(run=run, age=age, **made)  # type: ignore[arg-type]


# --------------------------------------------------------------------------- slots


def test_a_slot_taken_twice_by_one_generation_is_one_slot() -> None:
    lanes = Lanes()
    lanes.acquire("lane", 2, "run", 0)
    lanes.acquire("lane", 2, "run", 0)
    assert lanes.taken("lane") == lanes.total == 1


def test_a_slot_given_back_twice_is_harmless() -> None:
    lanes = Lanes()
    lanes.acquire("lane", 1, "run", 3)
    assert lanes.release("lane", "run", 3)
    assert not lanes.release("lane", "run", 3)
    assert lanes.free("lane", 1)


def test_an_older_generation_cannot_give_back_the_slot_of_a_newer_one() -> None:
    lanes = Lanes()
    lanes.acquire("lane", 1, "run", 1)
    lanes.acquire("lane", 1, "run", 2)
    assert not lanes.release("lane", "run", 1)
    assert not lanes.free("lane", 1)


def test_a_lane_is_free_below_its_width() -> None:
    lanes = Lanes()
    for run in ("a", "b"):
        assert lanes.free("lane", 2)
        lanes.acquire("lane", 2, run, 0)
    assert not lanes.free("lane", 2)
    assert lanes.statistics() == (LaneStatistics("lane", 2, 2),)


@pytest.mark.parametrize(("lane", "width"), [("", 1), ("lane", 0)])
def test_no_lane_and_width_0_are_unbounded(lane: str, width: int) -> None:
    lanes = Lanes()
    for run in "abcdef":
        lanes.acquire(lane, width, run, 0)
    assert lanes.free(lane, width)


def test_a_lane_that_nobody_holds_leaves_nothing_behind() -> None:
    lanes = Lanes()
    lanes.acquire("lane", 1, "run", 0)
    lanes.release("lane", "run", 0)
    assert lanes.statistics() == ()
    assert not lanes.release("other", "run", 0)


# --------------------------------------------------------------------------- the reserve rule


@pytest.mark.parametrize(
    ("bound", "depth", "may"),
    [(3, 5, True), (5, 5, True), (6, 5, False), (2, 2, True), (3, 2, False), (0, 0, True), (1, 0, False)],
)
def test_of_six_actors_a_run_leaves_one_for_each_level_below_it(bound: int, depth: int, may: bool) -> None:
    assert may_bind(bound, 6, depth, 5) is may


def test_a_run_below_the_cap_reserves_nothing_more() -> None:
    assert may_bind(5, 6, 9, 5)


# --------------------------------------------------------------------------- the queue


def picked(queue: WaitingQueue, load: dict[str, int] | None = None, *, never: str = "") -> str | None:
    found = queue.pick(lambda head: head.run != never and head.root != never, lambda root: (load or {}).get(root, 0))
    return found.run if found else None


def test_the_oldest_of_a_group_goes_first() -> None:
    queue = WaitingQueue()
    for run, age in (("first", 1), ("second", 2)):
        queue.add(waiting(run, age))
    assert picked(queue) == "first"
    queue.remove("first")
    assert picked(queue) == "second"


def test_what_may_not_start_is_skipped() -> None:
    queue = WaitingQueue()
    queue.add(waiting("head", 1, depth=1))
    queue.add(waiting("deeper", 2, depth=2))
    assert picked(queue, never="head") == "deeper"


def test_the_root_with_the_fewest_actors_goes_first() -> None:
    queue = WaitingQueue()
    queue.add(waiting("of a busy root", 1, root="busy"))
    queue.add(waiting("of a new one", 2, root="new"))
    assert picked(queue, {"busy": 3}) == "of a new one"
    assert picked(queue, {}) == "of a busy root"


def test_a_turn_that_wants_its_slot_back_is_ahead_of_new_starts() -> None:
    queue = WaitingQueue()
    queue.add(waiting("new", 1))
    queue.add(waiting("resumed", 9, root="busy", resume=True))
    assert picked(queue, {"busy": 5}) == "resumed"


def test_a_run_waits_once() -> None:
    queue = WaitingQueue()
    queue.add(waiting("run", 1))
    queue.add(waiting("run", 1, resume=True))
    assert len(queue) == 1
    assert "run" in queue
    queue.remove("run")
    queue.remove("run")
    assert len(queue) == 0
    assert picked(queue) is None


def test_all_that_waits_can_be_seen() -> None:
    queue = WaitingQueue()
    for i, klass in enumerate("aab"):
        queue.add(waiting(f"run{i}", i, klass=klass))
    assert {w.run for w in queue.waiting()} == {"run0", "run1", "run2"}
    assert {w.run for w in queue.heads()} == {"run0", "run2"}


def test_a_further_turn_of_an_older_run_goes_before_first_turns_of_newer_ones() -> None:
    queue = WaitingQueue()
    for run, age in (("newer", 5), ("newest", 9), ("older", 2)):
        queue.add(Waiting(run, "root", "", 0, 1, "class", age))
    order = []
    while (pick := queue.pick(lambda _: True, lambda _: 0)) is not None:
        order.append(pick.run)
        queue.remove(pick.run)
    assert order == ["older", "newer", "newest"]
