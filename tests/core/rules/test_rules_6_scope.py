"""PROTOCOL.md 6.1 and SPEC.md G3: how much a stop is of, who may ask for it, and who can read its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from openclaw_ray.core import lineage
from openclaw_ray.core.protocol import control, reports
from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.marks import Marks
from openclaw_ray.core.protocol.messages import Got, Stop, StopAsk, Stopped
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.stopping import Stopping
from openclaw_ray.core.results import StopReport
from rules.asking import key_of, root_of
from rules.hand import Hand, without

MAIN = "agent:w:main"


def told(hand: Hand) -> list[str]:
    """The runs whose actors are told to stop, once each."""
    return sorted({stop.run for stop in hand.sent(Stop)})


def line() -> Hand:
    """The main session has a turn with a child, and two messages in line behind it."""
    hand = Hand(actors=4)
    hand.ask("m1")
    hand.begin("m1").child("c")
    hand.ask("m2")
    hand.ask("m3")
    return hand


def states(hand: Hand) -> dict[str, str]:
    return {run: hand.state(run) for run in ("m1", "c", "m2", "m3")}


# ------------------------------------------------------------------ how much


def test_a_stop_of_a_tree_clears_the_line() -> None:
    hand = line()
    hand.stop(MAIN)
    assert told(hand) == ["c", "m1"]
    assert (states(hand)["m2"], states(hand)["m3"]) == ("cancelled", "cancelled")


def test_a_stop_of_a_session_leaves_the_messages_in_line() -> None:
    def schedule() -> tuple[list[str], dict[str, str]]:
        hand = line()
        hand.say("driver", StopAsk("s", MAIN, scope="session"))
        return told(hand), states(hand)

    def all_of_them(self: Stopping, event: StopAsk) -> list[Run]:
        return [run for run in self.s.runs.values() if run.session == event.key]

    kept = {"m1": "running", "c": "running", "m2": "queued", "m3": "queued"}
    assert schedule() == (["c", "m1"], kept)
    with without(Stopping, "_tops", all_of_them):
        assert schedule() == (["c", "m1"], kept | {"m2": "cancelled", "m3": "cancelled"})


def test_a_message_in_line_is_taken_after_the_stop_of_what_ran() -> None:
    hand = line()
    hand.say("driver", StopAsk("s", MAIN, scope="session"))
    hand.turns["c"].settle()
    hand.turns["m1"].settle()
    assert hand.begin("m2").spawn("d").accepted


def test_a_stop_of_a_run_alone_leaves_its_children() -> None:
    def schedule() -> tuple[list[str], str, str]:
        hand = line()
        hand.say("driver", StopAsk("s", MAIN, scope="run"))
        refused = hand.turns["m1"].spawn("late").status
        hand.turns["m1"].settle()
        hand.turns["c"].settle()
        return told(hand), hand.state("c"), refused

    def binds_all(runs: Mapping[str, Run], run: Run) -> int:
        return run.mark or next((above.mark for above in lineage.ancestors(runs, run) if above.mark), 0)

    assert schedule() == (["m1"], "succeeded", "forbidden")
    with without(lineage, "bound_by_mark", binds_all):
        assert schedule() == (["m1"], "cancelled", "forbidden")


def test_a_run_that_is_stopped_alone_is_counted_alone() -> None:
    hand = line()
    hand.say("driver", StopAsk("s", MAIN, scope="run"))
    hand.turns["m1"].settle()
    hand.poll()
    [stopped] = hand.messages(Stopped)
    report = stopped.report
    assert (report.total, [row.run_id for row in report.rows], report.rows[0].outcome) == (1, ["m1"], "stopped")
    assert states(hand) == {"m1": "cancelled", "c": "running", "m2": "running", "m3": "queued"}


def test_the_number_of_a_stop_of_a_run_alone_travels_as_negative() -> None:
    """So that a session process does not tell its children; a registry that is started again says it the same way."""
    hand = line()
    hand.say("driver", StopAsk("s", MAIN, scope="run"))
    [first] = hand.take(Stop)
    assert first.mark < 0
    assert hand.actors[first.actor].stop(first.activation, first.reason, first.mark)
    hand.crash_registry()
    hand.adopt()
    assert {stop.mark for stop in hand.sent(Stop)} == {first.mark}
    assert told(hand) == ["m1"]


def test_a_stop_of_all_goes_before_a_stop_of_less() -> None:
    def schedule(first: str, then: str) -> str:
        hand = line()
        hand.say("driver", StopAsk("s1", MAIN, scope=first))
        hand.say("driver", StopAsk("s2", MAIN, scope=then))
        hand.turns["m1"].settle()
        hand.turns["c"].settle()
        return hand.state("c")

    assert (schedule("tree", "run"), schedule("run", "tree")) == ("cancelled", "cancelled")


def test_a_stop_of_a_run_alone_of_a_clients_root_is_of_nothing() -> None:
    hand = line()
    hand.say("driver", StopAsk("s", root_of("driver"), scope="run"))
    hand.poll()
    assert [message.report.total for message in hand.messages(Stopped)] == [0]
    assert told(hand) == []


def test_a_process_refuses_a_stop_without_a_number() -> None:
    assert not Activation("a").stop("s.1", "stopped", 0)


# ------------------------------------------------------------------ by whom


def family() -> Hand:
    """top → (left → leaf, right), and ``stranger`` of another client."""
    hand = Hand(actors=8, pool_max=16, drivers=("driver", "other"))
    top = hand.start("top")
    top.child("left").child("leaf")
    top.child("right")
    hand.start("stranger", by="other")
    return hand


@pytest.mark.parametrize("target", ["left", "top", "right", "stranger"])
def test_itself_parent_sibling_and_stranger_are_not_a_sessions_to_stop(target: str) -> None:
    """SCENARIOS.md 28"""

    def schedule() -> tuple[str, str, list[str]]:
        hand = family()
        left = hand.turns["left"]
        by_key = left.say(StopAsk("s1", key_of(target), by=key_of("left"))).verdicts[0].word
        by_run = left.say(StopAsk("s2", "", target, by=key_of("left"))).verdicts[0].word
        return by_key, by_run, told(hand)

    assert schedule() == ("refused", "refused", [])
    with without(Stopping, "_may_stop", lambda self, run, by: True):
        assert schedule()[:2] == ("marked", "marked")


def test_a_session_stops_what_is_below_it_through_a_middle_that_has_ended() -> None:
    hand = family()
    hand.turns["left"].fail()
    top = hand.turns["top"]
    assert top.say(StopAsk("s", key_of("leaf"), by=key_of("top"))).verdicts[0].word == "marked"
    assert told(hand) == ["leaf"]


def test_kinship_is_that_of_the_tree_of_sessions() -> None:
    hand = family()
    hand.turns["leaf"].settle()
    s = hand.registry.s
    words = {name: str(control.kinship(s, key_of("left"), key_of(name))) for name in ("left", "leaf", "top", "right")}
    assert words == {"left": "itself", "leaf": "below", "top": "above", "right": "other"}
    assert str(control.kinship(s, key_of("leaf"), key_of("left"))) == "above"  # a leaf controls nothing


def test_a_run_is_named_by_its_id_or_by_its_session_after_its_end_too() -> None:
    hand = family()
    hand.turns["stranger"].settle()
    s = hand.registry.s
    for name in ("left", "stranger"):
        assert [getattr(control.run_named(s, each), "id", None) for each in (name, key_of(name))] == [name, name]
    assert [control.run_named(s, each) for each in ("nobody", key_of("nobody"))] == [None, None]


# ------------------------------------------------------------------ the report, for others


def asked() -> tuple[Hand, Any]:
    hand = Hand(actors=3, drivers=("driver", "other"))
    hand.ask("m", by="other")
    turn = hand.begin("m")
    turn.child("c")
    return hand, turn


def report_of(hand: Hand, run: str = "m") -> tuple[StopReport | None, bool]:
    return reports.report_of(hand.registry.s, hand.registry.ending, run)


def test_who_waited_for_an_answer_can_read_the_report_of_the_stop_that_ended_it() -> None:
    def schedule() -> tuple[int, bool, int, int] | None:
        hand, turn = asked()
        hand.stop(MAIN)
        turn.settle()
        report, complete = report_of(hand)
        assert report is not None
        assert (report.stopped, report.failed, complete) == (1, 1, False)
        hand.turns["c"].settle()
        hand.poll()
        [stopped] = hand.messages(Stopped)
        hand.say("driver", Got("driver", hand.registry.s.incarnation, hand.registry.s.receivers["driver"].last))
        hand.crash_registry()
        report, complete = report_of(hand)
        if report is None:
            return None
        assert report == stopped.report
        return report.stopped, complete, len(report.rows), len(hand.registry.s.marks)

    def drops(self: State, seq: int) -> None:
        if self.marks.pop(seq, None) is not None:
            self.drop("marks", seq)

    assert schedule() == (2, True, 2, 0)
    with without(State, "forget_mark", drops):
        assert schedule() is None


def test_a_stop_of_a_clients_root_is_found_by_what_ended_under_it() -> None:
    def schedule() -> list[str]:
        hand, turn = asked()
        hand.stop(root_of("other"), by="other")
        turn.settle()
        hand.turns["c"].settle()
        hand.start("x", by="other")
        hand.say("other", StopAsk("again", root_of("other")))  # the root carries the number of its newest stop
        report = report_of(hand)[0]
        assert report is not None
        return [row.run_id for row in report.rows]

    def notes_nothing(self: Marks, mark: Any, run: Run) -> None:
        before = run.mark
        progress(self, mark, run)
        run.mark = before

    progress = Marks.mark_progress
    assert schedule() == ["m", "c"]
    with without(Marks, "mark_progress", notes_nothing):
        assert schedule() == ["m", "x"]


def test_a_run_that_no_stop_has_ended_has_no_report() -> None:
    hand, turn = asked()
    hand.turns["c"].settle()
    turn.settle()
    assert report_of(hand) == (None, True)
    with pytest.raises(KeyError):
        report_of(hand, "nobody")


def test_a_stop_that_nobody_else_can_ask_about_leaves_nothing_behind() -> None:
    hand = family()
    hand.stop("left")
    hand.turns["leaf"].settle()
    hand.turns["left"].settle()
    hand.poll()
    hand.say("driver", Got("driver", hand.registry.s.incarnation, hand.registry.s.receivers["driver"].last))
    assert not hand.registry.s.marks
    assert hand.journal.select("marks", {}, limit=9) == []


def test_a_middle_that_has_ended_has_its_row() -> None:
    """What somebody is still to hear of, or has something living below it; of the others there is the count."""
    hand = family()
    hand.turns["right"].settle()
    hand.turns["top"].consume("right")
    hand.turns["left"].fail()
    hand.stop("top")
    for name in ("leaf", "top"):
        hand.turns[name].settle()
    hand.poll()
    [stopped] = hand.messages(Stopped)
    report = stopped.report
    words = {row.run_id: row.outcome for row in report.rows}
    assert words == {"left": "finished", "leaf": "stopped", "top": "stopped"}
    assert (report.stopped, report.finished, report.failed, report.total) == (2, 2, 0, 4)
