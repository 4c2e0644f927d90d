"""PROTOCOL.md 6.1 to 6.4, Stop: marks and the way down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.core import lineage
from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.messages import Refused, Start, Stop, StopAsk, Stopped
from openclaw_ray.core.protocol.records import Mark, Run
from openclaw_ray.core.protocol.stopping import Stopping
from openclaw_ray.core.results import StopReport
from rules.asking import admit, key_of, root_of
from rules.hand import Hand, without


def told(hand: Hand) -> list[str]:
    """The runs whose actors are told to stop, once each."""
    return sorted({stop.run for stop in hand.sent(Stop)})


def report(hand: Hand) -> StopReport | None:
    """The report of the one stop, if the driver has heard it."""
    hand.poll()
    found = hand.messages(Stopped)
    return found[0].report if found else None


def tree() -> Hand:
    """top → middle → (a, b), all in their turns, and ``queued`` below ``middle`` without an actor."""
    hand = Hand(actors=4, max_concurrent=2)
    middle = hand.start("top").child("middle")
    middle.child("a")
    middle.child("b")
    middle.spawn("queued")
    return hand


# ------------------------------------------------------------------ 6.1 the mark


def test_below_a_mark_nothing_is_started() -> None:
    """6.1: what has no process ends at once."""

    def schedule() -> tuple[str, list[str]]:
        hand = tree()
        hand.stop("top")
        hand.turns["a"].settle()
        return hand.state("queued"), [start.spec.run for start in hand.sent(Start)]

    def only_those_with_a_process(self: Stopping, run: Run, mark: Mark) -> None:
        if run.in_turn:
            stop(self, run, mark)

    stop = Stopping._stop
    assert schedule() == ("cancelled", [])
    with without(Stopping, "_stop", only_those_with_a_process):
        assert schedule() == ("running", ["queued"])


def test_a_mark_outlives_the_registry() -> None:
    """6.1: it died after the commit, before anybody was told."""

    def schedule() -> list[str]:
        hand = tree()
        hand.stop("top")
        hand.effects.clear()
        hand.crash_registry()
        hand.adopt()
        return told(hand)

    assert schedule() == ["a", "b", "middle", "top"]
    with without(Crew, "_stop_again", lambda self, run: None):
        assert schedule() == []


def test_a_mark_does_not_bind_a_later_run_of_the_same_session() -> None:
    """6.1: a new message to a session that was stopped; it may spawn as if nothing had been."""

    def schedule() -> tuple[str, str]:
        hand = Hand(actors=3)
        hand.ask("m1")
        first = hand.begin("m1")
        first.child("c")  # lives on for a while, so that the marked run is remembered
        hand.stop("agent:w:main")
        first.settle()
        hand.ask("m2")
        second = hand.begin("m2")
        receipt = second.spawn("d")
        return receipt.status, second.settle().word

    def by_key(runs: Mapping[str, Run], run: Run) -> int:
        return next((r.mark for r in runs.values() if r.mark and r.session == run.session), 0) or bound(runs, run)

    bound = lineage.bound_by_mark
    assert schedule() == ("accepted", "paused")
    with without(lineage, "bound_by_mark", by_key):
        assert schedule() == ("forbidden", "settled")


def test_after_a_stop_of_all_a_client_may_begin_anew() -> None:
    """6.1: on its root, which lives on, a mark binds only what was born before it."""

    def schedule() -> tuple[str, str]:
        hand = Hand(actors=4)
        old = hand.start("old")
        hand.stop(root_of("driver"))
        new = hand.start("new")
        return old.spawn("below-old").status, new.spawn("below-new").status

    def whenever_born(runs: Mapping[str, Run], run: Run) -> int:
        return run.mark or next((above.mark for above in lineage.ancestors(runs, run) if above.mark), 0)

    assert schedule() == ("forbidden", "accepted")
    with without(lineage, "bound_by_mark", whenever_born):
        assert schedule() == ("forbidden", "forbidden")


def test_the_same_stop_again_is_one_stop() -> None:
    """6.1: its first answer was lost with the registry that gave it."""
    hand = tree()
    ask = StopAsk("stop-1", key_of("top"))
    first = hand.say("driver", ask).verdicts[0]
    hand.crash_registry()
    hand.adopt()
    assert hand.say("driver", ask).verdicts[0].mark == first.mark
    assert len(hand.registry.s.marks) == 1


def test_a_session_stops_only_what_is_below_it() -> None:
    """6.1"""
    hand = tree()
    a, middle = hand.turns["a"], hand.turns["middle"]
    assert a.say(StopAsk("s1", key_of("b"), by=key_of("a"))).verdicts[0].word == "refused"
    assert not hand.sent(Stop)
    assert middle.say(StopAsk("s2", key_of("b"), by=key_of("middle"))).verdicts[0].word == "marked"
    assert told(hand) == ["b"]


# ------------------------------------------------------------------ 6.2 to 6.4 the way down


def test_a_stop_without_a_marks_number_is_refused() -> None:
    """6.2"""

    def schedule() -> bool:
        hand = Hand(actors=1)
        turn = hand.start("r")
        return hand.actors[turn.actor].stop(turn.activation, "stopped", 0)

    def any_number(self: Activation, activation: str, reason: str, mark: int) -> bool:
        return stop(self, activation, reason, max(1, mark))

    stop = Activation.stop
    assert not schedule()
    with without(Activation, "stop", any_number):
        assert schedule()


def test_a_stop_passes_through_middle_runs_that_have_ended() -> None:
    """6.3: from the registry to every actor with a run under the mark."""

    def schedule() -> list[str]:
        hand = Hand(actors=3)
        middle = hand.start("top").child("middle")
        middle.child("below")
        middle.fail()  # and its own child goes on
        hand.stop("top")
        return told(hand)

    def through_the_living(runs: Mapping[str, Run], top: str) -> Any:
        for run in walk(runs, top):
            if not any(above.terminal for above in lineage.ancestors(runs, runs[run])):
                yield run

    walk = lineage.subtree
    assert schedule() == ["below", "top"]
    with without(lineage, "subtree", through_the_living):
        assert schedule() == ["top"]


def test_a_stop_that_overtakes_its_start_keeps_the_turn_from_beginning() -> None:
    """6.4: the stopped set."""

    def schedule() -> tuple[StartAnswer, str]:
        hand = Hand(actors=1)
        hand.admit("r")
        [start] = hand.take(Start)
        hand.stop("r")
        [stop] = hand.take(Stop)
        hand.actors[stop.actor].stop(stop.activation, stop.reason, stop.mark)
        answer = hand.deliver(start)
        if answer is not StartAnswer.RUN:
            hand.say(start.actor, Refused("r", start.spec.activation, answer.value))
        return answer, hand.state("r")

    assert schedule() == (StartAnswer.STOPPED, "cancelled")
    with without(Activation, "is_stopped", lambda self, activation: False):
        assert schedule() == (StartAnswer.RUN, "running")


def test_the_process_of_a_stop_that_overtook_its_start_is_used_again() -> None:
    """6.4: it is clean, nothing has run in it."""
    hand = Hand(actors=1)
    hand.admit("r")
    [start] = hand.take(Start)
    hand.stop("r")
    hand.say(start.actor, Refused("r", start.spec.activation, "stopped"))
    assert hand.start("next").actor == start.actor


def test_a_stopped_turns_admits_that_were_not_sent_are_dropped() -> None:
    """6.4"""

    def schedule() -> int:
        hand = Hand(actors=1)
        turn = hand.start("r")
        voice = hand.courier(turn.actor)
        voice.admit(admit("late", key_of("r"), activation=turn.activation), "its token")
        assert voice.drop_unsent(turn.activation) in (["its token"], [])
        step = voice.next_step()
        return len(step.admits) if step is not None else 0

    assert schedule() == 0
    with without(Courier, "drop_unsent", lambda self, activation: []):
        assert schedule() == 1
