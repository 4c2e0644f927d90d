"""Taking one rule of PROTOCOL.md out of the protocol's classes, and schedules that need it.

A `Rule` names what to replace and schedules in which that shows: a directed one, or those of random seeds, of which the
first that breaks will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

import pytest

from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.testing.simulator import (
    Fault,
    Habits,
    Meddling,
    Operation,
    Plan,
    Program,
    Schedule,
    ScheduleBroken,
    Setup,
    Weather,
    describe,
    random_schedule,
    run_schedule,
)
from openclaw_ray.testing.simulator.generate import schedule_by

__all__ = ["Rule", "check", "directed", "expect_broken", "having", "hunt", "setup", "taken_out"]

Instead = tuple[object, str, object]
"""Owner, name, and what stands in its place while the rule is out."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        number: of the rule in PROTOCOL.md, and in words what it is.
        instead: what takes its place.
        schedules: the candidates; with the rule in place each of them holds.
        breaks: the invariants of which one breaks without it; empty for any.
    """

    number: str
    instead: tuple[Instead, ...]
    schedules: Callable[[], Iterable[Schedule]]
    breaks: tuple[str, ...] = ()


@contextmanager
def taken_out(*instead: Instead) -> Iterator[None]:
    """The rules are out for as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, value in instead:
            patch.setattr(owner, name, value)
        yield


def check(rule: Rule) -> ScheduleBroken:
    """Some schedule of the rule breaks without it and holds with it."""
    for schedule in rule.schedules():
        broken = breaks(schedule, *rule.instead)
        if broken is not None:
            assert not rule.breaks or broken.rule in rule.breaks, str(broken)
            run_schedule(schedule)
            return broken
    raise AssertionError(f"nothing breaks without {rule.number}")


def breaks(schedule: Schedule, *instead: Instead) -> ScheduleBroken | None:
    """How the schedule breaks with these rules out."""
    try:
        with taken_out(*instead):
            run_schedule(schedule)
    except ScheduleBroken as broken:
        return broken
    return None


def having(word: str, weather: Weather, count: int) -> Iterator[Schedule]:
    """So many seeded schedules of this weather in whose program ``word`` is."""
    fits = (s for seed in range(10_000) if word in describe((s := _seeded(weather, seed)).program))
    return islice(fits, count)


def _seeded(weather: Weather, seed: int) -> Schedule:
    return schedule_by(Random(f"{weather.value}-{seed}"), weather)


def expect_broken(instead: Instead, rule: str, schedules: Iterable[Schedule]) -> None:
    """Fail unless, with ``instead`` in place, one of these schedules breaks the invariant ``rule``."""
    broken: set[str] = set()
    with taken_out(instead):
        for schedule in schedules:
            try:
                run_schedule(schedule)
            except ScheduleBroken as error:
                broken.add(error.rule)
                if error.rule == rule:
                    return
    pytest.fail(f"{rule!r} never broke; {sorted(broken)} did")


def hunt(*weathers: Weather, first: int = 0, most: int = 150) -> Callable[[], Iterator[Schedule]]:
    """Random schedules of these weathers, by turns, from the seed ``first`` on."""

    def schedules() -> Iterator[Schedule]:
        for seed in range(first, first + most):
            for weather in weathers or tuple(Weather):
                yield random_schedule(seed, weather)

    return lambda: islice(schedules(), most * 5)


def setup(
    *, pool_max: int = 4, prewarm: int = 2, patience: float | None = None, leased: bool = True, **limits: object
) -> Setup:
    """A small runtime, whose idle actors stay."""
    plain: dict[str, object] = {"max_spawn_depth": 3, "pool_prewarm": pool_max, "pool_idle_seconds": 1000.0}
    made = RuntimeLimits(**{**plain, **limits})  # type: ignore[arg-type]
    return Setup(
        made, pool_max=pool_max, prewarm=prewarm, habits=Habits(slow=0.0), patience=patience, leased=leased
    )


def directed(
    plans: Mapping[int, Plan],
    *clients: tuple[Operation, ...],
    on: Setup | None = None,
    faults: Iterable[Fault] = (),
    meddling: Iterable[Meddling] = (),
    weather: str = "directed",
    seeds: int = 1,
) -> Callable[[], Iterator[Schedule]]:
    """One program on one runtime, under what is done to it; under a few seeds if it depends on small delays."""
    one = Schedule(
        0,
        Program(plans, clients),
        on or setup(),
        tuple(faults),
        tuple(meddling),
        weather=weather,
    )
    return lambda: (replace(one, seed=seed) for seed in range(seeds))
