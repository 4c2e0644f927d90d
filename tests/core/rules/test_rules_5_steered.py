"""A message for the turn that runs: it or the message's own turn has it, whoever comes first (SPEC.md B2)."""

from __future__ import annotations

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.message import HOPS_MOST, SendAsk
from openclaw_ray.core.policy import Sender
from openclaw_ray.core.protocol import steered
from openclaw_ray.core.protocol.messages import TAKEN, Replied, Start, Steered, TakeSteered
from rules.hand import Hand, without
from rules.test_rules_5_talk import A, B, asked, begun, crash, over, replies, send, two
from rules.turn import Turn


def told(hand: Hand, turn: Turn) -> list[str]:
    """The messages that a turn was told of, each once."""
    hand.notify()
    turn.started()  # a step of its process confirms them, and what gathered meanwhile follows
    hand.notify()
    return list(dict.fromkeys(one.message for one in hand.messages(Steered, turn.activation)))


def take(turn: Turn, message: str) -> str:
    [verdict] = turn.say(TakeSteered(turn.run, turn.activation, message)).verdicts
    assert verdict.run == message
    return verdict.word


def busy(hand: Hand) -> tuple[Turn, Turn]:
    """A sender's turn, and the turn that runs at the target."""
    return asked(hand), asked(hand, "work", "b")


@pytest.mark.parametrize("crashes", [0, 2])
def test_the_running_turn_takes_it_once_and_it_gets_no_turn_of_its_own(crashes: int) -> None:
    hand = two()
    turn, work = busy(hand)
    assert send(turn, "m", mode="steer").accepted
    crash(hand, crashes)
    assert told(hand, work) == ["m"]
    [message, *_] = hand.messages(Steered, work.activation)
    assert (message.text, message.source and message.source.session_key) == ("m", A)
    assert take(work, "m") == TAKEN
    crash(hand, crashes)
    assert take(work, "m") == "refused"
    [sent] = {repr(one): one for one in replies(hand, turn.activation)}.values()
    assert (sent.status, sent.steered, sent.ended, sent.reply) == ("accepted", True, "steered", None)
    assert not sent.pending
    assert sent.to_json()["targetDisposition"] == "steered"
    assert sent.to_json()["delivery"] == {"status": "skipped", "mode": "announce"}
    over(turn, "m")
    work.settle("with it")
    turn.settle("so it is")
    assert not hand.take(Start)
    assert hand.state("m") == "succeeded"
    assert hand.registry.s.exchanges == {}
    assert hand.journal.live("exchanges") == []


def test_what_no_turn_takes_is_the_next_turn_with_its_reply() -> None:
    hand = two(0)
    turn, work = busy(hand)
    send(turn, "m", mode="steer")
    work.settle("did not look")
    reply = begun(hand, "m")
    assert take(reply, "m") == "refused"  # it is the turn that this very message has started
    reply.settle("an answer")
    assert [(sent.status, sent.reply, sent.steered) for sent in replies(hand, turn.activation)] == [
        ("ok", "an answer", False)
    ]


def test_a_turn_that_starts_is_told_of_those_behind_it() -> None:
    hand = two(0)
    turn, work = busy(hand)
    for message, mode in (("plain", ""), ("m1", "steer"), ("m2", "steer")):
        send(turn, message, mode=mode, wait=False)
    assert told(hand, work) == ["m1", "m2"]
    work.settle("did not look")
    plain = begun(hand, "plain")
    plain.started()
    assert told(hand, plain) == ["m1", "m2"]
    assert [take(plain, one) for one in ("m2", "m1")] == [TAKEN, TAKEN]
    plain.settle("")
    assert not [start for start in hand.take(Start) if start.spec.session_key == B]


def test_a_turn_that_is_over_or_another_sessions_takes_nothing() -> None:
    hand = two(0)
    turn, work = busy(hand)
    send(turn, "m", mode="steer", wait=False)
    send(turn, "plain", wait=False)
    assert take(turn, "m") == "refused"
    assert take(work, "plain") == "refused"
    assert take(work, "work") == "refused"
    assert take(work, "nothing") == "refused"
    work.settle("")
    assert take(work, "m") == "refused"
    assert begun(hand, "m").spec.text == "m"


def test_who_did_not_wait_hears_that_it_was_steered_with_the_next_turn_and_is_not_called_for_it() -> None:
    hand = two()
    turn, work = busy(hand)
    send(turn, "m", mode="steer", wait=False)
    turn.settle("sent")
    assert take(work, "m") == TAKEN
    work.settle("")
    assert not hand.take(Start)
    again = asked(hand, "again")
    [news] = again.spec.news
    assert (news.sent and news.sent.steered, news.text) == (True, "")


def test_a_turn_that_took_a_message_is_of_its_chain() -> None:
    hand = two()
    turn, work = busy(hand)
    for hop in range(HOPS_MOST + 1):
        sender, target = (turn, work) if hop % 2 == 0 else (work, turn)
        receipt = send(sender, f"m{hop}", target.spec.session_key, mode="steer", wait=False)
        assert receipt.accepted == (hop < HOPS_MOST), receipt
        if receipt.accepted:
            assert take(target, f"m{hop}") == TAKEN
    assert receipt.limit == "chain"


def test_no_senders_words_get_into_a_turn_that_may_do_more() -> None:
    ada, bob = Sender(id="1"), Sender(id="2")
    hand = two(0)
    hand.admit("for-ada", session_key=B, session_id="s-b", route="ask", agent_id="b", sender=ada)
    work = hand.begin("for-ada")
    work.started()
    for name, sender in (("by-bob", bob), ("by-ada", ada), ("by-nobody", None)):
        ask = SendAsk(B, mode="steer")
        hand.admit(name, session_key="", session_id=f"s-{name}", route="send", send=ask, sender=sender)
    assert told(hand, work) == ["by-ada", "by-nobody"]
    assert take(work, "by-bob") == "refused"
    with without(steered, "_may_have", lambda run, message: True):
        assert take(work, "by-bob") == TAKEN
    assert [take(work, one) for one in ("by-ada", "by-nobody")] == [TAKEN, TAKEN]


def test_a_stop_takes_those_in_line_and_a_taken_one_ends_with_its_turn() -> None:
    hand = two(0)
    turn, work = busy(hand)
    for message in ("m1", "m2"):
        send(turn, message, mode="steer", wait=False)
    assert take(work, "m1") == TAKEN
    hand.stop(B)
    assert take(work, "m2") == "refused"
    work.settle(state=RunState.CANCELLED)
    assert [hand.state(one) for one in ("m1", "m2", "work")] == ["succeeded", "cancelled", "cancelled"]
    assert not hand.messages(Replied, turn.activation)
