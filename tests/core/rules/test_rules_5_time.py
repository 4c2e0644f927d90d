"""PROTOCOL.md 5.5 and 5.6, Turns: the registry's clock; messages to busy sessions."""

from __future__ import annotations

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.messages import Cancel, Start
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.turns import Turns
from rules.hand import Hand, without

# ------------------------------------------------------------------ 5.5 deadlines


def test_time_in_the_queue_is_not_counted_into_the_deadline() -> None:
    """5.5: first start + timeout."""

    def schedule() -> tuple[str, str]:
        hand = Hand()
        hand.admit("r", timeout=10)
        hand.wait(60)
        waiting = hand.state("r")
        hand.grow()
        for start in hand.take(Start):
            hand.deliver(start)
        hand.wait(9)
        if "r" in hand.turns:
            hand.turns["r"].settle()
        return waiting, hand.state("r")

    def from_birth(self: Birth, requester: Session) -> None:
        reserve(self, requester)
        run = list(self.s.runs.values())[-1]
        run.deadline = self.s.clock.mono() + run.timeout
        self.s.at(run.deadline, run)

    reserve = Birth._reserve
    assert schedule() == ("queued", "succeeded")
    with without(Birth, "_reserve", from_birth):
        assert schedule() == ("timed_out", "timed_out")


def test_pauses_are_counted_into_the_deadline_and_a_further_turn_does_not_renew_it() -> None:
    """5.5"""

    def schedule() -> str:
        hand = Hand(actors=3)
        parent = hand.start("parent", timeout=10)
        child = parent.child("child")
        parent.settle(yielded=True)
        hand.wait(6)
        child.settle()
        woken = hand.begin("parent")
        woken.started()
        hand.wait(4.5)
        woken.settle()
        return hand.state("parent")

    def anew(self: Birth, run: Run, now: float) -> None:
        run.deadline = now + run.timeout if run.timeout else None

    assert schedule() == "timed_out"
    with without(Birth, "_start_clock", anew):
        assert schedule() == "succeeded"


def test_a_paused_run_times_out_without_a_process_and_its_children_go_on() -> None:
    """5.5, 6.8"""

    def schedule() -> tuple[str, str]:
        hand = Hand(actors=2)
        parent = hand.start("parent", timeout=10)
        child = parent.child("child")
        parent.settle(yielded=True)
        hand.wait(11)
        child.settle()
        return hand.state("parent"), hand.state("child")

    assert schedule() == ("timed_out", "succeeded")
    with without(Turns, "_expire", lambda self, run, now: None):
        assert schedule() == ("running", "succeeded")


def test_others_tell_durations_and_never_the_time() -> None:
    """5.5: `Started` came late; the deadline counts from when the turn really began."""

    def schedule() -> bool:
        hand = Hand(actors=1)
        turn = hand.start("r", timeout=10)
        hand.clock.advance(1)
        turn.started(elapsed=0.4)  # it began 0.6 s after its grant
        hand.wait(9.5)
        return hand.run("r").expired

    assert not schedule()
    with without(Turns, "started", lambda self, event: None):
        assert schedule()


def test_a_registry_crash_does_not_renew_a_deadline() -> None:
    """5.5"""
    hand = Hand(actors=1)
    turn = hand.start("r", timeout=10)
    turn.started()
    hand.wait(6)
    hand.crash_registry()
    hand.adopt()
    hand.wait(4.5)
    hand.notify()
    assert [m.reason for m in hand.messages(Cancel, turn.activation)] == ["timeout"]
    assert turn.settle().state is RunState.TIMED_OUT


# ------------------------------------------------------------------ 5.6 messages


def test_a_message_to_a_busy_session_waits_behind_its_turn() -> None:
    """5.6"""

    def schedule() -> tuple[list[str], list[str]]:
        hand = Hand(actors=3)
        hand.ask("m1")
        turn = hand.begin("m1")
        hand.ask("m2")
        early = [start.spec.run for start in hand.take(Start)]
        turn.settle()
        return early, [start.spec.run for start in hand.sent(Start)]

    def at_once(self: Birth, session: Session, run: Run) -> None:
        session.run = run.id
        self.s.enqueue(run)

    assert schedule() == ([], ["m2"])
    with without(Birth, "_in_line", at_once):
        assert schedule() == (["m2"], []), "two turns of one session at once"
