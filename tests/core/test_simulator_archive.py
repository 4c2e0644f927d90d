"""Archive and reset in virtual time: against delivery, against each other, with a fault at any transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulated_rules import Rule, check, directed, setup

from openclaw_ray.core.protocol import archiving, keeping
from openclaw_ray.core.protocol.archiving import Archiving
from openclaw_ray.core.protocol.cleanup import Cleanup
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.state import State
from openclaw_ray.testing.simulator import (
    Ask,
    Fault,
    FaultKind,
    Hang,
    Join,
    Plan,
    Reset,
    Schedule,
    Setup,
    Spawn,
    Work,
    Yield,
    run_schedule,
)

_short, _long, _hang = Plan(((Work(0.01),),)), Plan(((Work(0.4),),)), Plan(((Hang(),),))
_gone = Plan(((Work(0.01),),), cleanup="delete")


def soon(minute: float = 0.05, **limits: Any) -> Setup:
    return setup(archive_after_minutes=1, archive_minute=minute, **limits)


_PLANS = {
    1: Plan(((Spawn((2, 3, 4)), Join()),)),
    2: _short,
    3: _gone,
    4: Plan(((Spawn((5,), timeout=0.05), Yield()),), cleanup="delete"),
    5: _hang,
    6: Plan(((Spawn((2, 3)), Yield()),)),
}
"""All kinds of ends: kept, deleted, timed out, below one that waits and one that yielded."""
_CLIENT = (Spawn((1, 2)), Work(0.3), Join(), Ask("worker", 6), Reset(), Ask("worker", 6))


def whole() -> Schedule:
    [schedule] = directed(_PLANS, _CLIENT, on=soon())()
    return schedule


def test_everything_ends_archived_once() -> None:
    outline = run_schedule(whole(), looks=1.0)
    assert outline.resets == 1
    assert outline.runs == outline.archived + 2 - 1  # all but the two messages; and the main session's first transcript


def test_archives_wait_for_a_client_that_hears_late() -> None:
    """It comes for the ends long after the time is up; that nothing went before is watched."""
    [schedule] = directed(_PLANS, (Spawn((2, 3)), Work(3.0), Join()), on=soon())()
    assert run_schedule(schedule, looks=1.0).archived == 2


def test_two_clients_reset_one_session_that_a_third_one_asks() -> None:
    [schedule] = directed(
        _PLANS,
        (Ask("worker", 6), Ask("worker", 6), Reset(), Reset()),
        (Work(0.005), Reset(), Ask("worker", 6), Reset()),
        (Work(0.02), Ask("worker", 6), Ask("worker", 6)),
        on=soon(),
    )()
    resets = sum(run_schedule(replace(schedule, seed=seed)).resets for seed in range(20))
    assert resets >= 40


_POINTS = {
    "the registry dies before it has done anything": Fault(FaultKind.BETWEEN),
    "the registry dies after the first effect": Fault(FaultKind.BETWEEN, target=1),
    "the commit fails": Fault(FaultKind.COMMIT),
    "the registry dies when all is on its way": Fault(FaultKind.REGISTRY, at=-1.0),
    "the hub dies": Fault(FaultKind.HUB, at=-1.0),
}


@pytest.mark.parametrize("point", _POINTS)
def test_a_fault_at_any_moment_loses_no_archive_and_doubles_none(point: str) -> None:
    schedule = whole()
    last = run_schedule(schedule).transactions
    for nth in range(1, last + 1):
        faulty = replace(schedule, faults=(replace(_POINTS[point], nth=nth),), weather=point)
        outline = run_schedule(faulty, looks=0.0)
        assert outline.archived >= 8


# ------------------------------------------------------------------ rules taken out


def _leave_unplanned(s: State, session: Any) -> None:
    session.archive_at = 1.0
    s.retire(session)


def _forgets_the_table(self: State, number: int, data: bytes) -> None:
    """The time is known to memory and record alone."""


def _as_soon_as_it_ends(self: Ending, run: Any) -> None:
    _next(self, run)
    session = self.s.sessions[run.session]
    if session.depth > 0 and session.state == "ended":
        archiving.bury(self.s, session, "too soon")


_next, _bury = Ending._next_of_session, archiving.bury


def _bury_twice(s: State, session: Any, why: str) -> None:
    _bury(s, session, why)
    s.archive(session)


RULES = [
    Rule("H6: an ended session gets its time", ((keeping, "leave", _leave_unplanned),), lambda: iter([whole()])),
    Rule("H6: the time is kept in the journal", ((State, "plan", _forgets_the_table),), lambda: iter([whole()])),
    Rule(
        "H6: not before it was heard of",
        ((Ending, "_next_of_session", _as_soon_as_it_ends),),
        lambda: iter([whole()]),
        ("archived after it was heard of",),
    ),
    Rule("H6: once", ((archiving, "bury", _bury_twice),), lambda: iter([whole()]), ("a transcript is archived once",)),
    Rule(
        "H6: what is due is looked for when it is due",
        ((Archiving, "sweep", lambda self: None),),
        lambda: iter([replace(whole(), limit=20.0)]),
        ("everything ends",),
    ),
    Rule(
        "G3: nothing is cleared under what has not ended",
        ((Cleanup, "_refusal", lambda self, session, session_id, revision: None),),
        directed(
            _PLANS,
            (Ask("worker", 6), Reset(), Reset()),
            (Ask("worker", 6), Ask("worker", 6), Ask("worker", 6)),
            on=soon(),
            seeds=200,
        ),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.number)
def test_the_simulator_finds_it(rule: Rule) -> None:
    check(rule)
