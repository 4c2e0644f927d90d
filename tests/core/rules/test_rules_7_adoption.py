"""PROTOCOL.md 7.5 and 7.6: adoption after a crash, re-use of processes."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.crew import ADOPT_WITHIN, Crew
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import (
    Completed,
    Exit,
    Notify,
    ReportAsk,
    Start,
    Took,
    Warn,
)
from openclaw_ray.core.protocol.records import Actor, Run
from openclaw_ray.core.protocol.state import State
from rules.asking import agent
from rules.hand import Hand, without


def starts(hand: Hand) -> list[tuple[str, str]]:
    """The starts on their way: run and actor."""
    return [(start.spec.run, start.actor) for start in hand.sent(Start)]


# ------------------------------------------------------------------ 7.5 adoption


def test_after_a_crash_every_actor_is_asked_and_what_runs_is_left_alone() -> None:
    """7.5"""

    def schedule() -> tuple[list[str], list[tuple[str, str]], str]:
        hand = Hand(actors=2)
        turn = hand.start("r")
        hand.crash_registry()
        hand.tick()
        asked = sorted(ask.actor for ask in hand.sent(ReportAsk))
        hand.adopt()
        turn.settle()
        return asked, starts(hand), hand.state("r")

    def started_anew(self: Activation) -> Any:
        self.spec = None
        return report(self)

    report = Activation.report
    asked = ["session-1-1", "session-1-2"]
    assert schedule() == (asked, [], "succeeded")
    with without(Activation, "report", started_anew):
        assert schedule() == (asked, [("r", "session-1-2")], "succeeded"), "what says nothing is started again"


def test_a_start_that_was_committed_and_never_sent_is_sent_by_the_next_registry() -> None:
    """7.5: to the same actor, under the same activation."""

    def schedule() -> list[tuple[str, str]]:
        hand = Hand(actors=2)
        hand.admit("r")
        hand.effects.clear()
        hand.crash_registry()
        hand.adopt()
        return starts(hand)

    assert schedule() == [("r", "session-1-2")]
    with without(Crew, "reported", lambda self, report: self.awaited.discard(report.actor)):
        assert schedule() == []


def test_a_grant_that_was_never_journaled_counts_for_nothing_and_its_actor_is_ended() -> None:
    """7.5: its epoch is ahead of the journal's."""

    def schedule() -> tuple[list[str], str]:
        hand = Hand(actors=1)
        before = hand.journal.copy()
        turn = hand.start("r")
        hand.journal = before  # that commit was lost
        hand.crash_registry()
        hand.adopt()
        hand.admit("other")
        ended = [e.actor for e in hand.sent(Exit)]
        return ended, "granted" if turn.actor in [actor for _, actor in starts(hand)] else "not granted"

    assert schedule() == (["session-1-1"], "not granted")
    with without(Crew, "_retire_unknown", lambda self, actor, run: None):
        assert schedule() == ([], "granted"), "while it still runs what was never promised"


def test_an_actor_that_does_not_report_holds_nobody_up_and_is_not_taken_for_dead() -> None:
    """7.5, 3.4"""
    hand = Hand(actors=2)
    frozen = hand.start("r")
    hand.crash_registry()
    hand.tick()
    for ask in hand.take(ReportAsk):
        if ask.actor != frozen.actor:
            hand.report(ask.actor)
    assert hand.registry.s.recovering
    hand.wait(ADOPT_WITHIN)
    assert not hand.registry.s.recovering
    assert hand.state("r") == "running"
    assert frozen.settle().word == "settled"
    assert frozen.actor in [e.actor for e in hand.sent(Exit)], "and it is not used again"


def test_a_rebuilt_registry_knows_lanes_places_and_the_queue() -> None:
    """7.5: what was worked out is worked out anew."""
    hand = Hand(actors=3, max_concurrent=1, max_children=2)
    parent = hand.start("parent")
    parent.spawn_all(["a", "b"])
    before = hand.registry.s.snapshot()
    hand.crash_registry()
    hand.adopt()
    after = hand.registry.s.snapshot()
    assert {k: after[k] for k in ("runs", "queued", "slots", "bound")} == {
        k: before[k] for k in ("runs", "queued", "slots", "bound")
    }
    assert parent.spawn("c").limit == "maxChildrenPerAgent"


# ------------------------------------------------------------------ 7.6 re-use


def test_an_actor_serves_one_class_only() -> None:
    """7.6: sessions of another bundle never enter a process that has run this one's code."""

    def schedule() -> list[str]:
        hand = Hand(actors=1, agents=[agent("other", bundle="b2")])
        hand.start("mine").settle()
        hand.admit("others", agent_id="other")
        return [actor for _, actor in starts(hand)]

    assert schedule() == []
    with without(State, "reuse_class", lambda self, entry, root, run: ("", "", "", ())):
        assert schedule() == ["session-1-1"]


@pytest.mark.parametrize(("reuse", "same"), [("class", True), ("agent", False), ("tree", True), ("never", False)])
def test_who_may_use_a_process_after_somebody_else(reuse: str, same: bool) -> None:
    """7.6"""
    hand = Hand(actors=1, pool_reuse=reuse, agents=[agent("sister")])
    hand.start("mine").settle()
    hand.admit("hers", agent_id="sister")
    assert bool(starts(hand)) is same


def test_a_process_that_fails_the_clean_check_is_not_used_again() -> None:
    """7.6"""

    def schedule() -> tuple[list[str], list[tuple[str, str]]]:
        hand = Hand(actors=1)
        hand.start("a").settle(unclean=("a thread is alive",))
        hand.admit("b")
        return [e.actor for e in hand.sent(Exit)], starts(hand)

    def keep_all(self: Ending, run: Run, actor: Actor | None, *, keep: bool) -> None:
        leave(self, run, actor, keep=True)

    leave = Ending.leave_actor
    assert schedule() == (["session-1-1"], [])
    with without(Ending, "leave_actor", keep_all):
        assert schedule() == ([], [("b", "session-1-1")])


def test_a_process_that_is_unclean_and_holds_a_value_is_ended_after_it_was_taken() -> None:
    """7.6, 4.3"""
    hand = Hand(actors=1)
    hand.start("a").settle(unclean=("a thread",), held=1_000_000)
    assert not hand.sent(Exit)
    hand.say("driver", Took("a"))
    assert [e.actor for e in hand.sent(Exit)] == ["session-1-1"]


def test_there_is_one_warning_per_agent_that_names_the_culprit() -> None:
    """7.6"""
    hand = Hand(actors=2)
    for run in ("a", "b"):
        hand.start(run).settle(unclean=("thread 'ticker' is alive",))
    hand.poll()
    [warning] = hand.messages(Warn)
    assert "agent 'w'" in warning.text
    assert "ticker" in warning.text
    assert hand.ends() == ["a", "b"]
    assert hand.messages(Completed)[0].completion.result.text == "done"
    assert not hand.sent(Notify)
