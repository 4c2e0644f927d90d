"""The simulator finds the fault when a rule of PROTOCOL.md 4 or 5 (end and turns) is taken out.

Not here: that rows above 64 KB are flushed while a turn runs (4.1), and the 4 × width of a map's results (4.6), are the
shell's and `MapWindow`'s (`tests/agents/test_map_window`). That the outbox holds an outcome until its verdict (4.2)
saves a start that the actor would not run a second time, and is shown by counting starts. The kinds of 5.1 are words in
a start. A resume goes ahead of new starts (5.4) in `test_lanes`.
"""

from __future__ import annotations

from typing import Any

import pytest
from simulated_rules import Rule, check, directed, hunt, setup, taken_out

from openclaw_ray.core import mapping
from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.testing.simulator import (
    Ask,
    Fail,
    Fault,
    FaultKind,
    Hang,
    Join,
    Map,
    Meddling,
    Plan,
    Spawn,
    Stop,
    Weather,
    Work,
    Yield,
    run_schedule,
)
from openclaw_ray.testing.simulator.hub import Transcripts

_short, _long = Plan(((Work(0.01),),)), Plan(((Work(0.3),),))
_one = (Spawn((1,)), Join())
_joins = Plan(((Spawn((2,)), Join()),))


def from_each_start(self: Birth, run: Any, now: float) -> None:
    """Count the deadline anew at each turn."""
    run.started = run.started or self.s.clock.wall()
    if run.timeout > 0:
        run.deadline = now + run.timeout
        self.s.at(run.deadline, run)


def from_its_birth(self: Birth, run: Any, now: float) -> None:
    """Count the time in the queue, too."""
    if run.started is None and run.timeout > 0:
        run.deadline = now + run.timeout - (self.s.clock.wall() - run.created)
        self.s.at(run.deadline, run)
    run.started = run.started or self.s.clock.wall()


def all_at_once(self: Birth, session: Any, run: Any) -> None:
    """No serial lane: each run of a session as it comes."""
    session.run = session.run or run.id
    self.s.enqueue(run)


def say_it_again(self: Ending, run: Any) -> None:
    """Write the row once more, under no key."""
    _mark_delivered(self, run)
    target = self.s.sessions.get(run.requester)
    if target is not None and run.delivery is DeliveryState.DELIVERED:
        self.s.host_row(target, "user", "once more", key=f"announce:again:{run.id}:{self.s.next_seq()}")


_mark_delivered = Ending.mark_delivered

RULES = [
    Rule(
        "4.1 a stop or a deadline comes before what the child did",
        ((Ending, "_verdict", lambda self, run, outcome: (outcome.state, outcome)),),
        directed(
            {1: Plan(((Work(0.5),),), deaf=True)},
            (Spawn((1,)), Work(0.5), Stop(0, wait=True)),
            on=setup(prewarm=1),
        ),
        ("a stop wins over what a turn did",),
    ),
    Rule(
        "4.3 an actor that holds a value is not free",
        ((Ending, "holds", lambda self, run: False),),
        hunt(Weather.CALM),
        ("a value is lost with its process only",),
    ),
    Rule(
        "4.3 the pool takes a value whose requester has no process",
        ((Ending, "park_value", lambda self, run: None),),
        directed(
            {1: Plan(((Spawn((2, 3)), Yield()),)), 2: Plan(((Work(0.1),),), held=100_000), 3: _long},
            _one,
            on=setup(pool_max=2, max_spawn_depth=2, prewarm=1),
        ),
    ),
    Rule(
        "4.4 a: a requester with a running turn is told at once",
        ((Ending, "_by_child", lambda self, run, owner, caller: None),),
        directed({1: _joins, 2: _long}, _one),
        ("everything ends",),
    ),
    Rule(
        "4.4 b: a complete batch causes the start in this very step",
        ((Ending, "maybe_go_on", lambda self, run: None),),
        directed({1: Plan(((Spawn((2,)), Yield()),)), 2: _long}, _one),
        ("everything ends", "what is counted is what is there"),
    ),
    Rule(
        "4.4 d: if its requester is gone for good, the next one above hears",
        ((Ending, "_parent_ended", lambda self, run, parent, target: self.forget_delivery(run)),),
        directed(
            {1: Plan(((Spawn((2,)), Join(), Work(1.0)),)), 2: Plan(((Spawn((3,)), Fail()),)), 3: _long}, _one
        ),
        ("each announce is delivered",),
    ),
    Rule(
        "4.5 a delivery is repeated until it is confirmed",
        ((Ending, "again", lambda self, run: None),),
        directed({1: _joins, 2: _long}, _one, meddling=[Meddling("deliver", drop=True)]),
        ("everything ends",),
    ),
    Rule(
        "4.5 what was consumed is delivered",
        ((Ending, "consumed", lambda self, receiver, runs: None),),
        directed({1: _short}, _one),
        ("what is consumed is delivered",),
    ),
    Rule(
        "4.5 a row is idempotent by its announce key",
        ((Transcripts, "admits", lambda self, row: True),),
        lambda: (
            schedule
            for nth in range(4, 12)
            for schedule in directed(
                {1: _joins, 2: _long}, _one, meddling=[Meddling("push", nth=nth, lose_answer=True)]
            )()
        ),
        ("each announce once", "a transcript is in order"),
    ),
    Rule(
        "4.5 a stopped run is silent",
        ((Ending, "is_silent", lambda self, run: False),),
        directed({1: _long}, (Spawn((1,)), Work(0.3), Stop(0, wait=True), Join())),
        ("a stopped run is silent",),
    ),
    Rule(
        "4.6 a full house is back-pressure for a turn's map",
        ((mapping, "BACK_PRESSURE", ""),),
        directed({1: Plan(((Map((2,) * 6, 6),),)), 2: _short}, _one, on=setup(max_children=2)),
        ("a full house is back-pressure",),
    ),
    Rule(
        "5.2 a run ends with the first turn after which no child is unsettled",
        ((Ending, "_goes_on", lambda self, run, session, event: None),),
        directed({1: Plan(((Spawn((2,)),),)), 2: _long}, _one),
        ("a run ends after its children",),
    ),
    Rule(
        "5.3 a plain function is not called again",
        ((Ending, "asks_again", lambda self, run: True),),
        directed({1: Plan(((Spawn((2,)), Work(1.0)),), again=True), 2: Plan(((Work(1.5),),))}, _one),
        ("everything ends",),
    ),
    Rule(
        "5.4 one wake, when the batch is complete",
        ((Ending, "all_settled", lambda self, run: True),),
        directed({1: Plan(((Spawn((2, 3)), Yield()),)), 2: _short, 3: _long}, _one),
        ("one wake when all have ended", "a run ends after its children"),
    ),
    Rule(
        "5.5 pauses and further turns count against the deadline",
        ((Birth, "_start_clock", from_each_start),),
        directed(
            {1: Plan(((Spawn((2,)), Yield()),), again=True), 2: _long},
            (Spawn((1,), timeout=1.0), Join()),
        ),
        ("everything ends",),
    ),
    Rule(
        "5.5 time in the queue does not",
        ((Birth, "_start_clock", from_its_birth),),
        directed(
            {1: _long}, (Spawn((1,) * 5, timeout=0.5), Join()), on=setup(pool_max=1, max_spawn_depth=1, prewarm=1)
        ),
        ("no timeout too early",),
    ),
    Rule(
        "5.6 a message to a busy session waits behind its turn",
        ((Birth, "_in_line", all_at_once),),
        directed({1: _long}, (Ask("worker", 1),), (Ask("worker", 1),), on=setup(pool_max=6)),
        ("one turn at a time",),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.number)
def test_a_schedule_needs_the_rule(rule: Rule) -> None:
    check(rule)


def test_an_outcome_without_a_verdict_is_in_the_outbox_and_its_turn_is_not_started_again() -> None:
    """4.2, 7.5: the registry is made anew while the child's end is on its way."""
    [schedule] = directed(
        {1: Plan(((Work(0.05),),))},
        _one,
        on=setup(prewarm=1),
        faults=[Fault(FaultKind.REGISTRY, at=0.5)],
        meddling=[Meddling("step", nth=3, sender="session", delay=3.0)],
    )()
    outline = run_schedule(schedule)
    assert outline.starts == outline.turns == 1
    with taken_out((Activation, "settled", lambda self, event: setattr(self, "spec", None))):
        assert run_schedule(schedule).starts > 1


def test_what_a_dead_child_was_to_announce_is_said_at_once() -> None:
    """4.5: its death notice comes before the parent's word that it has it; without it the first repeat is after 5 s."""
    [schedule] = directed(
        {1: _joins, 2: Plan(((Work(0.1),),), unclean=True)},
        _one,
        meddling=[Meddling("deliver", drop=True)],
    )()
    assert run_schedule(schedule).seconds < 5.0
    with taken_out((Crew, "_say_for", lambda self, actor: None)):
        assert run_schedule(schedule).seconds > 5.0


def test_a_word_that_an_announce_is_there_ends_its_repeats() -> None:
    """4.5"""
    [schedule] = directed(
        {1: Plan(((Spawn((2,)), Work(12.0), Join()),)), 2: Plan(((Work(0.1),),))}, _one, seeds=1
    )()

    def repeats() -> int:
        return sum("notify" in line and "Completed" in line for line in run_schedule(schedule, trace=True).log)

    assert repeats() == 0
    with taken_out((Ending, "got", lambda self, runs: None)):
        assert repeats() == 1, "once, then the downlink has its own word for it"


def test_a_parent_that_ends_in_time_or_late_does_not_stop_its_children() -> None:
    """6.8: only stop, kill, reset and delete cascade."""
    plans = {1: Plan(((Spawn((2,)), Hang()),)), 2: Plan(((Work(2.0),),))}
    [schedule] = directed(plans, (Spawn((1,), timeout=0.3), Join()), on=setup(stop_grace_seconds=0.3))()
    parent, child = run_schedule(schedule).states.values()
    assert (parent.value, child.value) == ("timed_out", "cancelled"), "its client leaves, and that stops it"
    [schedule] = directed(
        plans, (Spawn((1,), timeout=0.3), Join(), Work(3.0)), on=setup(stop_grace_seconds=0.3)
    )()
    parent, child = run_schedule(schedule).states.values()
    assert (parent.value, child.value) == ("timed_out", "succeeded")
