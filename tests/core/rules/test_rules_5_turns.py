"""PROTOCOL.md 5.1 to 5.4, Turns: what starts one, what ends a run, waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from openclaw_ray.core.lanes import Waiting, WaitingQueue
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Resumed, Start
from openclaw_ray.core.protocol.records import Run
from rules.hand import Hand, without
from rules.turn import Turn


def family(children: int, **limits: Any) -> tuple[Hand, Turn, list[Turn]]:
    """A parent and its children, all of them in their turns."""
    hand = Hand(actors=children + 1, **limits)
    parent = hand.start("parent")
    return hand, parent, [parent.child(f"c{i}") for i in range(children)]


def starts(hand: Hand) -> list[tuple[str, int, str]]:
    """The starts on their way: run, turn, kind."""
    return [(s.spec.run, s.spec.turn, s.spec.kind) for s in hand.sent(Start)]


def as_they_arrive(self: Ending, run: Run) -> bool:
    """Any end will do."""
    return run.unsettled == 0 or bool(self.s.sessions[run.session].pending)


# ------------------------------------------------------------------ 5.1 what a turn is started for


def test_a_yield_over_mixed_ends_is_one_wake_with_all_of_them() -> None:
    """5.1, 5.4: ok, error, timeout, stopped and dead in one batch, in the order of their birth."""

    def schedule() -> tuple[list[tuple[str, int, str]], list[str]]:
        hand = Hand(actors=6, pool_max=16)
        parent = hand.start("parent")
        children = [parent.child(f"c{i}", timeout=1 if i == 2 else 0) for i in range(5)]
        parent.settle(yielded=True)
        children[0].settle()
        children[1].fail()
        hand.wait(1.5)
        children[2].settle()
        hand.stop("c3")
        children[3].settle()
        hand.kill(children[4].actor)
        [start] = hand.sent(Start)
        return starts(hand), [c.completion.result.status.value for c in start.spec.completions]

    assert schedule() == ([("parent", 2, "wake")], ["ok", "error", "timeout", "cancelled", "error"])
    with without(Ending, "batch_complete", as_they_arrive):
        assert schedule() == ([("parent", 2, "wake")], []), "before the batch is complete"


def test_completions_returned_by_join_are_consumed_and_start_no_further_turn() -> None:
    """5.1"""

    def schedule() -> tuple[list[tuple[str, int, str]], str]:
        hand, parent, [child] = family(1)
        child.settle()
        parent.consume("c0")
        parent.settle(follow_up=True)
        return starts(hand), hand.state("parent")

    assert schedule() == ([], "succeeded")
    with without(Ending, "consumed", lambda self, receiver, runs: None):
        assert schedule() == ([("parent", 2, "completion")], "running")


def test_a_top_level_session_hears_of_announces_as_they_arrive_and_a_sub_agent_when_all_have_settled() -> None:
    """5.1"""

    def schedule(top: bool) -> list[tuple[str, int, str]]:
        hand = Hand(actors=4)
        if top:
            hand.ask("parent")
            parent = hand.begin("parent")
        else:
            parent = hand.start("parent")
        first, _ = parent.child("c0"), parent.child("c1")
        parent.settle(follow_up=True)
        first.settle()
        return starts(hand)

    assert schedule(top=True) == [("parent", 2, "completion")]
    assert schedule(top=False) == []
    with without(Ending, "all_settled", as_they_arrive):
        assert schedule(top=False) == [("parent", 2, "completion")]


def test_a_turn_takes_all_that_is_pending_when_it_starts() -> None:
    """5.1: the wake waited for an actor, and more came meanwhile."""
    hand = Hand(actors=4)
    hand.ask("parent")
    parent = hand.begin("parent")
    children = [parent.child(f"c{i}") for i in range(3)]
    for child in children[:2]:
        child.settle()
    parent.settle(follow_up=True)
    assert [c.run for c in hand.begin("parent").spec.completions] == ["c0", "c1"]


@pytest.mark.parametrize("kind", ["message", "task"])
def test_a_turn_knows_what_it_was_started_for(kind: str) -> None:
    """5.1"""
    hand = Hand(actors=1)
    if kind == "message":
        hand.ask("r")
    else:
        hand.admit("r")
    assert starts(hand) == [("r", 1, kind)]


# ------------------------------------------------------------------ 5.2, 5.3 when a run ends


def test_an_agent_that_returns_with_unsettled_children_is_called_once_and_ends_after_them() -> None:
    """5.2, 5.3"""

    def schedule() -> tuple[list[str], list[tuple[str, int, str]], str | None]:
        hand, parent, children = family(2)
        states = [parent.settle("frozen").word]
        for child in children:
            states.append(hand.state("parent"))
            child.settle("of a child")
        hand.poll()
        states.append(hand.state("parent"))
        outcome = hand.run("parent").outcome
        return states, starts(hand), outcome.text if outcome else None

    assert schedule() == (["paused", "paused", "paused", "succeeded"], [], "frozen")
    with without(Ending, "all_settled", lambda self, run: True):
        assert schedule() == (["settled"] + ["succeeded"] * 3, [], "frozen"), "before its children"
    with without(Ending, "asks_again", lambda self, run: True):
        assert schedule()[1] == [("parent", 2, "completion")], "it would spawn again, for ever"


def test_the_completions_that_a_plain_function_never_saw_are_rows_of_its_transcript() -> None:
    """5.3"""
    hand, parent, [child] = family(1)
    parent.settle()
    child.settle("of the child")
    hand.push()
    assert [(row.session_id, row.text) for row in hand.rows] == [("s-parent", "of the child")]


def test_the_text_of_the_last_turn_is_announced_under_the_same_run() -> None:
    """5.2"""
    hand, parent, [child] = family(1)
    parent.settle("first", yielded=True)
    child.settle()
    hand.begin("parent").settle("last")
    hand.poll()
    assert hand.ends() == ["parent"]
    assert hand.run("parent").outcome.text == "last"


# ------------------------------------------------------------------ 5.4 waiting


def test_a_turn_that_waits_gives_its_slot_back_and_keeps_its_process() -> None:
    """5.4"""

    def schedule() -> tuple[list[str], str]:
        hand = Hand(actors=3, max_concurrent=1, global_lane=True)
        middle = hand.start("top").child("middle")
        middle.spawn("below")
        middle.pause()
        return [start.spec.run for start in hand.sent(Start)], hand.registry.s.actors[middle.actor].state

    assert schedule() == (["below"], "bound")
    with without(Ending, "release_slot", lambda self, run: None):
        assert schedule() == ([], "bound")


def test_join_returns_only_with_its_slot() -> None:
    """5.4: the one slot is taken meanwhile."""
    hand = Hand(actors=4, max_concurrent=1, global_lane=True)
    middle = hand.start("top").child("middle")
    middle.spawn("below")
    middle.pause()
    below = hand.begin("below")
    middle.resume()
    assert not middle.goes_on
    below.settle()
    assert middle.goes_on


def test_a_turn_that_goes_on_is_ahead_of_new_starts() -> None:
    """5.4"""

    def schedule() -> tuple[bool, list[str]]:
        hand = Hand(actors=4, max_concurrent=1, global_lane=True)
        top = hand.start("top")
        middle = top.child("middle")
        middle.spawn("below")
        middle.pause()
        below = hand.begin("below")
        top.spawn("older")  # in the queue before the resume
        middle.resume()
        below.settle()
        return middle.goes_on, [start.spec.run for start in hand.sent(Start)]

    def by_age(self: WaitingQueue, may_start: Callable[[Waiting], bool], load: Callable[[str], int]) -> Any:
        ready = [w for w in self.heads() if may_start(w)]
        return min(ready, key=lambda w: (w.resume, w.age), default=None)

    assert schedule() == (True, [])
    with without(WaitingQueue, "pick", by_age):
        assert schedule() == (False, ["older"])


def test_resume_is_for_those_who_wait() -> None:
    """5.4: one from a turn that does not, is nothing."""
    hand = Hand(actors=1)
    turn = hand.start("r")
    turn.resume()
    assert not hand.registry.s.queue
    assert not turn.goes_on
    assert hand.state("r") == "running"


def test_a_resumed_names_its_wait() -> None:
    """5.4: one that comes late, said anew after a crash, does not end the next wait."""
    hand, parent, children = family(2)
    for child in children:
        parent.pause()
        child.settle()
        parent.resume()
        hand.crash_registry()
        hand.adopt()
        assert parent.goes_on
    assert {m.wait for m in hand.messages(Resumed, parent.activation)} == {1, 2}
    parent.pause()
    assert not parent.goes_on


def test_a_yielded_session_gives_up_slot_and_process() -> None:
    """5.4"""
    hand, parent, _ = family(1)
    parent.settle(yielded=True)
    assert hand.registry.s.actors[parent.actor].state == "idle"
    assert hand.run("parent").pause == "yielded"
