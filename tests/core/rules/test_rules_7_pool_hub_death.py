"""PROTOCOL.md 7.1 to 7.4: growth, death, hub."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.hubstate import HubBatch, HubState, Pushed
from openclaw_ray.core.protocol.messages import (
    Consumed,
    Exit,
    Grow,
    Hello,
    Start,
)
from openclaw_ray.core.protocol.state import State
from rules.asking import agent
from rules.hand import Hand, without


def starts(hand: Hand) -> list[tuple[str, str]]:
    """The starts on their way: run and actor."""
    return [(start.spec.run, start.actor) for start in hand.sent(Start)]


# ------------------------------------------------------------------ 7.1 growth


def test_an_actor_is_granted_only_after_its_own_hello() -> None:
    """7.1: a start to an actor that is still being created is lost if its sender dies."""

    def schedule() -> tuple[int, list[tuple[str, str]]]:
        hand = Hand()
        hand.admit("r")
        hand.tick()
        early = len(hand.sent(Start))
        hand.grow()
        return early, starts(hand)

    def at_once(self: Birth, count: int, resources: Any = ()) -> None:
        grow(self, count, resources)
        for actor in self.s.actors.values():
            actor.state = "idle" if actor.state == "growing" else actor.state

    grow = Birth.grow
    assert schedule() == (0, [("r", "session-1-1")])
    with without(Birth, "grow", at_once):
        assert schedule() == (1, [("r", "session-1-1")])


def test_a_hello_is_repeated_until_a_registry_has_answered() -> None:
    """7.1: the first one died with a registry whose commit failed."""
    hand = Hand()
    hand.admit("r")
    [grow] = hand.take(Grow)
    hand.courier(grow.actors[0]).post(Hello(grow.actors[0], "node", 1, "handle"))
    hand.fail_commit(grow.actors[0])
    hand.adopt()
    assert hand.step(grow.actors[0]).word == "ok"
    assert starts(hand) == [("r", grow.actors[0])]


def test_an_actor_that_nobody_wants_is_told_to_exit() -> None:
    """7.1: its registry's growth was never journaled."""

    def schedule() -> tuple[str, list[str]]:
        hand = Hand()
        word = hand.hello("nobodys").word
        return word, [e.actor for e in hand.sent(Exit)]

    assert schedule() == ("stale", ["nobodys"])
    with without(Crew, "hello", lambda self, event: True):
        assert schedule() == ("ok", [])


def test_a_creation_that_failed_is_reported_and_asked_for_again() -> None:
    """7.1: with its cause; and what was created meanwhile is not given up by a word about an earlier try."""
    hand = Hand()
    hand.admit("r")
    [grow] = hand.take(Grow)
    hand.do(hand.registry.growth_failed(grow.actors[0], "no memory"))
    assert any(b"no memory" in data for _, data in hand.registry.take_batch().events)
    hand.grow()
    [(run, actor)] = starts(hand)
    hand.do(hand.registry.growth_failed(actor, "an earlier try"))
    assert run == "r"
    assert hand.registry.s.actors[actor].state == "bound"


def test_what_no_node_can_ever_hold_fails_with_that_cause() -> None:
    """7.1"""
    hand = Hand(agents=[agent("big", resources={"num_gpus": 99})])
    hand.admit("r", agent_id="big")
    [grow] = hand.take(Grow)
    hand.do(hand.registry.growth_failed(grow.actors[0], "no node can hold it", has={"num_gpus": 8.0}))
    error = hand.run("r").outcome.error
    assert (error.cause, error.type) == (Cause.CANNOT_PLACE, "CannotPlace")
    assert "needs num_gpus 99 (largest node: 8); lower agents.entries.big.ray" in error.message


# ------------------------------------------------------------------ 7.2, 7.3 death


def test_a_death_notice_ends_what_the_actor_ran_and_its_place_is_filled() -> None:
    """7.2"""

    def schedule() -> tuple[str, list[str]]:
        hand = Hand(actors=1, pool_max=1, max_spawn_depth=1)
        turn = hand.start("r")
        hand.admit("next")
        hand.kill(turn.actor, "SIGKILL")
        hand.grow()
        return hand.state("r"), [run for run, _ in starts(hand)]

    assert schedule() == ("failed", ["next"])
    with without(Crew, "died", lambda self, actor, detail: None):
        assert schedule() == ("running", [])


def test_a_death_that_is_told_twice_is_one_death() -> None:
    """7.2: a new incarnation's standing call raises just as fast as the old one's."""
    hand = Hand(actors=2)
    turn = hand.start("r")
    hand.kill(turn.actor)
    hand.crash_registry()
    hand.adopt()
    hand.kill(turn.actor)
    hand.poll()
    assert hand.ends() == ["r"]
    assert hand.start("next").settle().word == "settled"


@pytest.mark.parametrize(("why", "state"), [("stop", "cancelled"), ("deadline", "timed_out"), ("", "failed")])
def test_a_death_under_a_mark_or_past_the_deadline_is_that_end(why: str, state: str) -> None:
    """7.2, 6.7"""
    hand = Hand(actors=1)
    turn = hand.start("r", timeout=1)
    if why == "stop":
        hand.stop("r")
    elif why == "deadline":
        hand.wait(1.1)
    hand.kill(turn.actor)
    assert hand.state("r") == state


def test_a_new_pool_ends_whom_nobody_knows_and_grows_what_was_asked_of_the_old_one() -> None:
    """7.3"""

    def schedule() -> tuple[list[str], list[tuple[str, ...]]]:
        hand = Hand()
        hand.admit("r")
        hand.take(Grow)  # it died with this
        hand.do(hand.registry.pool_met(["left-over"]))
        return [e.actor for e in hand.sent(Exit)], [g.actors for g in hand.sent(Grow)]

    assert schedule() == (["left-over"], [("session-1-1",)])
    with without(Crew, "pool_met", lambda self, owned, values=(): None):
        assert schedule() == ([], [])


# ------------------------------------------------------------------ 7.4 hub


def test_a_new_hub_is_given_all_that_is_unacknowledged() -> None:
    """7.4"""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        hand.start("r").settle()
        hand.push()
        hand.hub = HubState()  # it died with what it held
        hand.do(hand.registry.hub_again())
        hand.poll()
        return hand.ends()

    assert schedule() == ["r"]
    with without(Down, "again", lambda self, client: None):
        assert schedule() == []


def test_a_push_of_an_older_registry_is_dropped() -> None:
    """7.4: it was on its way when its sender died; its numbers mean other messages now."""

    def schedule() -> list[str]:
        hand = Hand(actors=4)
        a, b, c, d = (hand.start(run) for run in "abcd")
        a.settle()
        b.settle()
        hand.poll()
        hand.say("driver", Consumed("driver", ("a", "b")))
        c.settle()
        old, batch = hand.registry.s.incarnation, hand.registry.take_batch()  # its message is the third
        assert batch is not None
        hand.crash_registry()
        hand.adopt()  # that of c is the first or second now
        hand.push()
        hand.hub.push(old, batch)
        hand.poll()
        d.settle()  # this is the third
        hand.poll()
        return hand.ends()

    def of_any(self: HubState, incarnation: int, batch: HubBatch) -> Pushed:
        return push(self, max(incarnation, self.incarnation), batch)

    push = HubState.push
    assert schedule() == ["a", "b", "c", "d"]
    with without(HubState, "push", of_any):
        assert schedule() == ["a", "b", "c"]


def test_a_push_names_new_activations() -> None:
    """7.4: so that rows of lower ones are refused from then on."""

    def schedule() -> list[tuple[str, int]]:
        hand = Hand(actors=2)
        parent = hand.start("parent")
        parent.child("child").settle()
        parent.settle(yielded=True)
        batch = hand.registry.take_batch()
        return list(batch.begins) if batch is not None else []

    assert schedule() == [("s-parent", 1), ("s-child", 1), ("s-parent", 2)]
    with without(State, "begin", lambda self, session: None):
        assert schedule() == []
