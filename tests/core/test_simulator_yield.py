"""Yields, messages that are waited for, and steers in the simulator: every race of a small program, under one fault at
each of its transactions (SPEC.md B3, G4; SCENARIOS.md 17)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated_rules import Rule, check, directed, setup
from test_simulator_points import POINTS

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol import ending, yielding
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.testing.simulator import (
    Join,
    Operation,
    Plan,
    Schedule,
    Spawn,
    Steer,
    Stop,
    Tell,
    Work,
    Yield,
    run_schedule,
)

_short, _long = Plan(((Work(0.02),),)), Plan(((Work(0.4),),))
_waits = Plan(((Yield(message=True),), ()))
_both = Plan(((Spawn((4, 5)), Yield(message=True)), (Work(0.01),), ()))
"""Has two children and waits for a message, too."""
_again = Plan(((Spawn((4,)), Yield()), (Spawn((5,)), Yield())))
"""A second batch during the wake of the first."""
_quiet = Plan(((Spawn((5,), expects=False), Spawn((4,)), Yield()), ()))

PROGRAMS: dict[str, tuple[dict[int, Plan], tuple[Operation, ...]]] = {
    "told while it waits": ({1: _waits, 9: _short}, (Spawn((1,)), Work(0.3), Tell(0, 9))),
    "told before it waits": (
        {1: Plan(((Work(0.2), Yield(message=True)), ())), 9: _short},
        (Spawn((1,)), Tell(0, 9), Tell(0, 9)),
    ),
    "told while its children are at work": (
        {1: _both, 4: _short, 5: _long, 9: _short},
        (Spawn((1,)), Work(0.2), Tell(0, 9)),
    ),
    "told when its batch is complete": (
        {1: _both, 4: _short, 5: _short, 9: _short},
        (Spawn((1,)), Work(0.05), Tell(0, 9)),
    ),
    "stopped while it waits": ({1: _waits}, (Spawn((1,)), Work(0.3), Stop(0, wait=True))),
    "a batch after a batch": ({1: _again, 4: _short, 5: _short}, (Spawn((1,)),)),
    "a quiet child beside the batch": ({1: _quiet, 4: _short, 5: _long}, (Spawn((1,)),)),
    "steered in its turn": ({1: _long, 2: _short}, (Spawn((1,)), Work(0.1), Steer(0, 2))),
    "steered in the moment of its end": ({1: _short, 2: _short}, (Spawn((1,)), Work(0.02), Steer(0, 2))),
    "steered and stopped": ({1: _long, 2: _long}, (Spawn((1,)), Work(0.1), Steer(0, 2), Stop(0, wait=True))),
    "steered while it yields": (
        {1: Plan(((Spawn((4, 5)), Yield()),)), 2: _short, 4: _short, 5: _long},
        (Spawn((1,)), Work(0.2), Steer(0, 2)),
    ),
    "steered with children at work": (
        {1: Plan(((Spawn((4, 5)), Join()),)), 2: _short, 4: _short, 5: _long},
        (Spawn((1,)), Work(0.2), Steer(0, 2)),
    ),
    "steered by its parent, which joins it": (
        {1: Plan(((Spawn((3, 4)), Work(0.1), Steer(0, 2), Join()),)), 2: _short, 3: _long, 4: _short},
        (Spawn((1,)),),
    ),
    "steered by its parent, which yields": (
        {1: Plan(((Spawn((3, 4)), Work(0.1), Steer(0, 2), Yield()), ())), 2: _short, 3: _long, 4: _short},
        (Spawn((1,)),),
    ),
    "steered and deaf": ({1: replace(_long, deaf=True), 2: _short}, (Spawn((1,)), Work(0.1), Steer(0, 2))),
    "steered before its first turn": (
        {1: Plan(((Spawn((3, 3, 4)), Steer(2, 2), Join()),)), 2: _short, 3: _long, 4: _long},
        (Spawn((1,)),),
    ),
}


def schedule(name: str) -> Schedule:
    plans, client = PROGRAMS[name]
    [one] = directed(plans, client, on=setup(pool_max=6, max_concurrent=2, stop_grace_seconds=0.3))()
    return one


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_ends_well_and_under_one_fault_at_each_transaction(name: str) -> None:
    calm = schedule(name)
    outline = run_schedule(calm)
    assert RunState.FAILED not in outline.states.values()
    if not name.startswith("stopped") and "stopped" not in name:
        assert RunState.SUCCEEDED in outline.states.values()
    for number, point in enumerate(POINTS):
        for nth in range(1 + number % 3, outline.transactions + 1, 3):
            run_schedule(replace(calm, faults=(replace(POINTS[point], nth=nth),), weather=point), looks=0.05)


RULES = {
    "the batch is what the wake waits for": Rule(
        "5.4",
        ((Ending, "batch_complete", lambda self, run: True),),
        lambda: [schedule("told while its children are at work")],
    ),
    "ends of the batch are kept for the wake": Rule(
        "yielding 3",
        ((yielding, "given", lambda s, run, session: tuple(session.pending)),),
        lambda: [schedule("told while its children are at work")],
    ),
    "what was in line is told": Rule(
        "telling 4",
        ((ending, "take_line", lambda s, run, session: []),),
        lambda: [schedule("told before it waits")],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_without_the_rule_a_schedule_breaks(name: str) -> None:
    check(RULES[name])
