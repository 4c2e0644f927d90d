"""SPEC.md B3, PROTOCOL.md 5.4: what a yield waits for, the frozen batch, and a message that a run waits for."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.protocol import ending, yielding
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Start
from openclaw_ray.core.results import Receipt
from rules.asking import admit, key_of
from rules.hand import Hand, without
from rules.turn import Turn


def starts(hand: Hand, run: str = "") -> list[tuple[str, int, str]]:
    """The starts on their way: run, turn, kind."""
    return [(s.spec.run, s.spec.turn, s.spec.kind) for s in hand.sent(Start, run)]


def carried(turn: Turn) -> list[str]:
    """Whose ends a turn was started with."""
    return [c.run for c in turn.spec.completions]


def tell(hand: Hand, run: str, text: str, by: str = "driver", message: str = "m") -> Receipt:
    """The operator says something to the session of a run."""
    return hand.admit(message, by, session_key=key_of(run), session_id="s-none", route="ask", task=text)


def on_behalf(hand: Hand, run: str, of: str) -> Receipt:
    """The operator spawns a child for the session of a run."""
    hand.courier("driver").admit(admit(run, key_of(of)), run)
    return hand.receipts("driver", 1)[0]


def waiting(**limits: Any) -> tuple[Hand, Turn]:
    """A child of ``top`` that waits for a message."""
    hand = Hand(actors=5, **limits)
    child = hand.start("top").child("child")
    child.settle("", yielded=True, follow_up=True, waits_for="message")
    return hand, child


def crowded(**limits: Any) -> tuple[Hand, Turn]:
    """The same, while another child has the only slot: the turn of that."""
    hand, _ = waiting(max_concurrent=1, global_lane=True, **limits)
    return hand, hand.turns["top"].child("busy")


# ------------------------------------------------------------------ the frozen batch


def test_a_child_that_ended_before_the_yield_wakes_at_once() -> None:
    """2"""
    hand = Hand(actors=3)
    parent = hand.start("parent")
    parent.child("c0").settle()
    parent.settle(yielded=True)
    assert starts(hand) == [("parent", 2, "wake")]
    assert carried(hand.begin("parent")) == ["c0"]


def test_what_is_spawned_on_the_sessions_behalf_meanwhile_is_not_of_the_batch() -> None:
    """1: the wake does not wait for it; its end comes with a later turn, or is a row."""

    def schedule() -> list[tuple[str, int, str]]:
        hand = Hand(actors=4)
        parent = hand.start("parent")
        child = parent.child("c0")
        parent.settle(yielded=True)
        receipt = on_behalf(hand, "late", "parent")
        assert receipt.accepted
        hand.begin("late")
        child.settle()
        return starts(hand)

    assert schedule() == [("parent", 2, "wake")]
    with without(Ending, "batch_complete", lambda self, run: run.unsettled == 0):
        assert schedule() == []


def test_a_child_of_whose_end_nobody_is_told_holds_no_wake_up() -> None:
    """1: the run does not end before it, though (5.2)."""
    hand = Hand(actors=4)
    parent = hand.start("parent")
    child, quiet = parent.child("c0"), parent.child("quiet", expects=False)
    parent.settle(yielded=True)
    child.settle()
    woken = hand.begin("parent")
    assert (woken.spec.kind, carried(woken)) == ("wake", ["c0"])
    assert woken.settle("done").word == "paused"
    quiet.settle()
    assert hand.state("parent") == "succeeded"


def test_a_second_batch_during_the_wake_has_its_own_single_wake() -> None:
    """3 (SCENARIOS.md 17)"""
    hand = Hand(actors=5)
    parent = hand.start("parent")
    first = [parent.child(f"a{i}") for i in range(2)]
    parent.settle(yielded=True)
    for child in first:
        child.settle()
    woken = hand.begin("parent")
    second = [woken.child(f"b{i}") for i in range(2)]
    woken.settle(yielded=True)
    assert hand.run("parent").waits.generation == 2
    second[0].settle()
    assert starts(hand) == []
    second[1].settle()
    again = hand.begin("parent")
    assert (again.spec.kind, carried(again)) == ("wake", ["b0", "b1"])
    assert again.settle("all").word == "settled"


@pytest.mark.parametrize("crash", [False, True])
def test_findings_are_in_the_order_of_birth_whatever_the_order_of_ends(crash: bool) -> None:
    """2: ordered by (createdAt, endedAt, key); all have ended in one tick, and the registry dies before the wake."""
    hand = Hand(actors=8, pool_max=20, max_children=20)
    parent = hand.start("parent")
    children = []
    for i in range(5):
        children.append(parent.child(f"c{i}"))
        hand.clock.advance(0.001)
    parent.settle(yielded=True)
    for child in reversed(children):
        child.settle()
    if crash:
        hand.effects.clear()
        hand.crash_registry()
        hand.adopt()
        hand.wait(2.5)
        for report in list(hand.actors):
            hand.report(report)
    starts_sent = hand.take(Start, "parent")
    assert [[c.run for c in start.spec.completions] for start in starts_sent[:1]] == [["c0", "c1", "c2", "c3", "c4"]]
    assert {start.spec.activation for start in starts_sent} == {starts_sent[0].spec.activation}


def test_a_batch_is_kept_over_a_crash_of_the_registry() -> None:
    """1: not what was spawned meanwhile."""
    hand = Hand(actors=4)
    parent = hand.start("parent")
    child = parent.child("c0")
    parent.settle(yielded=True)
    on_behalf(hand, "late", "parent")
    hand.crash_registry()
    hand.adopt()
    child.settle()
    assert ("parent", 2, "wake") in starts(hand)


# ------------------------------------------------------------------ waiting for a message


def test_a_run_that_waits_for_a_message_has_no_slot_and_no_process() -> None:
    """5"""
    hand, child = waiting()
    run = hand.run("child")
    assert (run.state, run.pause, run.slot) == ("paused", "message", -1)
    assert hand.registry.s.actors[child.actor].state == "idle"


def test_a_message_starts_a_turn_of_the_same_run_whose_end_is_its_requesters() -> None:
    """5: identity, deadline, recipient stay."""
    hand, _ = waiting()
    before = hand.run("child")
    seen = (before.id, before.session, before.requester, before.timeout, before.created, before.deliver_to)
    receipt = tell(hand, "child", "go on")
    assert (receipt.status, receipt.run_id, receipt.told) == ("accepted", "child", True)
    turn = hand.begin("child")
    assert (turn.spec.kind, turn.spec.turn, turn.spec.text) == ("message", 2, "go on")
    verdict = turn.settle("the answer")
    assert verdict.deliver is not None
    assert verdict.deliver.activation == hand.turns["top"].activation
    after = hand.run("child")
    assert (after.id, after.session, after.requester, after.timeout, after.created, after.deliver_to) == seen
    assert after.outcome.text == "the answer"


def test_the_deadline_goes_on_while_a_message_is_waited_for() -> None:
    """5"""
    hand = Hand(actors=3)
    child = hand.start("top").child("child", timeout=10)
    child.started()
    child.settle("", yielded=True, waits_for="message")
    hand.wait(11)
    assert hand.state("child") == "timed_out"
    assert not tell(hand, "child", "too late").told


def test_a_stop_ends_a_run_that_waits_for_a_message() -> None:
    """5: and no later message starts it."""
    hand, _ = waiting()
    hand.stop("child")
    assert hand.state("child") == "cancelled"
    assert not tell(hand, "child", "go on").told
    assert starts(hand, "child") == []


def test_messages_that_come_before_the_turn_starts_go_with_it_in_order() -> None:
    """5"""
    hand, busy = crowded()
    for number, text in enumerate(["one", "two", "three"]):
        assert tell(hand, "child", text, message=f"m{number}").accepted
    assert starts(hand) == []
    busy.settle()
    turn = hand.begin("child")
    assert [told.text for told in turn.spec.told] == ["one", "two", "three"]
    assert turn.spec.text == "three"
    assert starts(hand) == []


def test_the_same_message_again_is_as_the_first_time() -> None:
    """telling 4"""
    hand, busy = crowded()
    receipts = {tell(hand, "child", "go on", message="m") for _ in range(2)}
    assert len(receipts) == 1
    busy.settle()
    assert len(hand.begin("child").spec.told) == 1


def test_more_messages_than_the_inbox_holds_are_refused() -> None:
    """telling 2"""
    hand, _ = crowded(inbox_max=2)
    receipts = [tell(hand, "child", "x", message=f"m{i}") for i in range(3)]
    assert [r.accepted for r in receipts] == [True, True, False]
    assert "ray.inbox.max" in str(receipts[2].error)


def test_a_message_is_kept_over_a_crash_of_the_registry() -> None:
    """7"""
    hand, _ = waiting()
    assert tell(hand, "child", "go on").accepted
    hand.effects.clear()
    hand.crash_registry()
    hand.adopt()
    hand.wait(2.5)
    for actor in list(hand.actors):
        hand.report(actor)
    assert {start.spec.text for start in hand.sent(Start, "child")} == {"go on"}


def test_a_run_that_waits_for_a_message_still_does_after_a_crash() -> None:
    """5"""
    hand, _ = waiting()
    hand.crash_registry()
    hand.adopt()
    assert hand.run("child").pause == "message"
    assert tell(hand, "child", "go on").accepted
    assert starts(hand) == [("child", 2, "message")]


def test_a_top_level_run_never_waits_for_a_message() -> None:
    """5: its messages are runs of their own, which would wait behind it for ever."""
    hand = Hand(actors=2)
    hand.ask("m1")
    hand.begin("m1").settle("said", yielded=True, waits_for="message")
    assert hand.state("m1") == "succeeded"


def test_a_sub_agent_that_waits_for_children_alone_takes_its_message_as_another_run() -> None:
    """telling 1: and in its turn; the message waits behind that run."""
    hand = Hand(actors=4)
    child = hand.start("top").child("child")
    below = child.child("below")
    child.settle(yielded=True)
    receipt = tell(hand, "child", "hello")
    assert (receipt.accepted, receipt.told, receipt.run_id) == (True, False, "m")
    assert starts(hand) == []
    below.settle()
    assert [kind for run, _, kind in starts(hand) if run == "child"] == ["wake"]
    hand.begin("child").settle()
    hand.begin("m").settle()


def test_what_was_in_line_when_the_run_began_to_wait_is_told_at_once() -> None:
    """telling 4: it would wait behind that run for ever."""

    def schedule() -> tuple[list[tuple[str, int, str]], str]:
        hand = Hand(actors=4)
        child = hand.start("top").child("child")
        assert tell(hand, "child", "too early?").told is False
        child.settle("", yielded=True, follow_up=True, waits_for="message")
        return starts(hand), hand.state("m")

    assert schedule() == ([("child", 2, "message")], "succeeded")
    with without(ending, "take_line", lambda s, run, session: []):
        assert schedule() == ([], "queued")


def test_a_notice_is_no_message_that_is_waited_for() -> None:
    """telling 1"""
    hand, _ = waiting()
    notice = SendAsk(key_of("child"), mode="notify")
    receipt = hand.admit("n", session_key="", route="send", task="by the way", send=notice)
    assert (receipt.accepted, receipt.told) == (True, False)
    assert hand.run("child").pause == "message"
    tell(hand, "child", "go on")
    turn = hand.begin("child")
    assert [news.text for news in turn.spec.news] == ["by the way"]


def test_a_session_above_may_say_it_and_waits_for_no_reply() -> None:
    """telling 1, 3: the run is of that message's chain from then on."""
    hand, _ = waiting()
    top = hand.turns["top"]
    ask = SendAsk(key_of("child"), wait=True)
    receipt = top.spawn("m", session_key="", route="send", task="go on", send=ask)
    assert (receipt.accepted, receipt.told, receipt.run_id) == (True, True, "child")
    turn = hand.begin("child")
    assert [(told.text, told.sender) for told in turn.spec.told] == [("go on", key_of("top"))]
    assert hand.run("child").talk.hops == 1
    assert turn.settle("the answer").deliver is not None


# ------------------------------------------------------------------ both


def both() -> tuple[Hand, Turn]:
    """A child that has two of its own and waits for a message, too; the turn of its first child."""
    hand = Hand(actors=6)
    child = hand.start("top").child("child")
    first, _ = child.child("c0"), child.child("c1")
    child.settle("", yielded=True, follow_up=True, waits_for="message")
    return hand, first


def test_a_message_before_the_batch_is_complete_is_a_turn_of_its_own_and_the_wake_is_still_owed() -> None:
    """3, 6: one wake with every outcome, also of what had ended before that turn."""

    def schedule() -> list[list[str]]:
        hand, first = both()
        first.settle()
        assert tell(hand, "child", "how far?").accepted
        turn = hand.begin("child")
        given = [carried(turn)]
        assert turn.settle("half").word == "paused"
        hand.turns["c1"].settle()
        woken = hand.begin("child")
        given.append(carried(woken))
        assert woken.spec.kind == "wake"
        assert woken.settle("all").word == "settled"
        return given

    assert schedule() == [[], ["c0", "c1"]]
    with without(yielding, "given", lambda s, run, session: tuple(session.pending)):
        assert schedule() == [["c0"], ["c1"]], "the wake had not every outcome"


def test_the_wake_ends_the_wait_for_a_message() -> None:
    """6"""
    hand, first = both()
    first.settle()
    hand.turns["c1"].settle()
    woken = hand.begin("child")
    assert (woken.spec.kind, carried(woken)) == ("wake", ["c0", "c1"])
    assert woken.settle("all").word == "settled"


@pytest.mark.parametrize("first_comes", ["the message", "the end"])
def test_what_has_come_of_both_before_the_turn_starts_is_one_turn(first_comes: str) -> None:
    """6: another has the only slot meanwhile."""
    hand = Hand(actors=5, max_concurrent=1, global_lane=True)
    top = hand.start("top")
    child = top.child("child")
    child.spawn("c0")
    child.settle("", yielded=True, follow_up=True, waits_for="message")
    below = hand.begin("c0")
    below.pause()
    busy = top.child("busy")
    for what in ("the message", "the end") if first_comes == "the message" else ("the end", "the message"):
        if what == "the end":
            below.settle()
        else:
            assert tell(hand, "child", "and?").accepted
    assert starts(hand) == []
    busy.settle()
    turn = hand.begin("child")
    assert (turn.spec.kind, turn.spec.text, carried(turn)) == ("message", "and?", ["c0"])
    assert starts(hand) == []
    assert turn.settle("done").word == "settled"


def test_a_yield_in_a_messages_turn_takes_the_rest_of_the_batch_along() -> None:
    """3: one wake for both, of the next generation."""
    hand, first = both()
    assert tell(hand, "child", "one more").accepted
    turn = hand.begin("child")
    other = turn.child("c2")
    first.settle()
    turn.settle("", yielded=True, follow_up=True)
    assert hand.run("child").waits.generation == 2
    other.settle()
    assert hand.sent(Start, "child") == []
    hand.turns["c1"].settle()
    woken = hand.begin("child")
    assert (woken.spec.kind, carried(woken)) == ("wake", ["c0", "c1", "c2"])
    woken.settle("all")
    assert {hand.run(c).delivery for c in ("c0", "c1", "c2")} == {DeliveryState.DELIVERED}
