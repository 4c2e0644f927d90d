"""PROTOCOL.md 3.1 and 3.2, Birth: admit and grant."""

from __future__ import annotations

import pytest

from openclaw_ray.core import lineage
from openclaw_ray.core.protocol import admitting
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Start
from openclaw_ray.core.protocol.records import Actor, Run
from openclaw_ray.core.protocol.state import State
from rules.asking import agent
from rules.hand import Hand, without

# ------------------------------------------------------------------ 3.1 admit


def test_of_fifty_admits_at_cap_five_exactly_five_are_accepted() -> None:
    """3.1: check and reserve in one, long before a child has a process."""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        parent = hand.start("parent")
        receipts = parent.spawn_all([f"c{i}" for i in range(25)]) + parent.spawn_all([f"c{i}" for i in range(25, 50)])
        assert all(r.value == r.maximum == 5 for r in receipts if r.status == "forbidden")
        return [r.run_id for r in receipts if r.accepted]

    assert schedule() == [f"c{i}" for i in range(5)]
    with without(Birth, "_reserve", lambda self, requester: None):
        assert len(schedule()) == 50


@pytest.mark.parametrize("cap", ["children", "depth", "agent", "requireAgentId"])
def test_what_a_policy_forbids_is_not_admitted(cap: str) -> None:
    """3.1"""

    def schedule() -> str | None:
        hand = Hand(actors=3, max_children=1, max_spawn_depth=2, agents=[agent("strict", require_agent_id=True)])
        parent = hand.start("parent", agent_id="strict" if cap == "requireAgentId" else "w")
        if cap == "children":
            parent.spawn("c0")
        if cap == "depth":
            parent = parent.child("deeper")
        return parent.spawn("c", agent_id="strict" if cap == "agent" else None).limit

    limit = {"children": "maxChildrenPerAgent", "depth": "maxSpawnDepth", "agent": "allowAgents"}.get(cap, cap)
    assert schedule() == limit
    with without(admitting, "check_spawn", lambda facts, limits: None):
        assert schedule() is None


def test_nothing_is_admitted_below_a_stop_mark() -> None:
    """3.1, 6.1: on whatever ancestor it is."""

    def schedule() -> str:
        hand = Hand(actors=3)
        middle = hand.start("top").child("middle")
        below = middle.child("below")
        hand.stop("top")
        return below.spawn("late").status

    def own_mark(runs: dict[str, Run], run: Run) -> int:
        return run.mark

    assert schedule() == "forbidden"
    with without(lineage, "bound_by_mark", own_mark):
        assert schedule() == "accepted"


def test_accepted_is_answered_at_once_and_the_run_waits_for_an_actor() -> None:
    """3.1"""
    hand = Hand()
    assert hand.admit("r").accepted
    assert hand.state("r") == "queued"
    assert hand.journal.count("runs", {"state": "queued"}) == 1


# ------------------------------------------------------------------ 3.2 grant


def test_a_grant_takes_slot_and_actor_together_or_nothing() -> None:
    """3.2: a run that waits for an actor holds no slot, and one that waits for a slot no actor."""

    def schedule() -> tuple[int, int]:
        hand = Hand(actors=1, max_concurrent=1)
        hand.start("parent").spawn_all(["a", "b"])
        slots = hand.registry.s.lanes.total
        hand.grow()
        return slots, hand.registry.s.bound

    def greedy(self: State, run: Run, *, resume: bool = False) -> None:
        enqueue(self, run, resume=resume)
        self.lanes.acquire(run.lane, run.lane_width, run.id, run.generation)

    enqueue = State.enqueue
    assert schedule() == (0, 2), "the parent's actor and that of one child"
    with without(State, "enqueue", greedy):
        assert schedule() == (2, 1), "and neither child will ever start"


def test_at_most_one_run_is_in_flight_per_grant() -> None:
    """3.2"""

    def schedule() -> int:
        hand = Hand(actors=2)
        hand.admit("a")
        hand.admit("b")
        return len({start.actor for start in hand.sent(Start)})

    def still_idle(self: Birth, run: Run, actor: Actor) -> None:
        start(self, run, actor)
        actor.state = "idle"

    start = Birth.start
    assert schedule() == 2
    with without(Birth, "start", still_idle):
        assert schedule() == 1


def test_each_grant_has_its_actors_next_epoch() -> None:
    """3.2"""
    hand = Hand(actors=1)
    epochs = []
    for run in ("a", "b", "c"):
        hand.admit(run)
        [start] = hand.sent(Start)
        epochs.append(start.epoch)
        hand.begin(run).settle()
    assert epochs == [1, 2, 3]


def test_five_ends_of_five_kinds_free_five_places_at_once() -> None:
    """3.1: whatever ended a child, its place is free in that step."""

    def schedule() -> tuple[list[str], int]:
        hand = Hand(actors=6, pool_max=16)
        parent = hand.start("parent")
        children = [parent.child(f"c{i}", timeout=2 if i == 2 else 0) for i in range(5)]
        returns, raises, late, stopped, killed = children
        returns.settle()
        raises.fail()
        hand.kill(killed.actor)
        hand.stop("c3")
        stopped.settle()
        hand.wait(2.5)
        late.settle()
        receipts = parent.spawn_all([f"more{i}" for i in range(6)])
        return [hand.state(child.run) for child in children], sum(r.accepted for r in receipts)

    ends = ["succeeded", "failed", "timed_out", "cancelled", "failed"]
    assert schedule() == (ends, 5)
    with without(Ending, "_no_longer_active", lambda self, run: None):
        assert schedule() == (ends, 0)
