"""Named maps in virtual time: two clients want the same one, while one of them, or the registry, dies at some point.

``OPENCLAW_RAY_SCHEDULES`` makes it every point.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest
from simulated_rules import breaks, directed, setup

from openclaw_ray.core.protocol.maps import Maps
from openclaw_ray.core.protocol.state import State
from openclaw_ray.testing.simulator import (
    Fault,
    FaultKind,
    Habits,
    Map,
    Operation,
    Outline,
    Plan,
    Schedule,
    Work,
    run_schedule,
)

ITEMS = 6
EVERY = 1 if "OPENCLAW_RAY_SCHEDULES" in os.environ else 5
PLANS = {1: Plan(((Work(0.2),),))}
FIRST = Map((1,) * ITEMS, 2, map_id="m")
LATER = (Work(0.3), FIRST, Work(60.0), FIRST)


def schedule(*clients: tuple[Operation, ...], fault: Fault | None = None, hostile: bool = False) -> Schedule:
    [made] = directed(PLANS, clients[0], faults=() if fault is None else (fault,), on=setup(client_lease_seconds=5.0))()
    program = replace(made.program, clients=clients)
    made = replace(made, program=program)
    if hostile:
        made = replace(made, setup=replace(made.setup, habits=Habits(slow=0.2, lost_answers=0.1, hostile=True)))
    return made


def succeeded(outline: Outline) -> int:
    return Counter(state.value for state in outline.states.values())["succeeded"]


def test_a_second_try_takes_over_what_the_first_has_done() -> None:
    outline = run_schedule(schedule((FIRST, FIRST)), looks=0.2)
    assert (outline.maps, outline.runs, succeeded(outline)) == (2, ITEMS, ITEMS)


def test_of_two_at_a_time_one_is_refused() -> None:
    outline = run_schedule(schedule((FIRST,), LATER), looks=0.2)
    assert (outline.maps, outline.refused_maps, outline.runs) == (2, 1, ITEMS)


POINTS = {
    "the first client dies": Fault(FaultKind.CLIENT, at=-1.0),
    "the first client is silent until its lease is over": Fault(FaultKind.CLIENT_SILENCE, at=-1.0, lasts=20.0),
    "the registry dies when all is on its way": Fault(FaultKind.REGISTRY, at=-1.0),
    "the registry dies before it has done or said anything": Fault(FaultKind.BETWEEN),
    "the commit fails": Fault(FaultKind.COMMIT),
    "the oldest session process dies": Fault(FaultKind.SESSION, at=-1.0),
}


@pytest.mark.parametrize("hostile", [False, True], ids=["", "hostile"])
@pytest.mark.parametrize("point", POINTS)
def test_no_item_runs_twice_at_a_time_nor_after_it_has_succeeded(point: str, hostile: bool) -> None:
    calm = run_schedule(schedule((FIRST,), LATER))
    assert calm.transactions > 10 * EVERY
    ends = set()
    for nth in range(1, calm.transactions + 1, EVERY):
        outline = run_schedule(schedule((FIRST,), LATER, fault=replace(POINTS[point], nth=nth), hostile=hostile))
        ends.add(succeeded(outline))
    assert ends == {ITEMS}


def test_without_the_wait_for_the_runs_of_an_earlier_try_an_item_runs_twice() -> None:
    broken = [
        breaks(
            schedule((FIRST,), LATER, fault=replace(POINTS["the first client dies"], nth=nth)),
            (Maps, "_runs_on", lambda self, map_id: False),
            (State, "release_claims", lambda self, **which: self.claims.clear()),
        )
        for nth in range(8, 20)
    ]
    assert "one run of an item at a time" in {found.rule for found in broken if found is not None}
