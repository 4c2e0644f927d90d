"""Exchanges in the registry: each step is journaled, told until it is confirmed, and heard once (DESIGN.md 6)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.message import HOPS_MOST, SendAsk
from openclaw_ray.core.protocol import admitting, messaging, talking
from openclaw_ray.core.protocol.messages import Replied, SendOver, Start, StopAsk
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.core.results import INBOX, Receipt
from openclaw_ray.core.visibility import SessionRules, Visibility
from rules.asking import agent
from rules.hand import Hand, without
from rules.turn import Turn

A, B = "agent:a:main", "agent:b:main"


def talker(name: str) -> AgentEntry:
    return dataclasses.replace(agent(name), follow_up=True)


def two(turns: int = 5, **limits: Any) -> Hand:
    """Agents ``a`` and ``b``, whose sessions may use each other."""
    rules = SessionRules(visibility=Visibility.ALL, max_ping_pong_turns=turns)
    return Hand(actors=4, agents=[talker("a"), talker("b")], sessions=rules, **limits)


def asked(hand: Hand, run: str = "ask", name: str = "a") -> Turn:
    """A turn of an agent's main session, asked for by the operator."""
    hand.admit(run, session_key=f"agent:{name}:main", session_id=f"s-{name}", route="ask", agent_id=name)
    turn = hand.begin(run)
    turn.started()
    return turn


def send(turn: Turn, run: str, to: str = B, *, wait: bool = True, **ask: Any) -> Receipt:
    """The turn sends a message, which is the run of that name."""
    return turn.spawn(run, route="send", send=SendAsk(to, wait=wait, **ask), expects=False)


def replies(hand: Hand, receiver: str) -> list[Any]:
    hand.notify()
    return [message.sent for message in hand.messages(Replied, receiver)]


def over(turn: Turn, run: str, *, heard: bool = True) -> None:
    turn.say(SendOver(turn.activation, run, heard))


def begun(hand: Hand, run: str) -> Turn:
    """The start of a run arrives, as often as it was sent."""
    for start in hand.take(Start, run):
        hand.deliver(start)
    return hand.turns[run]


def crash(hand: Hand, times: int = 1) -> None:
    for _ in range(times):
        hand.crash_registry()
        hand.adopt()


@pytest.mark.parametrize("crashes", [0, 1, 2])
def test_a_whole_exchange_goes_on_over_registry_crashes_at_every_step(crashes: int) -> None:
    hand = two(2)
    turn = asked(hand)
    assert send(turn, "m", wait=True).accepted
    crash(hand, crashes)
    reply = begun(hand, "m")
    assert (reply.spec.source is not None and reply.spec.source.session_key, reply.spec.text) == (A, "m")
    reply.settle("b0")
    crash(hand, crashes)
    [sent] = {repr(s): s for s in replies(hand, turn.activation)}.values()
    assert (sent.status, sent.reply, sent.turns, sent.pending) == ("ok", "b0", 0, True)
    over(turn, "m")
    turn.settle("thanks")
    crash(hand, crashes)
    for number, (who, said) in enumerate([(A, "a1"), (B, "b2")], 1):
        step = begun(hand, f"m.{number}")
        assert step.spec.session_key == who
        assert step.spec.source is not None
        assert (step.spec.source.turn, step.spec.source.most) == (number, 2)
        step.settle(said)
        crash(hand, crashes)
    last = begun(hand, "m.announce")
    assert (last.spec.session_key, last.spec.source and last.spec.source.step) == (B, "announce")
    last.settle("made known")
    crash(hand, crashes)
    start = next(s for s in hand.take(Start) if s.spec.session_key == A)
    [news] = start.spec.news
    assert news.sent is not None
    assert (news.text, news.sent.turns, news.sent.ended) == ("made known", 2, "limit reached")
    assert hand.registry.s.exchanges, "until its program has had it"
    hand.deliver(start)
    hand.turns[start.spec.run].settle("")
    assert hand.registry.s.exchanges == {}
    assert hand.journal.live("exchanges") == []
    hand.push()
    assert [row.key for row in hand.rows if row.key and row.key.startswith("send:")] == ["send:v1:m"]


@pytest.mark.parametrize("how", ["expired", "settled", "killed"])
def test_what_its_waiter_did_not_hear_is_told_with_the_next_turn_once(how: str) -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "m")
    if how == "expired":
        over(turn, "m", heard=False)
        turn.settle("gave up")
    elif how == "settled":
        turn.settle("left")
    else:
        hand.kill(turn.actor)
    hand.begin("m").settle("late")
    [start] = [s for s in hand.take(Start) if s.spec.session_key == A]
    assert [news.text for news in start.spec.news] == ["late"]
    hand.deliver(start)
    hand.turns[start.spec.run].started()
    hand.turns[start.spec.run].settle("heard")
    again = asked(hand, "again")
    assert again.spec.news == ()


def test_a_reply_that_was_told_but_not_confirmed_counts_as_unheard() -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "m")
    hand.begin("m").settle("b0")
    assert len(replies(hand, turn.activation)) == 1
    over(turn, "m", heard=False)  # its time was over before the reply came
    turn.settle("gave up")
    [start] = [s for s in hand.take(Start) if s.spec.session_key == A]
    assert [news.text for news in start.spec.news] == ["b0"]


def test_news_that_a_start_carried_in_vain_goes_with_the_next_one() -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "m", wait=False)
    turn.settle("on")
    hand.begin("m").settle("late")
    [start] = [s for s in hand.take(Start) if s.spec.session_key == A]
    hand.kill(start.actor)
    again = asked(hand, "again")
    assert [news.text for news in again.spec.news] == ["late"]


def test_a_waiting_run_counts_one_deeper_than_its_waiter() -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "waited")
    send(turn, "not", wait=False)
    deeper = hand.run("waited").reserve_depth - hand.run("ask").reserve_depth
    assert (deeper, hand.run("not").reserve_depth) == (1, hand.run("ask").reserve_depth)
    assert hand.run("waited").lane == f"nested:{B}"


def test_two_that_wait_for_each_other_are_refused_and_the_rule_is_what_does_it() -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "m")
    reply = hand.begin("m")
    refused = send(reply, "back", A)
    assert (refused.status, refused.limit) == ("error", "waitCycle")
    assert f"{B} waits for {A} waits for {B}" in (refused.error or "")
    assert send(reply, "aside", A, wait=False).accepted
    assert hand.journal.get("runs", "back") is None
    with without(messaging, "wait_cycle", lambda *_: ()):
        assert send(reply, "closed", A).accepted


def test_a_circle_through_a_child_is_one() -> None:
    hand = two(0)
    turn = asked(hand)
    child = turn.child("c", agent_id="a")
    refused = send(child, "up", A)
    assert refused.limit == "waitCycle"
    assert "agent:w:subagent:c" in (refused.error or "")


def test_a_wait_that_is_over_is_no_edge() -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "m")
    reply = hand.begin("m")
    over(turn, "m", heard=False)
    assert send(reply, "back", A).accepted


def test_the_chain_has_a_bound_over_all_its_exchanges() -> None:
    hand = two(5)
    turn = asked(hand)
    for number in range(1, HOPS_MOST + 1):
        to = B if number % 2 else A
        receipt = send(turn, f"m{number}", to, wait=False)
        assert receipt.accepted, receipt.error
        turn.settle("on")
        while others := [s.spec.run for s in hand.sent(Start) if s.spec.run != f"m{number}"]:
            hand.begin(others[0]).settle("REPLY_SKIP")
        turn = hand.begin(f"m{number}")
    refused = send(turn, "more", A, wait=False)
    assert (refused.status, refused.limit, refused.value, refused.maximum) == ("forbidden", "chain", 6, 6)
    with without(talking, "HOPS_MOST", 99), without(messaging, "HOPS_MOST", 99):
        assert send(turn, "more", A, wait=False).accepted


def test_an_ended_sub_agent_is_activated_again_under_its_parent_and_a_stop_reaches_it() -> None:
    hand = two(0)
    turn = asked(hand)
    turn.child("c").settle("done")
    turn.hears()
    turn.consume("c")
    assert "agent:w:subagent:c" not in hand.registry.s.sessions
    assert send(turn, "m", "agent:w:subagent:c").accepted
    run = hand.run("m")
    assert (run.parent, run.depth, run.requester) == ("ask", 1, A)
    hand.begin("m")
    hand.stop(A)
    assert hand.run("m").grace_at is not None
    hand.turns["m"].settle("stopped")
    hand.turns["ask"].settle("stopped")
    assert [hand.state(r) for r in ("m", "ask")] == ["cancelled", "cancelled"]
    assert hand.registry.s.sessions.get("agent:w:subagent:c") is None


def test_a_paused_parent_goes_on_when_the_message_to_its_child_has_ended() -> None:
    hand = two(0)
    turn = asked(hand)
    turn.child("c").settle("done")
    turn.hears()
    turn.consume("c")
    send(turn, "m", "agent:w:subagent:c", wait=False)
    assert turn.settle("on").word == "paused"
    hand.begin("m").settle("again")
    assert hand.state("ask") == "succeeded"


def test_a_session_that_may_not_use_another_learns_nothing_of_it() -> None:
    hand = Hand(actors=2, agents=[agent("a"), agent("b")])
    turn = asked(hand)
    there, absent = send(turn, "x", B), send(turn, "y", "agent:nobody:main")
    assert (there.status, absent.status) == ("forbidden", "forbidden")
    assert (there.error or "").replace("agent:b", "agent:nobody") == absent.error
    assert B not in hand.registry.s.sessions


def test_the_inbox_is_bounded_for_sessions_too() -> None:
    hand = two(0, inbox_max=1)
    turn = asked(hand)
    assert [send(turn, f"m{n}", wait=False).limit for n in range(3)] == [None, None, INBOX]


def test_a_dead_participant_ends_it_with_a_name() -> None:
    hand = two(3)
    turn = asked(hand)
    send(turn, "m", wait=False)
    turn.settle("on")
    hand.begin("m").settle("b0")
    step = hand.begin("m.1")
    hand.kill(step.actor)
    exchange = hand.registry.s.exchanges["m"]
    assert (exchange.why, exchange.turns) == ("failed", 1)
    assert exchange.error is not None
    assert A in exchange.error


def test_a_run_that_times_out_is_a_timeout_and_another_failure_an_error() -> None:
    hand = two(3)
    turn = asked(hand)
    send(turn, "m")
    hand.begin("m").settle("no", state=RunState.FAILED)
    [sent] = replies(hand, turn.activation)
    assert (sent.status, sent.error, sent.ended, sent.turns) == ("error", "no", "failed", 0)
    hand.registry.s.runs["ask"].talk = None
    send(turn, "late")
    hand.registry.s.runs["late"].timeout = 5.0
    late = hand.begin("late")
    hand.registry.s.runs["late"].deadline = hand.clock.mono()
    late.settle("too late")
    assert replies(hand, turn.activation)[-1].status == "timeout"
    assert replies(hand, turn.activation)[-1].to_json()["sentBeforeError"] is True


def test_what_a_childs_turn_sends_is_of_its_parents_chain() -> None:
    hand = two(0)
    turn = asked(hand)
    send(turn, "m", wait=False)
    child = hand.begin("m").child("c", agent_id="b")
    assert send(child, "on", B, wait=False).accepted
    exchange = hand.registry.s.exchanges["on"]
    assert (exchange.chain, exchange.hops) == ("m", 2)
    with without(admitting, "heir", lambda talk: None):
        other = hand.turns["m"].child("d", agent_id="b")
        send(other, "free", B, wait=False)
    assert hand.registry.s.exchanges["free"].chain == "free"


def test_a_stop_by_a_session_that_controls_nothing_there_ends_no_exchange() -> None:
    hand = two(5)
    turn = asked(hand)
    send(turn, "m", wait=False)
    turn.settle("on")
    other = asked(hand, "other", "w")
    other.say(StopAsk("stop", A, by="agent:w:main"))
    assert not hand.registry.s.exchanges["m"].over
    hand.stop(A)
    assert hand.registry.s.exchanges["m"].why == "stopped"


def test_news_for_a_sub_agent_that_has_no_further_turn_is_not_kept() -> None:
    hand = two(0)
    turn = asked(hand)
    child = turn.child("c", agent_id="a")
    send(child, "m", wait=False)
    hand.begin("m").settle("late")
    assert list(hand.registry.s.news) == ["agent:w:subagent:c"]
    child.settle("done")
    turn.hears()
    turn.consume("c")
    assert (hand.registry.s.news, hand.registry.s.exchanges) == ({}, {})


def test_a_wait_that_holds_the_only_process_its_reply_could_come_from_ends_at_once() -> None:
    rules = SessionRules(visibility=Visibility.ALL, max_ping_pong_turns=0)
    hand = Hand(actors=1, pool_max=1, agents=[talker("a"), talker("b")], sessions=rules, max_spawn_depth=0)
    turn = asked(hand)
    send(turn, "m")
    assert replies(hand, turn.activation) == [], "it has not paused yet: it may have other things to do"
    turn.pause()
    [sent] = replies(hand, turn.activation)
    assert (sent.status, sent.pending) == ("accepted", True)
    over(turn, "m")
    turn.resume()
    turn.settle("on")
    hand.begin("m").settle("late")
    [start] = [s for s in hand.take(Start) if s.spec.session_key == A]
    assert [news.text for news in start.spec.news] == ["late"]


def test_a_wait_goes_on_while_another_turn_may_free_a_process() -> None:
    rules = SessionRules(visibility=Visibility.ALL, max_ping_pong_turns=0)
    hand = Hand(actors=2, pool_max=2, agents=[talker("a"), talker("b")], sessions=rules, max_spawn_depth=0)
    busy, turn = asked(hand, "busy", "w"), asked(hand)
    send(turn, "m")
    turn.pause()
    assert replies(hand, turn.activation) == []
    busy.settle("done")
    hand.begin("m").settle("b0")
    assert [sent.reply for sent in replies(hand, turn.activation)] == ["b0"]
