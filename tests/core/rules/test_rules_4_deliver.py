"""PROTOCOL.md 4.5, End: deliver, got, consumed."""

from __future__ import annotations

from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Consumed, DeliverTo, Notify
from openclaw_ray.core.protocol.records import Actor, Run
from rules.hand import Hand, without
from rules.turn import Turn


def parent_and_child() -> tuple[Hand, Turn, Turn]:
    hand = Hand(actors=3)
    parent = hand.start("parent")
    return hand, parent, parent.child("child")


# ------------------------------------------------------------------ 4.5 deliver, got, consumed


def test_an_announce_whose_call_was_lost_comes_over_the_downlink() -> None:
    """4.5: after five seconds."""

    def schedule() -> list[str]:
        hand, parent, child = parent_and_child()
        child.settle()  # and its call to the parent never arrives
        hand.wait(4.9)
        assert parent.hears() == []
        hand.wait(0.2)
        return parent.hears()

    assert schedule() == ["child"]
    with without(Ending, "again", lambda self, run: None):
        assert schedule() == []


def test_an_announce_that_was_got_is_not_repeated() -> None:
    """4.5"""

    def schedule() -> int:
        hand, parent, child = parent_and_child()
        deliver = child.settle().deliver
        assert deliver is not None
        hand.call(deliver)
        hand.clock.advance(0.1)
        hand.step(parent.actor)
        hand.wait(6)
        return len(hand.sent(Notify))

    assert schedule() == 0
    with without(Ending, "got", lambda self, runs: None):
        assert schedule() > 0


def test_an_announce_that_comes_twice_is_handed_on_once() -> None:
    """4.5: the call was late, not lost."""

    def schedule() -> list[str]:
        hand, parent, child = parent_and_child()
        deliver = child.settle().deliver
        assert deliver is not None
        hand.wait(5.1)
        parent.hears()
        hand.call(deliver)
        return parent.hears()

    assert schedule() == ["child"]
    with without(Courier, "first_heard", lambda self, run: True):
        assert schedule() == ["child", "child"]


def test_when_the_child_dies_before_its_call_is_confirmed_the_registry_says_it_at_once() -> None:
    """4.5"""

    def schedule() -> list[str]:
        hand, parent, child = parent_and_child()
        child.settle()
        hand.kill(child.actor)
        return parent.hears()

    def unnamed(self: Ending, run: Run, owner: Run, caller: Actor) -> DeliverTo:
        deliver = by_child(self, run, owner, caller)
        run.called_by = ""
        return deliver

    by_child = Ending._by_child
    assert schedule() == ["child"]
    with without(Ending, "_by_child", unnamed):
        assert schedule() == []


def test_a_live_receiver_that_does_not_answer_is_told_after_5_10_and_20_seconds_and_never_failed() -> None:
    """4.5: no answer is unknown."""
    hand, parent, child = parent_and_child()
    child.settle()
    told = []
    for seconds in (4.9, 10, 20, 600):
        hand.wait(seconds)
        told.append(hand.registry.s.receivers[parent.activation].last)
    assert told == [0, 1, 2, 3]
    assert hand.run("child").delivery is DeliveryState.PENDING


def test_got_is_not_consumed() -> None:
    """4.5: a turn that ends with a completion that its program was not given leaves it pending for the next."""

    def schedule() -> list[str]:
        hand, parent, child = parent_and_child()
        other = parent.child("other")
        deliver = child.settle().deliver
        assert deliver is not None
        hand.call(deliver)
        parent.settle(yielded=True)  # `Got` goes with it
        other.settle()
        return [c.run for c in hand.begin("parent").spec.completions]

    def as_consumed(self: Ending, runs: tuple[str, ...]) -> None:
        for run in runs:
            self.mark_delivered(self.s.runs[run])

    assert schedule() == ["child", "other"]
    with without(Ending, "got", as_consumed):
        assert schedule() == ["other"]


def test_consumed_by_an_older_turn_does_not_count() -> None:
    """4.5: its word comes after its end; the completion is in the next turn's start already."""

    def schedule() -> str:
        hand, parent, child = parent_and_child()
        parent.settle(yielded=True)
        child.settle()
        parent.consume("child")
        return hand.run("child").delivery.value

    def by_anyone(self: Ending, receiver: str, runs: tuple[str, ...]) -> None:
        for run in runs:
            self.mark_delivered(self.s.runs[run])

    assert schedule() == "pending"
    with without(Ending, "consumed", by_anyone):
        assert schedule() == "delivered"


def test_delivered_and_the_transcript_row_are_written_once_and_in_one() -> None:
    """4.5: idempotent by key, however often it is said."""

    def schedule() -> tuple[str, list[str | None]]:
        hand, parent, child = parent_and_child()
        child.settle("the text")
        parent.say(Consumed(parent.activation, ("child",)), Consumed(parent.activation, ("child",)))
        parent.consume("child")
        hand.push()
        return hand.run("child").delivery.value, [row.key for row in hand.rows]

    def again(self: Ending, receiver: str, runs: tuple[str, ...]) -> None:
        for run in [r for r in map(self.s.journaled_run, runs) if r is not None]:
            run.delivery, run.deliver_to = DeliveryState.PENDING, run.requester
            self.mark_delivered(run)

    key = "announce:v1:agent:w:subagent:child:child"
    assert schedule() == ("delivered", [key])
    with without(Ending, "consumed", again):
        assert schedule() == ("delivered", [key] * 3)


def test_a_failed_commit_leaves_neither_delivered_nor_row() -> None:
    """4.5: one transaction."""
    hand, parent, child = parent_and_child()
    child.settle()
    hand.push()
    hand.courier(parent.actor).post(Consumed(parent.activation, ("child",)))
    hand.fail_commit(parent.actor)
    assert hand.run("child").delivery is DeliveryState.PENDING
    hand.adopt()
    hand.step(parent.actor)
    hand.push()
    assert hand.run("child").delivery is DeliveryState.DELIVERED
    assert [row.key for row in hand.rows] == ["announce:v1:agent:w:subagent:child:child"]
