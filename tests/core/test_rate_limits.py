"""core.rate_limits: never above the rate, never above the places, fair between roots, nothing lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_ray.core.rate_limits import LimitRule, RateLimit, Wanted


def served(limit: RateLimit, until: float, now: float = 0.0) -> list[tuple[float, str]]:
    """When each that waits is let in, if the clock is looked at just when it has to be."""
    out = []
    while (at := limit.next_at(now)) is not None and at <= until:
        now = max(now, at)
        granted = limit.grant(now)
        assert granted, "next_at named a time at which nobody may go on"
        out += [(now, one.id) for one in granted]
    return out


def line(limit: RateLimit, count: int, root: str = "root", cost: float = 1.0) -> None:
    for number in range(count):
        limit.ask(Wanted(f"{root}-{number}", root, cost))


def test_no_window_has_more_than_the_rate() -> None:
    limit = RateLimit(LimitRule("api", rate=20), now=0.0)
    line(limit, 100)
    times = [at for at, _ in served(limit, 10.0)]
    assert len(times) == 100
    for begin in times:
        assert sum(begin <= at < begin + 1.0 - 1e-9 for at in times) <= 20


def test_a_burst_gathers_while_nobody_asks_and_no_further() -> None:
    limit = RateLimit(LimitRule("api", rate=10, burst=3), now=0.0)
    line(limit, 2)
    assert len(limit.grant(0.0)) == 2
    line(limit, 5, "later")
    assert len(limit.grant(100.0)) == 3


@given(
    st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.5, 3.0), st.integers(0, 2)), min_size=1, max_size=40),
    st.floats(0.5, 50.0),
    st.floats(0.1, 10.0),
    st.floats(1.0, 5.0),
)
def test_what_is_let_in_is_never_more_than_came_in(
    asks: list[tuple[float, float, int]], rate: float, per: float, burst: float
) -> None:
    limit = RateLimit(LimitRule("api", rate=rate, per=per, burst=burst), now=0.0)
    spent, events = 0.0, sorted(asks)
    for number, (at, cost, root) in enumerate(events):
        limit.ask(Wanted(str(number), str(root), cost))
        for one in limit.grant(at):
            # before the last one: no more had been taken than the bucket had at first and what came since
            cost_of = events[int(one.id)][1]
            assert spent + min(cost_of, burst) <= burst + at * rate / per + 1e-6
            spent += cost_of


def test_one_that_costs_more_than_the_burst_leaves_a_debt() -> None:
    limit = RateLimit(LimitRule("tokens", rate=100, per=60, burst=50), now=0.0)
    limit.ask(Wanted("large", "root", 150))
    limit.ask(Wanted("small", "root", 1))
    assert [one.id for one in limit.grant(0.0)] == ["large"]
    at = limit.next_at(0.0)
    assert at == pytest.approx(101 * 60 / 100)


def test_places_are_given_back_once() -> None:
    limit = RateLimit(LimitRule("gpu", concurrent=2), now=0.0)
    line(limit, 4)
    assert [one.id for one in limit.grant(0.0)] == ["root-0", "root-1"]
    assert limit.next_at(0.0) is None
    assert limit.give_back("root-0")
    assert not limit.give_back("root-0")
    assert [one.id for one in limit.grant(0.0)] == ["root-2"]
    assert limit.give_back("root-3"), "one that waits leaves the line"
    assert (len(limit.out), limit.waiting) == (2, 0)


def test_roots_that_wait_are_let_in_by_turns() -> None:
    limit = RateLimit(LimitRule("api", rate=10), now=0.0)
    line(limit, 100, "many")
    served(limit, 2.0)
    line(limit, 20, "few")
    first = Counter(name.split("-")[0] for _, name in served(limit, 6.0, 2.0))
    assert abs(first["many"] - first["few"]) <= 1
    assert sum(first.values()) == 40


def test_one_who_was_away_is_not_paid_for_it() -> None:
    limit = RateLimit(LimitRule("api", rate=1), now=0.0)
    line(limit, 60, "steady")
    served(limit, 49.0)
    line(limit, 20, "late")
    names = [name.split("-")[0] for _, name in served(limit, 59.0, 49.0)]
    assert names.count("late") <= 6


def test_a_large_one_is_not_overtaken() -> None:
    limit = RateLimit(LimitRule("api", rate=1, burst=10), now=0.0, tokens=0.0)
    limit.ask(Wanted("large", "a", 8))
    limit.ask(Wanted("small", "a", 1))
    assert [name for _, name in served(limit, 20.0)] == ["large", "small"]


def test_backing_off_holds_everybody_for_the_longest_time() -> None:
    limit = RateLimit(LimitRule("api", rate=100, burst=10), now=0.0)
    line(limit, 3)
    limit.back_off(5.0, 0.0)
    limit.back_off(2.0, 1.0)
    assert limit.grant(4.99) == []
    assert limit.next_at(1.0) == 5.0
    assert len(limit.grant(5.0)) == 3


def test_a_rule_may_change_while_some_are_out() -> None:
    limit = RateLimit(LimitRule("gpu", concurrent=3), now=0.0)
    line(limit, 5)
    limit.grant(0.0)
    limit.change(LimitRule("gpu", concurrent=1), 0.0)
    for number in range(2):
        limit.give_back(f"root-{number}")
        assert limit.grant(0.0) == []
    limit.give_back("root-2")
    assert [one.id for one in limit.grant(0.0)] == ["root-3"]
