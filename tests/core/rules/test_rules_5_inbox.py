"""5.6: messages to a busy session wait in line; the line has a bound over all senders."""

from __future__ import annotations

import pytest

from openclaw_ray.core.protocol import messaging
from openclaw_ray.core.protocol.messages import Start
from openclaw_ray.core.results import INBOX
from rules.hand import Hand, without


def busy(most: int = 3, drivers: tuple[str, ...] = ("driver", "other")) -> Hand:
    """A session in a turn, whose inbox holds ``most``."""
    hand = Hand(actors=2, drivers=drivers, inbox_max=most)
    hand.ask("first")
    hand.begin("first").started()
    return hand


def test_the_bound_is_over_all_senders_and_a_refused_one_leaves_nothing() -> None:
    hand = busy()
    got = [hand.ask(f"m{number}", ("driver", "other")[number % 2]) for number in range(6)]
    assert [receipt.accepted for receipt in got] == [True] * 3 + [False] * 3
    refused = got[3]
    assert (refused.limit, refused.value, refused.maximum, refused.path) == (INBOX, 3, 3, "ray.inbox.max")
    assert "3 of 3" in (refused.error or "")
    assert hand.journal.get("runs", "m3") is None
    assert "m3" not in hand.registry.s.runs
    with without(messaging, "inbox_full", lambda s, session: None):
        hand = busy()
        assert all(hand.ask(f"m{number}").accepted for number in range(6))


def test_many_in_one_step_do_not_get_past_it() -> None:
    hand = busy(2)
    key = "agent:w:main"
    runs = [f"m{number}" for number in range(5)]
    receipts = hand.admit_all(runs, session_key=key, session_id="w-main", route="ask", agent_id="w")
    assert [receipt.accepted for receipt in receipts] == [True, True, False, False, False]


def test_there_is_room_again_when_one_is_taken_and_order_is_kept() -> None:
    hand = busy(2)
    assert [hand.ask(run).accepted for run in "abc"] == [True, True, False]
    hand.turns["first"].settle()
    assert [hand.ask(run).accepted for run in "de"] == [True, False]
    for run in "abd":
        turn = hand.begin(run)
        assert turn.spec.text == run
        turn.settle()
    assert not hand.sent(Start)


@pytest.mark.parametrize("crashes", [1, 2])
def test_the_bound_holds_in_the_next_registry(crashes: int) -> None:
    hand = busy(2)
    assert [hand.ask(run).accepted for run in "ab"] == [True, True]
    for _ in range(crashes):
        hand.crash_registry()
        hand.adopt()
    assert hand.ask("c").accepted is False


def test_the_hint_is_as_long_as_the_turn_has_taken() -> None:
    hand = busy(0)  # an idle session always takes one
    hand.clock.advance(4.0)
    assert hand.ask("a").retry_after == pytest.approx(4.0, abs=0.1)
    hand.clock.advance(400.0)
    assert hand.ask("b").retry_after == 30.0


def test_a_message_whose_end_nobody_waits_for_leaves_memory_with_it() -> None:
    hand = Hand(actors=1)
    receipt = hand.admit("a", session_key="agent:w:main", session_id="w-main", route="ask", agent_id="w", expects=False)
    assert receipt.accepted
    hand.begin("a").settle("the reply")
    hand.poll()
    assert hand.ends() == []
    assert "a" not in hand.registry.s.runs
    ended = hand.registry.ended("a")
    assert ended is not None
    assert ended.completion.result.text == "the reply"
