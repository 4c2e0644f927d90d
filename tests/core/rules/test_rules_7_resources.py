"""PROTOCOL.md 7.1 on a cluster: what processes hold, who waits for it for ever, and nodes that come (DESIGN.md 9)."""

from __future__ import annotations

from collections.abc import Mapping

from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.messages import Exit, Grow, Start
from rules.asking import agent
from rules.hand import Hand, without

SLOT = {"slot": 1.0}
BOSS = agent("boss", allow_agents=("*",))


def slotted(**options: object) -> Hand:
    """A runtime with an agent ``s`` whose sessions hold a slot each."""
    return Hand(agents=[agent("s", resources=SLOT, allow_agents=("*",)), BOSS], pool_max=32, **options)  # type: ignore[arg-type]


def grow_all(hand: Hand) -> None:
    """All that was asked for is there, and starts what it is for."""
    hand.grow()
    for start in hand.take(Start):
        hand.deliver(start)


def waits_for_a_slot(hand: Hand, parent: str) -> str:
    """A session of ``s`` spawns another and waits for it; gives the actor that the child would need."""
    turn = hand.turns[parent]
    turn.started()
    assert turn.spawn(f"{parent}.child", agent_id="s").accepted
    turn.pause()
    [grow] = hand.take(Grow)
    return grow.actors[0]


def says(hand: Hand, actor: str, slots: float) -> None:
    """The pool says that it still cannot place it."""
    total: Mapping[str, float] = {"slot": slots}
    hand.do(hand.registry.growth_waits(actor, total))


def test_a_run_that_waits_for_what_its_own_parent_holds_is_refused() -> None:
    hand = slotted()
    hand.admit("top", agent_id="s")
    grow_all(hand)
    pending = waits_for_a_slot(hand, "top")
    says(hand, pending, 2.0)
    assert hand.state("top.child") == "queued", "there is another slot, which somebody else may give back"
    says(hand, pending, 1.0)
    error = hand.run("top.child").outcome.error
    assert error is not None
    assert (error.cause, error.type) == (Cause.CANNOT_PLACE, "CannotPlace")
    assert "needs slot 1 (1 of 1 held by sessions that wait for it); lower agents.entries.s.ray" in error.message
    assert hand.state("top") == "paused"


def test_of_two_trees_that_keep_slots_from_each_other_the_older_one_gets_its_answer_alone() -> None:
    hand = slotted()
    hand.admit_all(["a", "b"], agent_id="s")
    grow_all(hand)
    first, second = (waits_for_a_slot(hand, parent) for parent in ("a", "b"))
    says(hand, second, 2.0)
    assert (hand.state("a.child"), hand.state("b.child")) == ("failed", "queued")
    hand.turns["a"].resume()
    hand.turns["a"].settle()
    hand.hello(first if first in hand.registry.s.actors else second)
    hand.begin("b.child").settle()
    assert hand.state("b.child") == "succeeded"


def test_nobody_is_refused_while_something_below_the_holder_may_bring_it_on() -> None:
    hand = slotted()
    hand.admit("top", agent_id="s")
    grow_all(hand)
    turn = hand.turns["top"]
    turn.started()
    assert turn.spawn("free", agent_id="boss").accepted
    grow_all(hand)
    pending = waits_for_a_slot(hand, "top")
    says(hand, pending, 1.0)
    assert hand.state("top.child") == "queued"
    hand.turns["free"].settle()
    says(hand, pending, 1.0)
    assert hand.state("top.child") == "failed"


def test_an_orchestrator_that_holds_nothing_keeps_nothing_from_its_children() -> None:
    hand = slotted()
    hand.admit("top", agent_id="boss")
    grow_all(hand)
    pending = waits_for_a_slot(hand, "top")
    says(hand, pending, 1.0)
    assert hand.state("top.child") == "queued"
    hand.hello(pending)
    hand.begin("top.child").settle()
    assert hand.state("top.child") == "succeeded"


def test_what_nobody_waits_for_any_more_is_withdrawn() -> None:
    """A process that is to hold something is demand on the cluster as long as it is not placed."""

    def schedule() -> list[str]:
        hand = slotted()
        hand.admit("r", agent_id="s")
        [grow] = hand.take(Grow)
        hand.stop("r")
        hand.wait(2.0)
        assert hand.state("r") == "cancelled"
        return [e.actor for e in hand.sent(Exit) if e.actor in grow.actors]

    assert len(schedule()) == 1
    with without(Crew, "withdraw", lambda self: None):
        assert schedule() == []


def test_what_came_too_late_is_not_kept_warm() -> None:
    hand = slotted(actors=2)
    hand.admit("r", agent_id="s")
    [grow] = hand.take(Grow)
    hand.stop("r")
    hand.hello(grow.actors[0])
    hand.wait(2.0)
    assert grow.actors[0] not in hand.registry.s.actors
    assert len(hand.registry.s.actors) == 2, "those that hold nothing stay"


def test_a_process_for_another_place_is_kept_for_that_place_alone() -> None:
    hand = Hand(agents=[agent("there", scheduling="node:head"), agent("usual", scheduling="SPREAD")], actors=1)
    for run, name in (("a", "there"), ("b", "usual"), ("c", "there")):
        hand.admit(run, agent_id=name)
        hand.grow()
        hand.begin(run).settle()
    assert [hand.run(run).ran_on for run in "abc"] == ["session-1-2", "session-1-1", "session-1-2"]


def test_a_node_that_comes_late_raises_the_ceiling_and_what_grows_at_a_time() -> None:
    hand = Hand(pool_max=6, cpus=1, max_spawn_depth=1)
    hand.admit_all([f"r{i}" for i in range(12)])
    while hand.sent(Grow):
        grow_all(hand)
    assert hand.registry.s.bound == 6
    assert hand.registry.birth.wanted() == 12
    hand.do(hand.registry.cluster_is(4, 20))
    assert [len(grow.actors) for grow in hand.sent(Grow)] == [4]
    while hand.sent(Grow):
        grow_all(hand)
    assert hand.registry.s.bound == 12


def test_few_sessions_are_at_work_on_several_nodes_although_one_could_hold_all() -> None:
    def used(**limits: object) -> set[str]:
        hand = Hand(pool_max=8, **limits)  # type: ignore[arg-type]
        hand.do(hand.registry.prewarm(6))
        [grow] = hand.take(Grow)
        for number, actor in enumerate(grow.actors):
            hand.hello(actor, f"node {number // 2}")
        hand.admit_all(["a", "b", "c"])
        return {hand.registry.s.actors[hand.run(run).actor].node for run in "abc"}

    assert used() == {"node 0", "node 1", "node 2"}
    assert len(used(pool_scheduling="PACK")) == 2
