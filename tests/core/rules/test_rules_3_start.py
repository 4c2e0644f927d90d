"""PROTOCOL.md 3.4 to 3.7, Birth: start."""

from __future__ import annotations

from dataclasses import replace

from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.messages import Exit, Kill, Payload, Refused, ReportAsk, Start
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.turns import Turns
from rules.hand import Hand, without

# ------------------------------------------------------------------ 3.1 admit


# ------------------------------------------------------------------ 3.4 start


def lost_start(hand: Hand) -> Start:
    """A run whose start was sent and has not arrived."""
    hand.admit("r")
    [start] = hand.take(Start)
    return start


def test_a_start_of_an_older_grant_is_refused() -> None:
    """3.4: the actor has been granted anew since."""

    def schedule() -> list[StartAnswer]:
        hand = Hand(actors=1)
        old = lost_start(hand)
        here = hand.actors[old.actor]
        newer = replace(old, epoch=2, spec=replace(old.spec, run="next", activation="s-next.1"))
        return [here.start(s.epoch, s.spec) for s in (newer, old)]

    assert schedule() == [StartAnswer.RUN, StartAnswer.EPOCH]
    with without(Activation, "fresh", lambda self, epoch: True):
        assert schedule() == [StartAnswer.RUN, StartAnswer.RUN]


def test_a_start_that_comes_twice_is_run_once() -> None:
    """3.4: idempotent by activation."""

    def schedule() -> list[StartAnswer]:
        hand = Hand(actors=1)
        start = lost_start(hand)
        return [hand.deliver(start), hand.deliver(start)]

    assert schedule() == [StartAnswer.RUN, StartAnswer.REPEAT]
    with without(Activation, "seen", lambda self, activation: False):
        assert schedule() == [StartAnswer.RUN, StartAnswer.RUN]


def test_a_start_that_was_lost_is_sent_again_to_the_same_actor() -> None:
    """3.4: asked for by a report two seconds after the grant, unknown there, sent again."""

    def schedule() -> list[tuple[str, str]]:
        hand = Hand(actors=2)
        first = lost_start(hand)
        hand.wait(1.9)
        assert not hand.sent(ReportAsk)
        hand.wait(0.2)
        for ask in hand.take(ReportAsk):
            hand.report(ask.actor)
        return [(s.actor, s.spec.activation) for s in [first, *hand.sent(Start)]]

    assert schedule() == [("session-1-2", "s-r.1")] * 2
    with without(Turns, "_ask", lambda self, run: None):
        assert schedule() == [("session-1-2", "s-r.1")], "it never runs"


def test_a_run_that_its_actor_knows_is_not_sent_again() -> None:
    """3.4"""
    hand = Hand(actors=1)
    turn = hand.start("r")
    hand.wait(2.1)
    [ask] = hand.take(ReportAsk)
    hand.report(ask.actor)
    hand.wait(5)
    assert not hand.sent(Start)
    assert not hand.sent(ReportAsk)
    assert turn.settle().word == "settled"


def test_a_turn_that_has_said_started_is_not_asked_for() -> None:
    """3.4"""

    def schedule() -> int:
        hand = Hand(actors=1)
        hand.start("r").started()
        hand.wait(10)
        return len(hand.sent(ReportAsk))

    assert schedule() == 0
    with without(Turns, "started", lambda self, event: None):
        assert schedule() == 1


def test_no_answer_is_unknown_and_nothing_is_started_elsewhere() -> None:
    """3.4: the process was only slow, and its work counts; but it is not granted again."""

    def schedule() -> tuple[int, str, int]:
        hand = Hand(actors=2)
        turn = hand.start("r")
        hand.wait(2.1)
        hand.take(ReportAsk)
        hand.do(hand.registry.silent(turn.actor))
        elsewhere = len(hand.sent(Start))
        if turn.actor in hand.registry.s.actors:
            turn.settle()
        return elsewhere, hand.state("r"), len(hand.sent(Exit))

    def taken_for_dead(self: Crew, actor: str) -> None:
        self.died(actor, "it did not answer")

    assert schedule() == (0, "succeeded", 1)
    with without(Crew, "silent", taken_for_dead):
        assert schedule() == (0, "failed", 0)


def test_a_refused_start_ends_its_run_with_the_reason() -> None:
    """3.4"""

    def schedule() -> str:
        hand = Hand(actors=1)
        start = lost_start(hand)
        hand.say(start.actor, Refused("r", start.spec.activation, "busy"))
        return hand.state("r")

    assert schedule() == "failed"
    with without(Crew, "refused", lambda self, event: None):
        assert schedule() == "running"


# ------------------------------------------------------------------ 3.5, 3.7


def test_a_start_carries_every_pending_completion_of_its_session() -> None:
    """3.5"""

    def schedule() -> list[str]:
        hand = Hand(actors=3)
        parent = hand.start("parent")
        children = [parent.child(f"c{i}") for i in range(2)]
        children[0].settle()  # while the parent's turn runs, and not consumed by it
        parent.settle(yielded=True)
        children[1].fail()
        return [c.run for c in hand.begin("parent").spec.completions]

    assert schedule() == ["c0", "c1"]
    with without(Birth, "_given", lambda self, session: ()):
        assert schedule() == []


def test_an_actors_epoch_is_raised_before_it_is_killed() -> None:
    """3.7: nothing that it was granted counts from then on."""

    def schedule() -> tuple[int, bool]:
        hand = Hand(actors=1)
        turn = hand.start("r", timeout=1)
        hand.wait(5)
        return hand.registry.s.actors[turn.actor].epoch, bool(hand.sent(Kill))

    def kill_alone(self: Turns, run: Run) -> None:
        self.s.effect(Kill(run.actor, "did not end within its grace"))

    assert schedule() == (2, True)
    with without(Turns, "_fence_and_kill", kill_alone):
        assert schedule() == (1, True)


def test_the_start_of_the_next_run_goes_with_the_answer_to_the_step_that_ended_the_last() -> None:
    """3.4: one call less; a lost answer loses it as a call may be lost, and then the actor is asked."""
    hand = Hand(actors=1, pool_max=2, max_spawn_depth=1)
    first = hand.start("first")
    hand.admit("second")
    assert not hand.sent(Start)
    first.settle()
    start = hand.last.start
    assert start is not None
    assert (start[0], start[1].run) == (2, "second")
    [sent] = hand.take(Start)  # lost with the answer
    hand.wait(2.5)
    hand.report(hand.take(ReportAsk)[0].actor)
    [again] = hand.take(Start)
    assert (again.epoch, again.spec.activation) == (sent.epoch, sent.spec.activation)
    assert hand.deliver(again) is StartAnswer.RUN


def test_what_must_be_called_does_not_go_with_an_answer() -> None:
    """3.4, 7.1: an actor that says hello is only being made; an object of Ray's is counted only as an argument."""
    hand = Hand(pool_max=2, max_spawn_depth=1)
    hand.admit("first")
    hand.grow()
    assert hand.last.start is None
    first = hand.begin("first")
    hand.admit("second", input=Payload(ref="an object of Ray's"))
    first.settle()
    assert hand.last.start is None
    assert [start.spec.run for start in hand.sent(Start)] == ["second"]
