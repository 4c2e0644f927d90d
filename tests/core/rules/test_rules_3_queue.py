"""PROTOCOL.md 3.3: the reserve rule, and the queue that is scanned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openclaw_ray.core.lanes import Waiting, WaitingQueue
from openclaw_ray.core.protocol import birth
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Start
from openclaw_ray.core.protocol.state import AgentEntry, State
from rules.asking import agent
from rules.forest import Forest
from rules.hand import Hand, without


def none_reserved(bound: int, actors: int, depth: int, depth_cap: int) -> bool:
    return bound < actors


def head_alone(self: WaitingQueue, may_start: Callable[[Waiting], bool], load: Callable[[str], int]) -> Waiting | None:
    head = min(self.waiting(), key=lambda w: (not w.resume, w.age), default=None)
    return head if head is not None and may_start(head) else None


@pytest.mark.parametrize("taken_out", [(birth, "may_bind", none_reserved), (WaitingQueue, "pick", head_alone)])
def test_six_joining_trees_of_depth_five_finish_on_six_actors(taken_out: tuple[object, str, object]) -> None:
    """3.3: pool.max 6, depth 5, fan-out 2, 6 roots."""

    def schedule() -> int:
        hand = Hand(pool_max=6)
        roots = [f"root{i}" for i in range(6)]
        hand.admit_all(roots)
        forest = Forest(hand, depth=5, fan=2)
        forest.play()
        return sum(root in forest.ended for root in roots)

    assert schedule() == 6
    with without(*taken_out):
        assert schedule() < 6


def test_the_last_actors_are_kept_for_deeper_runs() -> None:
    """3.3: a run at depth d starts only while fewer than N − (D − d) are bound."""

    def schedule() -> list[str]:
        hand = Hand(actors=4, pool_max=4, max_spawn_depth=3)
        hand.admit_all(["a", "b", "c"])
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["a", "b"]
    with without(birth, "may_bind", none_reserved):
        assert schedule() == ["a", "b", "c"]


def test_what_may_not_start_is_skipped_and_never_waited_for() -> None:
    """3.3: an older run of a root waits for the reserve; the child of a bound one may start."""

    def schedule() -> list[str]:
        hand = Hand(actors=2, pool_max=2, max_spawn_depth=2)
        first = hand.start("first")
        hand.admit("older")
        first.spawn("deeper")
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["deeper"]
    with without(WaitingQueue, "pick", head_alone):
        assert schedule() == []


def test_roots_take_turns() -> None:
    """3.3: first the root with the fewest bound, then age."""

    def schedule() -> list[str]:
        hand = Hand(actors=2, pool_max=2, max_spawn_depth=1, drivers=("busy", "late"))
        hand.admit_all(["a", "b", "c", "d"], "busy")
        hand.admit("e", "late")
        hand.begin("a").settle()
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["b", "e"]
    with without(State, "load_of", lambda self, root: 0):
        assert schedule() == ["b", "c"]


def test_a_session_that_cannot_spawn_counts_as_deepest() -> None:
    """3.3: nothing will ever wait below it."""

    def schedule() -> list[str]:
        hand = Hand(actors=3, pool_max=3, max_spawn_depth=3, agents=[agent("leaf", spawns=False)])
        hand.admit_all(["a", "b", "c"], agent_id="leaf")
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["a", "b", "c"]
    with without(AgentEntry, "spawns", property(lambda self: True, lambda self, value: None)):
        assert schedule() == ["a"]


@pytest.mark.parametrize("holding", ["a value", "its death"])
def test_an_actor_that_is_not_free_yet_counts_as_bound(holding: str) -> None:
    """3.3: releasing, or holding an untaken value."""

    def schedule() -> list[str]:
        hand = Hand(actors=2, pool_max=2, max_spawn_depth=2)
        first = hand.start("first")
        if holding == "a value":
            first.settle(held=1_000_000)
        else:
            first.settle(unclean=("a thread",))
        hand.admit("next")
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == []
    only_bound = property(lambda self: sum(a.state == "bound" for a in self.actors.values()))
    with without(State, "bound", only_bound):
        assert schedule() == ["next"]


def test_max_active_sessions_counts_turns_that_run_and_not_those_that_wait() -> None:
    """3.3: a cap that counted waiting parents would never let their children start."""

    def schedule() -> int:
        hand = Hand(max_active_sessions=1)
        hand.admit("root")
        forest = Forest(hand, depth=3, fan=2)
        forest.play()
        return len(forest.ended)

    assert schedule() == 7
    all_of_them = property(lambda self: sum(bool(a.run) for a in self.actors.values()))
    with without(State, "turns_running", all_of_them):
        assert schedule() == 0


def test_an_idle_actor_of_another_class_makes_room() -> None:
    """3.3"""

    def schedule() -> list[str]:
        hand = Hand(actors=1, pool_max=1, max_spawn_depth=1, agents=[agent("other", bundle="b2")])
        hand.start("first").settle()
        hand.admit("second", agent_id="other")
        hand.grow()
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["second"]
    with without(Birth, "_evict", lambda self: False):
        assert schedule() == []


def test_one_lane_of_one_slot_is_enough_for_joining_trees() -> None:
    """3.3, 5.4: maxConcurrent 1, main → A → B, each joining: who waits has given its slot back."""

    def schedule() -> list[str]:
        hand = Hand(max_concurrent=1, global_lane=True, main_lane=1)
        hand.ask("main")
        forest = Forest(hand, depth=2, fan=1)
        forest.play()
        return forest.ended

    def kept(self: Ending, run: object) -> None:
        return None

    assert schedule() == ["main.0.0", "main.0", "main"]
    with without(Ending, "release_slot", kept):
        assert schedule() == []
