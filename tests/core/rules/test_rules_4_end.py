"""PROTOCOL.md 4.1 to 4.3, End: settle, outbox, large values."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.journal import MemoryJournal
from openclaw_ray.core.protocol.messages import (
    Completed,
    DropValue,
    Exit,
    HoldValue,
    Outcome,
    Refused,
    Start,
    Took,
)
from openclaw_ray.core.protocol.records import Actor, Run
from rules.hand import Hand, without

LARGE = 1_000_000


# ------------------------------------------------------------------ 4.1 settle


def test_the_first_terminal_state_wins() -> None:
    """4.1: its process refused the start, and then ran it after all."""

    def schedule() -> tuple[str, str, str]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        turn.say(Refused("r", turn.activation, "busy"))
        word = turn.settle("too late").word
        error = hand.run("r").outcome.error
        return word, hand.state("r"), error.cause if error else ""

    assert schedule() == ("refused", "failed", "start_failed")
    with without(Ending, "is_current", lambda self, run, activation: run.activation == activation):
        assert schedule() == ("settled", "failed", ""), "what was announced has been changed"


@pytest.mark.parametrize(("why", "verdict"), [("stop", "cancelled"), ("deadline", "timed_out")])
def test_the_verdict_may_differ_from_what_the_child_did(why: str, verdict: str) -> None:
    """4.1: it returned, after the stop or after its deadline."""

    def schedule() -> str:
        hand = Hand(actors=1)
        turn = hand.start("r", timeout=10)
        if why == "stop":
            hand.stop("r")
        else:
            hand.clock.advance(10)  # and no tick
        state = turn.settle().state
        assert state == hand.run("r").state
        return hand.state("r")

    def as_told(self: Ending, run: Run, outcome: Outcome) -> tuple[RunState, Outcome]:
        return outcome.state, outcome

    assert schedule() == verdict
    with without(Ending, "_verdict", as_told):
        assert schedule() == "succeeded"


def test_the_actor_is_free_in_the_step_of_the_end() -> None:
    """4.1"""

    def schedule() -> list[str]:
        hand = Hand(actors=1, pool_max=1, max_spawn_depth=1)
        turn = hand.start("a")
        hand.admit("b")
        turn.settle()
        return [start.spec.run for start in hand.sent(Start)]

    def later(self: Ending, actor: Actor) -> None:
        actor.state = "releasing"

    assert schedule() == ["b"]
    with without(Ending, "free", later):
        assert schedule() == []


def test_a_value_of_64_kb_or_less_is_in_the_journal() -> None:
    """4.1: it outlives the process that returned it, and the registry."""
    hand = Hand(actors=1)
    turn = hand.start("r")
    event = turn.ending()
    hand.actors[turn.actor].settled(event)
    turn.say(type(event)("r", turn.activation, Outcome(RunState.SUCCEEDED, "text", value=b"pickle")))
    hand.kill(turn.actor)
    hand.crash_registry()
    hand.adopt()
    hand.poll()
    [done] = hand.messages(Completed)
    assert done.value == b"pickle"


# ------------------------------------------------------------------ 4.2 outbox


def test_the_child_keeps_its_outcome_until_the_verdict() -> None:
    """4.2: the registry died before it heard of the end; the report says that it is owed, not unknown."""

    def schedule() -> tuple[list[str], str]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        turn.end()
        hand.fail_commit(turn.actor)
        hand.adopt()
        again = [start.spec.run for start in hand.sent(Start)]
        turn.send_end()
        return again, hand.state("r")

    def forgets(self: Activation, event: Any) -> None:
        settled(self, event)
        self.outbox.clear()

    settled = Activation.settled
    assert schedule() == ([], "succeeded")
    with without(Activation, "settled", forgets):
        assert schedule() == (["r"], "succeeded"), "sent again, and only its activation keeps it from running twice"


def test_an_unclean_actor_is_ended_only_after_its_end_is_journaled() -> None:
    """4.2"""
    hand = Hand(actors=1)
    turn = hand.start("r")
    turn.end(unclean=("a thread",))
    hand.fail_commit(turn.actor)
    assert not hand.sent(Exit)
    hand.adopt()
    turn.send_end()
    assert [e.actor for e in hand.sent(Exit)] == [turn.actor]
    assert hand.state("r") == "succeeded"


def test_rows_stay_in_the_journal_until_the_hub_has_them() -> None:
    """4.2"""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        turn.settle(rows=(turn.row("hello"),))
        hand.registry.take_batch()  # a push that never arrived
        hand.crash_registry()
        hand.adopt()
        hand.push()
        return [row.text for row in hand.rows]

    assert schedule() == ["hello"]
    with without(MemoryJournal, "after", lambda self, table, key, *, limit: []):
        assert schedule() == []


# ------------------------------------------------------------------ 4.3 values


def test_an_actor_that_holds_a_large_value_is_not_free_until_it_is_taken() -> None:
    """4.3: the next turn on it would throw the value away."""

    def schedule() -> tuple[list[str], bool]:
        hand = Hand(actors=1, pool_max=1, max_spawn_depth=1)
        turn = hand.start("a")
        hand.admit("b")
        turn.settle(held=LARGE)
        for start in hand.take(Start):
            hand.deliver(start)
        there = "a" in hand.actors[turn.actor].held
        hand.say("driver", Took("a"))
        return [start.spec.run for start in hand.sent(Start)], there

    assert schedule() == (["b"], True)
    with without(Ending, "holds", lambda self, run: False):
        assert schedule() == ([], False)


def test_the_pool_takes_a_large_value_when_the_requester_has_no_process() -> None:
    """4.3: else a yielded parent's children would hold the actors that its other children need."""

    def schedule() -> list[str]:
        hand = Hand(actors=2, pool_max=2, max_spawn_depth=2)
        parent = hand.start("parent")
        parent.spawn_all(["c0", "c1", "c2"])
        first = hand.begin("c0")
        parent.settle(yielded=True)
        first.settle(held=LARGE)
        hand.begin("c1").settle(held=LARGE)
        for hold in hand.take(HoldValue):
            hand.do(hand.registry.value_held(hold.run))
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["c2"]
    with without(Ending, "park_value", lambda self, run: None):
        assert schedule() == []


def test_a_value_that_the_pool_holds_is_dropped_when_nobody_will_take_it() -> None:
    """4.3"""

    def schedule() -> list[str]:
        hand = Hand(actors=3)
        parent = hand.start("parent")
        child, _ = parent.child("child"), parent.child("other")
        parent.settle(yielded=True)
        child.settle(held=LARGE)
        hand.do(hand.registry.value_held("child"))
        hand.stop("parent")
        return [drop.run for drop in hand.sent(DropValue)]

    assert schedule() == ["child"]
    with without(Ending, "drop_value", lambda self, run: None):
        assert schedule() == []


def test_after_its_owners_death_a_large_value_is_lost_and_says_so() -> None:
    """4.3: the completion still comes; it names the size and no holder."""
    hand = Hand(actors=1)
    turn = hand.start("r")
    turn.settle(held=LARGE)
    hand.kill(turn.actor)
    hand.crash_registry()
    hand.adopt()
    hand.poll()
    [done] = hand.messages(Completed)
    assert (done.held, done.actor, done.completion.result.text) == (LARGE, "", "done")
