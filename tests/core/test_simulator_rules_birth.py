"""The simulator finds the fault when a rule of PROTOCOL.md 3 (birth) is taken out.

Not here: what a child is to be (3.6) is settled within one step and has its tests in `rules.test_rules_3_child`; the
other checks of admission (3.1) are pure and have theirs in `test_admission`. The epoch's fence (3.2) stands behind the
stopped set and the memory of activations seen: no schedule needs it alone, so it is shown on the actor's side by
itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulated_rules import Rule, check, directed, hunt, setup, taken_out

from openclaw_ray.core import lanes, lineage
from openclaw_ray.core.protocol import birth
from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.crew import GROW_WITHIN, Crew
from openclaw_ray.core.protocol.messages import Kill, Spec
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.turns import Turns
from openclaw_ray.testing.simulator import (
    Fault,
    FaultKind,
    Join,
    Meddling,
    Plan,
    Spawn,
    Stop,
    Weather,
    Work,
    Yield,
    run_schedule,
)
from openclaw_ray.testing.simulator.pool import PoolProcess

_short, _long = Plan(((Work(0.01),),)), Plan(((Work(0.3),),))
_one = (Spawn((1,)), Join())


def pick_the_head(self: lanes.WaitingQueue, may_start: Any, load: Any) -> Any:
    """A queue whose head blocks it."""
    heads = sorted(self.heads(), key=lambda head: (not head.resume, load(head.root), head.age))
    return heads[0] if heads and may_start(heads[0]) else None


def kill_and_use_again(self: Turns, run: Any) -> None:
    """Have the actor killed, and grant it as if nothing was."""
    self.s.effect(Kill(run.actor, "did not end within its grace"))


def bind_by_depth(self: Any, session: Any, run: Any) -> None:
    """Reserve for a session that spawns nothing what its depth would."""
    run.reserve_depth = session.depth
    _in_line(self, session, run)


_in_line = Birth._in_line
_tree = {
    1: Plan(((Spawn((2, 2)), Join()),)),
    2: Plan(((Spawn((3, 3)), Join()),)),
    3: Plan(((Work(0.01),),)),
}

RULES = [
    Rule(
        "3.1, 6.1 nothing is admitted under a stop mark",
        ((Birth, "_stopping", lambda self, parent, operator: False),),
        hunt(),
        ("no start under a mark", "a stop is complete"),
    ),
    Rule(
        "3.1 check and reserve in one",
        ((Birth, "_reserve", lambda self, requester: None),),
        hunt(Weather.CALM),
        ("what is counted is what is there",),
    ),
    Rule(
        "3.2 a grant has a slot of its lane",
        ((lanes.Lanes, "free", lambda self, lane, width: True),),
        directed(
            {1: Plan(((Spawn((2, 2, 2)), Join()),)), 2: _long},
            _one,
            on=setup(max_concurrent=2, pool_max=6, prewarm=6),
        ),
        ("lane width",),
    ),
    Rule(
        "3.3 the last actors are kept for deeper runs",
        ((birth, "may_bind", lambda bound, actors, depth, cap: bound < actors),),
        directed(_tree, (Spawn((1, 1, 1, 1)), Join())),
        ("everything ends",),
    ),
    Rule(
        "3.3 what may not start is skipped, never waited for",
        ((lanes.WaitingQueue, "pick", pick_the_head),),
        hunt(Weather.CALM, Weather.ACTORS),
        ("everything ends",),
    ),
    Rule(
        "3.3 maxActiveSessions counts turns that run, not sessions that wait",
        ((State, "turns_running", property(lambda self: sum(1 for a in self.actors.values() if a.run))),),
        directed(_tree, _one, on=setup(max_active_sessions=1)),
        ("everything ends",),
    ),
    Rule(
        "3.3 idle actors of another class are evicted",
        ((Birth, "_evict", lambda self: False),),
        directed(
            {1: _long, 2: Plan(agent="other")},
            (Spawn((1, 1)), Join(), Spawn((2,)), Join()),
            on=setup(pool_max=2, max_spawn_depth=1),
        ),
        ("everything ends",),
    ),
    Rule(
        "3.3 a session that counts as the deepest does not spawn",
        ((Birth, "_may_spawn", lambda self, own, operator: True),),
        directed(
            {1: Plan(((Spawn((2,)), Join()),), agent="leaf"), 2: _short},
            (Spawn((1, 1, 1)), Join()),
            on=setup(max_spawn_depth=2, pool_max=3, prewarm=3),
        ),
        ("everything ends",),
    ),
    Rule(
        "3.4 a start is idempotent by activation",
        ((Activation, "seen", lambda self, activation: False),),
        directed({1: _short}, _one, meddling=[Meddling("start", copies=1, copy_delay=0.5)]),
        ("an activation runs once",),
    ),
    Rule(
        "3.4 a run of which nothing is heard is asked for",
        ((Turns, "_ask", lambda self, run: None),),
        directed({1: _short}, _one, meddling=[Meddling("start", drop=True)]),
        ("everything ends",),
    ),
    Rule(
        "3.5 a start carries every pending completion",
        ((Birth, "_given", lambda self, session: ()),),
        directed({1: Plan(((Spawn((2,)), Yield()),)), 2: _long}, _one),
        ("a start carries what is pending",),
    ),
    Rule(
        "3.7 what was not confirmed is fenced before it is over",
        ((Turns, "_fence_and_kill", kill_and_use_again),),
        directed(
            {1: Plan(((Work(1.0),),), deaf=True), 2: Plan(((Work(1.0),),))},
            (Spawn((1,), timeout=0.1), Spawn((2,)), Join()),
            on=setup(pool_max=1, max_spawn_depth=1, prewarm=1, stop_grace_seconds=0.3),
            meddling=[Meddling("die_if", drop=True), Meddling("kill", delay=1.0)],
        ),
        ("an innocent successor is never hit",),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.number)
def test_a_schedule_needs_the_rule(rule: Rule) -> None:
    check(rule)


def test_a_session_that_cannot_spawn_counts_as_the_deepest() -> None:
    """3.3: it keeps no actor from those that may be waited for."""
    leaves = {1: Plan(((Work(1.0),),), agent="leaf")}
    [schedule] = directed(leaves, (Spawn((1,) * 4), Join()), on=setup(pool_max=4, prewarm=4))()
    at_once = run_schedule(schedule).seconds
    with taken_out((Birth, "_in_line", bind_by_depth)):
        by_twos = run_schedule(schedule).seconds
    assert at_once < 2.0 <= by_twos


def test_a_refused_start_comes_back_and_nobody_has_to_be_killed() -> None:
    """3.4: a stop has overtaken the start; the actor says so, and the stop is complete at once."""
    [schedule] = directed(
        {1: _long},
        (Spawn((1,)), Work(0.3), Stop(0, wait=True)),
        meddling=[Meddling("start", delay=0.6)],
    )()
    assert run_schedule(schedule).forced == 0
    with taken_out((Crew, "refused", lambda self, event: None)):
        assert run_schedule(schedule).forced == 1


def test_a_start_of_an_older_grant_is_refused() -> None:
    """3.2, 3.4: the epoch's fence, by itself."""

    def schedule() -> StartAnswer:
        actor = Activation("session-1")
        old = Spec("r1", "s1.1", 1, "key", "s1", "worker", "bundle", "task", 1, "")
        new = replace(old, run="r2", activation="s2.1")
        assert actor.start(2, new) is StartAnswer.RUN
        return actor.start(1, old)

    assert schedule() is StartAnswer.EPOCH
    with taken_out((Activation, "fresh", lambda self, epoch: True)):
        assert schedule() is StartAnswer.RUN


def test_a_later_run_is_not_under_an_old_mark_on_its_clients_root() -> None:
    """6.1: the mark's number says what was born before it."""
    plans = {1: _long, 2: _long}
    [schedule] = directed(plans, (Spawn((1,)), Work(0.3), Stop(-1, wait=True), Spawn((2,)), Join()))()
    first, second = run_schedule(schedule).states.values()
    assert (first.value, second.value) == ("cancelled", "succeeded")

    def any_mark_above(runs: Any, run: Any) -> int:
        return next((a.mark for a in (run, *lineage.ancestors(runs, run)) if a.mark), 0)

    check(
        Rule(
            "6.1 a later run is not bound",
            ((lineage, "bound_by_mark", any_mark_above),),
            lambda: [schedule],
            ("only a stop cancels",),
        )
    )


def test_a_process_that_dies_before_anybody_has_met_it_is_replaced_at_once() -> None:
    """7.1: the registry died with its Hello; the pool, which stands on what it owns, says so."""
    [schedule] = directed(
        {1: _short},
        _one,
        on=setup(pool_max=1, max_spawn_depth=1, prewarm=1),
        faults=[
            Fault(FaultKind.STALL, at=0.0, lasts=1.0),
            Fault(FaultKind.SESSION, at=0.5),
            Fault(FaultKind.REGISTRY, at=0.6),
        ],
    )()
    assert run_schedule(schedule).seconds < 10.0
    with taken_out((PoolProcess, "notice", lambda self, actor: None)):
        assert run_schedule(schedule).seconds > GROW_WITHIN
