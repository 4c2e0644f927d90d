"""4.4, 4.5: ends for a session whose process died, attempts that fail, and answers that say nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openclaw_ray.core.limits import Compat
from openclaw_ray.core.protocol import delivery
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Start
from rules.asking import agent, key_of
from rules.hand import Hand, without
from rules.turn import Turn

CLASS = replace(agent("c", allow_agents=("*",)), follow_up=True)


def family(*, agent_id: str = "c", children: tuple[str, ...] = ("child",), **limits: Any) -> tuple[Hand, Turn]:
    hand = Hand(actors=5, agents=(CLASS,), **limits)
    parent = hand.start("parent", agent_id=agent_id)
    for child in children:
        hand.clock.advance(0.01)
        parent.child(child, agent_id="w").started()
    return hand, parent


def revived(hand: Hand) -> Turn:
    """The newest start arrives; an older one of the same activation is a repeat."""
    *repeats, start = hand.sent(Start)
    assert {each.spec.activation for each in repeats} <= {start.spec.activation}
    hand.effects = [each for each in hand.effects if not any(each is one for one in repeats)]
    return hand.begin(start.spec.run)


def carried(turn: Turn) -> list[str]:
    return [completed.run for completed in turn.spec.completions]


def delivered(hand: Hand, run: str = "child") -> str:
    return hand.run(run).delivery.value


# ---------------------------------------------------------------------- activated again


def test_a_session_that_died_is_activated_for_what_its_child_comes_to() -> None:
    hand, parent = family()
    hand.kill(parent.actor)
    assert hand.state("parent") == "failed"
    hand.turns["child"].settle("late")
    turn = revived(hand)
    assert (turn.spec.session_key, turn.spec.kind, turn.spec.text) == (key_of("parent"), "completion", "")
    assert carried(turn) == ["child"]
    turn.settle("heard")
    hand.poll()
    assert hand.ends() == ["parent", turn.run]
    assert delivered(hand) == "delivered"
    hand.push()
    assert [row.key for row in hand.rows].count("announce:v1:" + key_of("child") + ":child") == 1
    with without(Ending, "_to_the_dead", lambda self, run, parent, target: None):
        hand, parent = family()
        hand.kill(parent.actor)
        hand.turns["child"].settle("late")
        assert not hand.sent(Start)


def test_one_activation_gathers_all_that_is_pending() -> None:
    hand, parent = family(children=("a", "b", "c"))
    hand.turns["a"].settle()
    hand.kill(parent.actor)
    hand.turns["b"].settle()
    turn = revived(hand)
    hand.turns["c"].settle()
    assert set(carried(turn)) <= {"a", "b", "c"}
    turn.started()
    turn.settle("heard")
    while hand.sent(Start):
        revived(hand).settle("heard more")
    hand.wait(40)
    while hand.sent(Start):
        revived(hand).settle("heard more")
    assert [delivered(hand, run) for run in "abc"] == ["delivered"] * 3


@pytest.mark.parametrize("crash_after", ["death", "end", "activation"])
def test_a_registry_crash_in_between_changes_nothing(crash_after: str) -> None:
    hand, parent = family()

    def crash(moment: str) -> None:
        if moment == crash_after:
            hand.effects.clear()
            hand.crash_registry()
            hand.adopt()

    hand.kill(parent.actor)
    crash("death")
    hand.turns["child"].settle("late")
    crash("end")
    if crash_after == "activation":
        crash("activation")
        hand.wait(2.1)
        hand.adopt()
    hand.wait(3)
    turn = revived(hand)
    assert carried(turn) == ["child"]
    turn.settle("heard")
    hand.wait(60)
    assert not hand.sent(Start)
    assert delivered(hand) == "delivered"


def test_a_stop_from_above_reaches_the_new_run() -> None:
    hand, parent = family()
    hand.kill(parent.actor)
    hand.turns["child"].settle("late")
    turn = revived(hand)
    turn.started()
    hand.stop("agent:w:driver:driver")
    turn.settle("never mind")
    assert hand.state(turn.run) == "cancelled"


def test_under_a_stop_nothing_is_activated() -> None:
    hand, parent = family()
    hand.stop("parent")
    hand.kill(parent.actor)
    hand.turns["child"].settle("late")
    assert not hand.sent(Start)
    assert delivered(hand) in ("not_required", "discarded")


# ---------------------------------------------------------------------- attempts


def poisoned() -> Hand:
    """Whoever is told of the child's end dies of it."""
    hand, parent = family()
    hand.turns["child"].settle("poison")
    parent.hears()
    hand.kill(parent.actor, "SIGSEGV")
    return hand


def test_after_four_deaths_the_delivery_is_suspended_and_nobody_dies_of_it_again() -> None:
    hand = poisoned()
    waits = []
    for _ in range(3):
        began = hand.clock.mono()
        while not hand.sent(Start):
            hand.wait(0.5)
            assert hand.clock.mono() - began < 30
        waits.append(round(hand.clock.mono() - began))
        hand.kill(revived(hand).actor, "SIGSEGV")
        hand.do(hand.registry.prewarm(5))
        hand.grow()
    assert waits == [5, 10, 20]
    hand.wait(120)
    assert not hand.sent(Start)
    child = hand.run("child")
    assert (child.delivery, child.failed_attempts) == ("suspended", 4)
    assert "died with it" in (child.last_error or "")


def suspended() -> Hand:
    hand = poisoned()
    for _ in range(3):
        hand.wait(21)
        hand.kill(revived(hand).actor, "SIGSEGV")
        hand.do(hand.registry.prewarm(5))
        hand.grow()
    hand.wait(21)
    assert delivered(hand) == "suspended"
    return hand


@pytest.mark.parametrize("restarted", [False, True])
def test_a_suspended_delivery_waits_to_be_asked_for(restarted: bool) -> None:
    hand = suspended()
    if restarted:
        hand.crash_registry()
        hand.adopt()
        hand.wait(60)
    assert not hand.sent(Start)
    word, effects = hand.registry.redeliver("child")
    hand.do(effects)
    assert word == "done"
    turn = revived(hand)
    assert carried(turn) == ["child"]
    turn.settle("survived")
    assert delivered(hand) == "delivered"
    assert hand.registry.redeliver("child")[0] == "delivered"


def test_a_suspended_delivery_can_be_dismissed() -> None:
    hand = suspended()
    assert hand.registry.dismiss("child")[0] == "done"
    assert delivered(hand) == "discarded"
    assert hand.registry.dismiss("child")[0] == "done"
    assert "child" not in hand.registry.s.runs


def test_a_live_receiver_that_says_nothing_is_never_given_up() -> None:
    hand, _parent = family()
    hand.turns["child"].settle("done")
    hand.wait(300)
    child = hand.run("child")
    assert (child.delivery, child.failed_attempts) == ("pending", 0)


def test_one_parent_that_dies_of_its_mail_does_not_delay_another() -> None:
    hand = poisoned()
    other = hand.start("other", agent_id="c")
    other.started()
    other.child("o1", agent_id="w").settle("done")
    assert other.hears() == ["o1"] or hand.run("o1").called_by


# ---------------------------------------------------------------------- in order


def test_a_batch_is_told_in_the_order_of_birth_then_end() -> None:
    hand, parent = family(children=("a", "b", "c"))
    parent.settle("", yielded=True)
    for run in ("c", "a", "b"):
        hand.clock.advance(1)
        hand.turns[run].settle()
    assert carried(hand.begin("parent")) == ["a", "b", "c"]


# ---------------------------------------------------------------------- what says nothing


def said(text: str, *, expects: bool = True, **limits: Any) -> tuple[str, str | None, bool, int]:
    """Delivery, text as handed up, missing, and the transcript rows of the parent that tell of it."""
    hand = Hand(actors=3, agents=(CLASS,), **limits)
    parent = hand.start("parent", agent_id="c")
    parent.started()
    assert parent.spawn("child", agent_id="w", expects=expects).accepted
    parent.settle("", yielded=True)
    hand.begin("child").settle(text)
    turn = hand.begin("parent")
    [completed] = turn.spec.completions
    turn.settle("heard")
    hand.push()
    result = completed.completion.result
    rows = [row for row in hand.rows if row.key.startswith("announce:")]
    return delivered(hand), result.text, result.missing, len(rows)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("an answer", ("delivered", "an answer", False, 1)),
        ("NO_REPLY", ("delivered", None, True, 1)),
        ("no_reply", ("delivered", None, True, 1)),
        ("ANNOUNCE_SKIP", ("not_required", None, True, 0)),
        ("ANNOUNCE_SKIP\n", ("not_required", None, True, 0)),
        ("announce_skip", ("delivered", "announce_skip", False, 1)),
        ("I say ANNOUNCE_SKIP", ("delivered", "I say ANNOUNCE_SKIP", False, 1)),
    ],
)
def test_silence_is_a_whole_answer(text: str, told: tuple[str, str | None, bool, int]) -> None:
    assert said(text) == told


def test_the_older_generation_takes_no_reply_for_silence() -> None:
    assert said("NO_REPLY", compat=Compat.V2026_7, max_spawn_depth=2)[0] == "not_required"


def test_where_no_completion_is_expected_nothing_is_announced() -> None:
    assert said("an answer", expects=False)[0] == "not_required"
    assert said("an answer", expects=False)[3] == 0


def test_a_silent_end_alone_makes_no_further_turn() -> None:
    hand, parent = family()
    parent.settle("waits", follow_up=True)
    hand.turns["child"].settle("ANNOUNCE_SKIP")
    assert not hand.sent(Start)
    assert hand.state("parent") == "succeeded"


def test_without_the_rule_the_token_is_shown() -> None:
    with without(delivery.Delivery, "silenced", lambda self, run: None):
        assert said("ANNOUNCE_SKIP") == ("delivered", "ANNOUNCE_SKIP", False, 1)
