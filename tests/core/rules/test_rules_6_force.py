"""PROTOCOL.md 6.6 to 6.8, Stop: force, the report, and what does not cascade."""

from __future__ import annotations

import pytest

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import DieIf, Kill, Stop, Stopped
from openclaw_ray.core.protocol.records import Actor, Mark, Run
from openclaw_ray.core.protocol.turns import Turns
from openclaw_ray.core.results import StopReport
from rules.hand import Hand, without


def report(hand: Hand) -> StopReport | None:
    """The report of the one stop, if the driver has heard it."""
    hand.poll()
    found = hand.messages(Stopped)
    return found[0].report if found else None


def told(hand: Hand) -> list[str]:
    """The runs whose actors are told to stop, once each."""
    return sorted({stop.run for stop in hand.sent(Stop)})


def tree() -> Hand:
    """top → middle → (a, b), all in their turns, and ``queued`` below ``middle`` without an actor."""
    hand = Hand(actors=4, max_concurrent=2)
    middle = hand.start("top").child("middle")
    middle.child("a")
    middle.child("b")
    middle.spawn("queued")
    return hand


# ------------------------------------------------------------------ 6.6 force


def test_at_the_end_of_the_grace_the_process_is_asked_and_then_killed() -> None:
    """6.6"""

    def schedule() -> tuple[int, int, int]:
        hand = Hand(actors=1, stop_grace_seconds=2)
        hand.start("r")
        hand.stop("r")
        hand.wait(1.9)
        before = len(hand.sent(DieIf))
        hand.wait(0.2)
        asked = len(hand.sent(DieIf)) - len(hand.sent(Kill))
        hand.wait(0.25)
        return before, asked, len(hand.sent(Kill))

    assert schedule() == (0, 1, 1)
    with without(Turns, "_fence_and_kill", lambda self, run: None):
        assert schedule() == (0, 1, 0), "a process that hangs outlives its stop"


def test_an_innocent_successor_is_never_hit() -> None:
    """6.6: ``die_if`` names the run; it came late, and the actor runs another."""

    def schedule() -> bool:
        hand = Hand(actors=1)
        first = hand.start("first")
        hand.stop("first")
        hand.wait(2.1)
        [die] = hand.take(DieIf)
        first.settle()
        hand.start("successor")
        return hand.actors[die.actor].dies_for(die.run)

    assert not schedule()
    with without(Activation, "dies_for", lambda self, run: True):
        assert schedule()


def test_a_turn_that_ends_within_the_grace_is_not_killed() -> None:
    """6.6"""
    hand = Hand(actors=1)
    turn = hand.start("r")
    hand.stop("r")
    hand.wait(1.5)
    turn.settle()
    hand.start("successor")
    hand.wait(5)
    assert not hand.sent(DieIf)
    assert not hand.sent(Kill)


def test_a_graces_end_outlives_the_registry() -> None:
    """6.6: a process that ignores its stop is ended by the next registry."""
    hand = Hand(actors=1)
    hand.start("r").started()
    hand.stop("r")
    hand.crash_registry()
    hand.adopt()
    hand.wait(2.5)
    assert [kill.actor for kill in hand.sent(Kill)] == ["session-1-1"]


# ------------------------------------------------------------------ 6.7 the report


def test_a_stop_is_complete_when_every_run_under_the_mark_is_terminal() -> None:
    """6.7"""

    def schedule() -> list[bool]:
        hand = tree()
        hand.stop("top")
        heard = []
        for run in ("a", "b", "middle", "top"):
            heard.append(report(hand) is not None)
            hand.turns[run].settle()
        return [*heard, report(hand) is not None]

    def with_the_first(self: Ending, mark: Mark, run: Run) -> None:
        progress(self, mark, run)
        if not mark.done:
            self.complete(mark)

    progress = Ending.mark_progress
    assert schedule() == [False, False, False, False, True]
    with without(Ending, "mark_progress", with_the_first):
        assert schedule() == [True] * 5, "and its turns still run"


def test_the_report_counts_stopped_forced_and_finished_from_the_journal_alone() -> None:
    """6.7: over a crash, too."""
    hand = Hand(actors=5, pool_max=16)
    top = hand.start("top")
    ends, deaf, heeds = (top.child(run) for run in ("ends", "deaf", "heeds"))
    ends.settle()
    hand.stop("top")
    heeds.settle()
    hand.crash_registry()
    hand.adopt()
    top.settle()
    hand.wait(2.5)
    hand.kill(deaf.actor)
    found = report(hand)
    assert found is not None
    assert (found.stopped, found.forced, found.finished, found.failed) == (3, 1, 1, 0)
    rows = {row.run_id: row.outcome for row in found.rows}
    assert rows == {"ends": "finished", "heeds": "stopped", "top": "stopped", "deaf": "forced"}


def test_the_registry_writes_cancelled_whatever_the_process_says() -> None:
    """6.7"""

    def schedule() -> str:
        hand = Hand(actors=1)
        turn = hand.start("r")
        hand.stop("r")
        turn.fail()
        return hand.state("r")

    assert schedule() == "cancelled"
    with without(Ending, "_verdict", lambda self, run, outcome: (outcome.state, outcome)):
        assert schedule() == "failed"


# ------------------------------------------------------------------ 6.8 only a stop cascades


@pytest.mark.parametrize("way", ["returns", "raises", "yields", "times out", "dies"])
def test_the_end_of_a_parent_does_not_stop_its_children(way: str) -> None:
    """6.8"""

    def schedule() -> tuple[list[str], str]:
        hand = Hand(actors=2)
        parent = hand.start("parent", timeout=1 if way == "times out" else 0)
        child = parent.child("child")
        if way == "dies":
            hand.kill(parent.actor)
        elif way == "times out":
            hand.wait(1.1)
            hand.take(Stop, "parent")
            parent.settle()
        else:
            state = RunState.FAILED if way == "raises" else RunState.SUCCEEDED
            parent.settle(state=state, yielded=way == "yields")
        return told(hand), child.settle().state or ""

    def cascades(self: Ending, run: Run, actor: Actor | None, *, keep: bool) -> None:
        for child in run.children:
            below = self.s.runs[child]
            self.s.effect(Stop(below.actor, child, below.activation, "stopped", 1))
        leave(self, run, actor, keep=keep)

    leave = Ending.leave_actor
    assert schedule() == ([], "succeeded")
    with without(Ending, "leave_actor", cascades):
        assert schedule() == (["child"], "succeeded")


def test_a_stopped_child_announces_nothing_to_its_running_parent() -> None:
    """6.7: silent, and known by its state."""
    hand = Hand(actors=2)
    parent = hand.start("parent")
    child = parent.child("child")
    hand.stop("child")
    assert child.settle().deliver is None
    assert parent.hears() == ["child"], "for the one who joins"
    parent.consume("child")
    hand.push()
    assert hand.rows == []
