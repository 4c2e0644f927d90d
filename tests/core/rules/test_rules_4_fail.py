"""4.5, SPEC.md F6, A1: permanent and transient faults of a delivery, its hand-offs, and what operators do to it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from openclaw_ray.core.delivery_faults import SUSPENDED_KEPT, DeliveryFault
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.delivery import Delivery
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Got, Outcome, Refused, ReportAsk, Settled, Start
from openclaw_ray.core.results import ErrorInfo
from rules.asking import agent, key_of
from rules.hand import Hand, without
from rules.turn import Turn

CLASS = replace(agent("c", allow_agents=("*",)), follow_up=True, resumable=True)


def family(**limits: Any) -> tuple[Hand, Turn, Turn]:
    """A parent that takes further turns, and its child, both in a turn."""
    hand = Hand(actors=5, agents=(CLASS,), **limits)
    parent = hand.start("parent", agent_id="c")
    child = parent.child("child", agent_id="w")
    child.started()
    return hand, parent, child


def not_loaded(turn: Turn) -> None:
    """Its agent cannot be loaded there."""
    error = ErrorInfo("ImportError", "No module named 'gone'", cause="start_failed")
    turn.say(Settled(turn.run, turn.activation, Outcome(RunState.FAILED, error=error)))


def warnings(hand: Hand) -> list[str]:
    """What watchers are told of that is not as it should be."""
    events = [pickle.loads(data) for _, data in hand.journal.after("events", 0, limit=10_000)]
    return [event.text for event in events if event.kind == "warning"]


def newest(hand: Hand) -> Turn:
    *_, start = hand.sent(Start)
    hand.take(Start)
    hand.deliver(start)
    return hand.turns[start.spec.run]


# ---------------------------------------------------------------------- answered refusals


def test_a_turn_that_could_not_be_started_has_not_been_given_what_its_start_carried() -> None:
    """It is tried again after 5, 10 and 20 seconds, and heard once it can be started."""

    def schedule() -> tuple[str, int, str | None]:
        hand, parent, child = family()
        parent.settle(yielded=True)
        child.settle("late")
        not_loaded(hand.begin("parent"))
        assert hand.state("parent") == "failed"
        waits = []
        for _ in range(2):
            began = hand.clock.mono()
            while not hand.sent(Start) and hand.clock.mono() - began < 60:
                hand.wait(0.5)
            if not hand.sent(Start):
                break
            waits.append(round(hand.clock.mono() - began))
            turn = newest(hand)
            if len(waits) == 1:
                not_loaded(turn)
            else:
                turn.settle("heard")
        assert waits == [5, 10]
        run = hand.run("child")
        return run.delivery.value, run.failed_attempts, run.last_error

    delivery, failed, error = schedule()
    assert (delivery, failed) == ("delivered", 2)
    assert "could not be started to hear it: No module named 'gone'" in (error or "")

    def as_heard(self: Ending, run: Any, why: str) -> None:
        self.consumed_in_turn(run, over=True)

    with without(Ending, "refused_with", as_heard), pytest.raises(AssertionError):
        schedule()


def test_a_start_that_its_process_refuses_is_an_attempt_too() -> None:
    hand, parent, child = family()
    parent.settle(yielded=True)
    child.settle("late")
    [start] = hand.take(Start, "parent")
    hand.say(start.actor, Refused("parent", start.spec.activation, "busy"))
    assert hand.run("child").failed_attempts == 1
    hand.wait(5.1)
    newest(hand).settle("heard")
    assert hand.run("child").delivery == "delivered"


def test_started_while_its_agent_is_still_loaded_gives_nothing() -> None:
    """3.4: a turn that lasts 5 ms says so, loaded or not; what it was started with is not heard by that."""
    hand, parent, child = family()
    parent.settle(yielded=True)
    child.settle("late")
    turn = hand.begin("parent")
    turn.started(heard=False)
    assert hand.run("child").delivery == "pending"
    turn.started()
    assert hand.run("child").delivery == "delivered"


def test_a_top_level_session_that_cannot_be_started_is_tried_on_the_same_ladder() -> None:
    hand = Hand(actors=5, agents=(CLASS,))
    hand.ask("top", agent_id="c")
    top = hand.begin("top")
    child = top.child("child", agent_id="w")
    child.started()
    hand.kill(top.actor)
    child.settle("late")
    waits = []
    for _ in range(4):
        began = hand.clock.mono()
        while not hand.sent(Start):
            hand.wait(0.5)
            assert hand.clock.mono() - began < 60
        waits.append(round(hand.clock.mono() - began))
        not_loaded(newest(hand))
    assert waits == [0, 5, 10, 20]
    assert hand.run("child").delivery == "suspended"


# ---------------------------------------------------------------------- permanent faults


def test_a_requester_that_is_not_there_with_nobody_above_has_failed_at_once() -> None:
    hand, parent, child = family()
    hand.kill(parent.actor)
    run = hand.run("child")
    hand.registry.s.sessions.pop(key_of("parent"))
    run.deliver_to = key_of("parent")
    child.settle("late")
    run = hand.run("child")
    assert (run.delivery, run.failed_attempts) == ("failed", 0)
    assert run.last_error == f"{key_of('parent')} is not there any more, and nobody above it"
    assert "child" not in hand.registry.s.runs
    assert "its announce has failed" in warnings(hand)[-1]


def test_a_start_that_does_not_register_the_requesters_agent_fails_what_is_pending_for_it() -> None:
    hand = Hand(actors=5, agents=(CLASS,))
    hand.ask("top", agent_id="c")
    top = hand.begin("top")
    child = top.child("child", agent_id="w")
    child.started()
    hand.kill(top.actor)
    child.settle("late")  # its session is to be activated for it
    hand.crash_registry()
    hand.do(hand.registry.open_boot("next", True))
    hand.do(hand.registry.register([agent("w")], "b2", b"code"))
    _, effects = hand.registry.recover()
    hand.do(effects)
    run = hand.run("child")
    assert run.delivery == "failed"
    assert "not registered any more" in (run.last_error or "")


def test_only_what_a_further_attempt_may_mend_is_transient() -> None:
    assert {fault for fault in DeliveryFault if not fault.permanent} == {DeliveryFault.DIED, DeliveryFault.NOT_STARTED}


# ---------------------------------------------------------------------- suspended, and by hand


def suspended() -> Hand:
    hand, parent, child = family()
    child.settle("poison")
    parent.hears()
    hand.kill(parent.actor)
    for _ in range(3):
        hand.wait(21)
        hand.kill(newest(hand).actor)
        hand.do(hand.registry.prewarm(5))
        hand.grow()
    hand.wait(21)
    assert hand.run("child").delivery == "suspended"
    return hand


@pytest.mark.parametrize("restarted", [False, True])
def test_a_suspended_delivery_is_kept_for_seven_days_and_has_failed_then(restarted: bool) -> None:
    hand = suspended()
    began = hand.clock.wall()
    assert began - 60 < (hand.run("child").suspended_at or 0) <= began
    if restarted:
        hand.crash_registry()
        hand.adopt()
    run = hand.registry.s.runs["child"]
    hand.clock.advance(SUSPENDED_KEPT - 60)
    assert not hand.registry.ending.expire_suspended(run)
    hand.clock.advance(60)
    assert hand.registry.ending.expire_suspended(run)
    hand.tick()
    assert "suspended for 7 days" in (hand.run("child").last_error or "")
    assert hand.run("child").delivery == "failed"


def test_a_failed_delivery_is_tried_again_if_somebody_is_there() -> None:
    hand = Hand(actors=5, agents=(CLASS,))
    hand.ask("top", agent_id="c")
    top = hand.begin("top")
    child = top.child("child", agent_id="w")
    child.started()
    hand.kill(top.actor)
    child.settle("late")
    hand.take(Start)
    hand.registry.ending.fail_pending(hand.registry.s.sessions["agent:c:main"], DeliveryFault.NO_AGENT)
    hand.tick()
    assert hand.run("child").delivery == "failed"
    assert hand.registry.redeliver("child")[0] == "done"
    assert hand.run("child").delivery == "pending"
    assert hand.registry.redeliver("child")[0] == "done"
    hand.crash_registry()
    hand.adopt()
    assert list(hand.registry.s.sessions["agent:c:main"].pending) == ["child"]


def test_a_failed_delivery_without_anybody_to_tell_is_refused_and_can_be_dismissed() -> None:
    hand = suspended()
    hand.registry.ending.fail_pending(hand.registry.s.sessions[key_of("parent")], DeliveryFault.ARCHIVED)
    hand.registry.ending._fail(hand.registry.s.runs["child"], DeliveryFault.ARCHIVED)
    hand.tick()
    assert hand.run("child").delivery == "failed"
    assert hand.registry.redeliver("child")[0] == "nobody"
    assert hand.registry.dismiss("child")[0] == "done"
    assert hand.run("child").delivery == "discarded"
    assert hand.registry.redeliver("child")[0] == "discarded"


def test_what_is_open_unknown_or_silent_is_refused() -> None:
    hand, parent, _child = family()
    silent = parent.child("silent", agent_id="w", expects=False)
    silent.settle()
    for change in (hand.registry.redeliver, hand.registry.dismiss):
        assert change("nobody")[0] == "unknown"
        assert change("child")[0] == "open"
        assert change("silent")[0] == "not_required"


# ---------------------------------------------------------------------- hand-offs


def test_a_hand_off_that_a_live_receiver_does_not_accept_in_time_is_noted_and_never_failed() -> None:
    """A1: after ``announceTimeoutMs`` its process is asked for a sign of life."""
    hand, _parent, child = family(announce_timeout_ms=60_000)
    child.settle("done")
    hand.wait(59)
    assert hand.run("child").last_error is None
    hand.take(ReportAsk)
    hand.wait(1.1)
    run = hand.run("child")
    assert "did not take it within 60000 ms (announceTimeoutMs), and lives" in (run.last_error or "")
    assert len(hand.take(ReportAsk)) == 1
    hand.wait(600)
    run = hand.run("child")
    assert (run.delivery, run.failed_attempts) == ("pending", 0)
    assert len(warnings(hand)) == 1


@pytest.mark.parametrize("by_child", [True, False])
def test_once_accepted_it_may_wait_for_any_time(by_child: bool) -> None:
    def schedule() -> str | None:
        hand, parent, child = family(announce_timeout_ms=60_000)
        if by_child:
            deliver = child.settle("done").deliver
            assert deliver is not None
            hand.call(deliver)
            parent.say(Got(parent.activation, 0, 0, ("child",)))
        else:
            parent.hears()
            parent.started()
            hand.kill(child.actor)
            assert parent.hears() == ["child"]
            parent.started()  # `Got` goes with it
        hand.wait(3600)
        assert hand.run("child").terminal
        return hand.run("child").last_error

    assert schedule() is None
    if by_child:
        with without(Delivery, "got", lambda self, runs: None):
            assert "announceTimeoutMs" in (schedule() or "")
