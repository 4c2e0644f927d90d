"""Faults that users of agent runtimes have reported in public, in virtual time: each with its right outcome."""

from __future__ import annotations

from collections import Counter

import pytest
from simulated_rules import directed, setup

from openclaw_ray.testing.simulator import (
    Ask,
    Die,
    Fail,
    Fault,
    FaultKind,
    Hang,
    Join,
    Map,
    Outline,
    Plan,
    Setup,
    Spawn,
    Stop,
    Work,
    Yield,
    run_schedule,
)

_short, _long = Plan(((Work(0.01),),)), Plan(((Work(0.5),),))
_one = (Spawn((1,)), Join())


def play(plans: dict[int, Plan], *client: object, on: Setup | None = None, faults: tuple[Fault, ...] = ()) -> Outline:
    [schedule] = directed(plans, client or _one, on=on, faults=faults)()  # type: ignore[arg-type]
    return run_schedule(schedule, looks=0.2)


def ends(outline: Outline) -> Counter[str]:
    return Counter(state.value for state in outline.states.values())


def test_of_fifty_spawns_at_once_at_a_cap_of_five_exactly_five_are_accepted() -> None:
    outline = play({1: Plan(((Spawn((2,) * 50), Join()),)), 2: _long}, on=setup(max_children=5))
    assert outline.runs == 1 + 5
    assert ends(outline) == {"succeeded": 6}


def test_five_ends_of_five_kinds_free_five_places_at_once() -> None:
    kinds = (
        Spawn((2,)),
        Spawn((3,)),
        Spawn((4,), timeout=0.3),
        Spawn((4,)),
        Spawn((5,)),
        Stop(3),
        Join(),
        Spawn((2,) * 6),
        Join(),
    )
    plans = {
        1: Plan((kinds,)),
        2: _short,
        3: Plan(((Fail(),),)),
        4: Plan(((Hang(),),)),
        5: Plan(((Work(0.05), Die()),)),
    }
    outline = play(plans, on=setup(max_children=5, pool_max=8, prewarm=8))
    assert ends(outline) == {"succeeded": 1 + 1 + 5, "failed": 2, "timed_out": 1, "cancelled": 1}


@pytest.mark.parametrize("global_lane", [False, True])
def test_a_chain_of_joins_finishes_at_max_concurrent_1(global_lane: bool) -> None:
    plans = {n: Plan(((Spawn((n + 1,)), Join()),)) for n in (1, 2, 3)}
    tight = setup(max_concurrent=1, global_lane=global_lane, max_spawn_depth=4, pool_max=5)
    outline = play({**plans, 4: _short}, on=tight)
    assert ends(outline) == {"succeeded": 4}


def test_six_roots_of_depth_five_and_fan_out_two_finish_on_six_actors() -> None:
    plans = {n: Plan(((Spawn((n + 1, n + 1)), Join()),)) for n in (1, 2, 3, 4)}
    outline = play({**plans, 5: _short}, Spawn((1,) * 6), Join(), on=setup(max_spawn_depth=5, pool_max=6, prewarm=6))
    assert ends(outline) == {"succeeded": 6 * 31}


def test_time_spent_queued_is_not_taken_from_a_runs_allowance() -> None:
    outline = play({1: _long}, Spawn((1,) * 5, timeout=1.0), Join(), on=setup(pool_max=1, max_spawn_depth=1))
    assert ends(outline) == {"succeeded": 5}


def test_a_yield_over_an_end_an_error_and_a_dead_process_is_one_wake() -> None:
    plans = {
        1: Plan(((Spawn((2, 3, 4)), Yield()),)),
        2: _short,
        3: Plan(((Fail(),),)),
        4: Plan(((Work(0.1), Die()),)),
    }
    outline = play(plans, on=setup(pool_max=6, prewarm=4))
    assert (outline.runs, outline.turns) == (4, 5)
    assert ends(outline) == {"succeeded": 2, "failed": 2}


def test_a_function_that_returns_before_its_children_is_called_once_and_ends_after_them() -> None:
    outline = play({1: Plan(((Spawn((2, 2)),),), again=True), 2: _long})
    assert (outline.runs, outline.turns) == (3, 3)


def test_a_map_wider_than_the_house_gives_all_its_results() -> None:
    outline = play({1: Plan(((Map((2,) * 20, 8),),)), 2: _short}, on=setup(max_children=3))
    assert (outline.runs, outline.maps) == (21, 1)


def test_a_stop_reaches_every_session_of_a_3_3_3_tree_and_two_are_forced() -> None:
    deaf = Plan(((Hang(),),), deaf=True)
    plans = {
        1: Plan(((Spawn((2, 2, 2)), Join()),)),
        2: Plan(((Spawn((3, 3, 3)), Join()),)),
        3: Plan(((Spawn((4, 4, 4)), Join()),)),
        4: Plan(((Hang(),),)),
        5: Plan(((Spawn((2, 2)), Spawn((6, 6)), Join()),)),
        6: deaf,
    }
    wide = setup(max_spawn_depth=4, pool_max=48, prewarm=48, max_concurrent=8, stop_grace_seconds=1.0)
    outline = play(plans, Spawn((1,)), Work(4.0), Stop(0, wait=True), on=wide)
    assert (ends(outline), outline.forced) == ({"cancelled": 40}, 0)
    outline = play(plans, Spawn((5,)), Work(4.0), Stop(0, wait=True), on=wide)
    assert (ends(outline), outline.forced) == ({"cancelled": 1 + 2 * 13 + 2}, 2)
    assert outline.seconds < 4.0 + 1.0 + 0.25 + 0.5


def test_queued_runs_of_a_stopped_tree_never_start() -> None:
    outline = play(
        {1: Plan(((Spawn((2,) * 5), Join()),)), 2: Plan(((Hang(),),))},
        Spawn((1,)),
        Work(1.0),
        Stop(0, wait=True),
        on=setup(max_concurrent=1, pool_max=6),
    )
    assert ends(outline) == {"cancelled": 6}
    assert outline.turns == 2


def test_a_registry_killed_in_a_map_of_a_thousand_loses_and_repeats_nothing() -> None:
    faults = tuple(Fault(FaultKind.REGISTRY, at=at) for at in (1.0, 4.0, 7.0))
    [schedule] = directed(
        {1: _short}, (Map((1,) * 1000, 16),), on=setup(pool_max=16, prewarm=16, max_spawn_depth=1), faults=faults
    )()
    outline = run_schedule(schedule, looks=0.0)
    assert (outline.runs, outline.turns, outline.maps) == (1000, 1000, 1)
    assert ends(outline) == {"succeeded": 1000}
    assert outline.faults >= 2


def test_sessions_killed_at_random_in_a_map_are_all_accounted_for() -> None:
    faults = tuple(Fault(FaultKind.SESSION, at=0.5 + 0.3 * i, target=7 * i) for i in range(10))
    [schedule] = directed(
        {1: Plan(((Work(0.2),),))},
        (Map((1,) * 200, 8),),
        on=setup(pool_max=8, prewarm=8, max_spawn_depth=1),
        faults=faults,
    )()
    outline = run_schedule(schedule, looks=0.0)
    assert outline.runs == 200
    counts = ends(outline)
    assert counts["succeeded"] + counts["failed"] == 200
    assert 0 < counts["failed"] <= 10


def test_a_pool_that_dies_fails_what_ran_and_what_was_queued_goes_on() -> None:
    [schedule] = directed(
        {1: Plan(((Work(1.0),),))},
        (Spawn((1,) * 6), Join()),
        on=setup(pool_max=2, prewarm=2, max_spawn_depth=1),
        faults=[Fault(FaultKind.POOL, at=0.7)],
    )()
    assert ends(run_schedule(schedule)) == {"failed": 2, "succeeded": 4}


@pytest.mark.parametrize("nth", range(4, 16))
def test_a_value_kept_between_two_turns_does_not_lock_them_out_when_the_registry_dies(nth: int) -> None:
    talker = Plan(((Work(0.01), Spawn((2,))),), follow_up=True, held=100_000)
    [schedule] = directed(
        {1: talker, 2: _long},
        (Ask("worker", 1),),
        on=setup(max_spawn_depth=1, pool_max=2, prewarm=1),
        faults=[Fault(FaultKind.BETWEEN, nth=nth)],
    )()
    assert ends(run_schedule(schedule)) == {"succeeded": 2}
