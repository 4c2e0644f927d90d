"""SPEC.md B4, G4: steering a child; G1, H5: a session knows that its last run was aborted."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.protocol.messages import Admit, Completed, DieIf, Start, Stop
from openclaw_ray.core.protocol.steering import Steering
from openclaw_ray.core.results import Receipt
from openclaw_ray.testing.simulator.audit import recount
from rules.asking import admit, key_of, root_of
from rules.hand import Hand, without
from rules.turn import Turn


def steer(by: Turn, old: str, text: str = "rather this", new: str = "") -> Receipt:
    """A turn steers a run."""
    new = new or f"{old}+"
    asked = Admit(new, "", "", "steer", by.spec.session_key, text, by.activation, steers=old)
    by.hand.courier(by.actor).admit(asked, new)
    return by.hand.receipts(by.actor, 1)[0]


def starts(hand: Hand, run: str = "") -> list[tuple[str, int, str]]:
    """The starts on their way: run, turn, kind."""
    return [(s.spec.run, s.spec.turn, s.spec.kind) for s in hand.sent(Start, run)]


def family(**limits: Any) -> tuple[Hand, Turn, Turn]:
    """A parent and its child, both in their turns."""
    hand = Hand(actors=6, **limits)
    parent = hand.start("parent")
    return hand, parent, parent.child("child", timeout=60, label="l", task_name="t", cleanup="delete")


def counted(hand: Hand) -> None:
    """What the registry counts is what its records say."""
    assert recount(hand.registry.s) == []


# ------------------------------------------------------------------ the new run


def test_a_steered_child_goes_on_as_another_run_that_is_the_old_one_in_all_but_its_message() -> None:
    """2"""
    hand, parent, child = family()
    hand.clock.advance(1.0)
    assert steer(parent, "child") == Receipt("accepted", "child+", key_of("child"), "w")
    old, new = hand.run("child"), hand.run("child+")
    for field in ("session", "session_id", "requester", "parent", "root", "depth", "lane", "timeout", "label"):
        assert getattr(new, field) == getattr(old, field), field
    assert (new.created, new.task_name, new.expects, new.task) == (old.created, "t", True, "rather this")
    assert hand.registry.s.sessions[key_of("child")].cleanup == "delete"
    assert (new.restart.generation, new.restart.replaces, old.restart.replaced_by) == (1, ("child",), "child+")
    assert (old.delivery, new.delivery) == (DeliveryState.NOT_REQUIRED, DeliveryState.PENDING)
    counted(hand)
    child.settle("never heard")
    turn = hand.begin("child+")
    assert (turn.spec.kind, turn.spec.text, turn.spec.turn) == ("message", "rather this", 1)
    turn.started()
    assert new.deadline == pytest.approx(hand.clock.mono() - 0.005 + 60)
    counted(hand)


def test_the_interrupted_run_is_cancelled_and_not_announced_and_the_new_one_is() -> None:
    """3"""
    hand, parent, child = family()
    steer(parent, "child")
    assert [(s.run, s.reason, s.mark < 0) for s in hand.take(Stop)] == [("child", "stopped", True)]
    assert child.settle("never heard").deliver is None
    assert hand.state("child") == "cancelled"
    assert "child+ goes on" in hand.run("child").outcome.error.message
    done = hand.begin("child+").settle("heard").deliver
    assert done is not None
    assert (done.completion.run_id, done.completion.replaces) == ("child+", ("child",))
    assert parent.hears() == []
    counted(hand)


def test_a_steered_child_that_does_not_heed_is_ended_with_its_process() -> None:
    """3: and only then the new one starts."""
    hand, parent, child = family(stop_grace_seconds=2)
    steer(parent, "child")
    assert starts(hand) == []
    hand.wait(2.1)
    assert [d.run for d in hand.take(DieIf)] == ["child"]
    hand.kill(child.actor)
    assert starts(hand) == [("child+", 1, "message")]
    assert hand.state("child") == "cancelled"
    assert hand.state("parent") == "running"


def test_a_child_that_had_no_turn_yet_is_begun_with_its_task_and_the_message() -> None:
    """5"""
    hand = Hand(actors=4, max_concurrent=1, global_lane=True)
    parent = hand.start("parent")
    first = parent.child("first")
    parent.spawn("second")
    assert steer(parent, "second", "and briefly").accepted
    assert hand.state("second") == "cancelled"
    first.settle()
    turn = hand.begin("second+")
    assert (turn.spec.kind, turn.spec.text) == ("task", "second\n\nand briefly")
    counted(hand)


def test_a_child_that_has_yielded_is_steered_at_once() -> None:
    """3: it has no process that would have to end."""
    hand, parent, child = family()
    below = child.child("below")
    child.settle("", yielded=True)
    steer(parent, "child")
    turn = hand.begin("child+")
    assert hand.state("child") == "cancelled"
    counted(hand)
    assert turn.settle("so far").word == "paused"
    below.settle("of below")
    woken = hand.begin("child+")
    assert (woken.spec.kind, [c.run for c in woken.spec.completions]) == ("wake", ["below"])
    assert woken.settle("all").word == "settled"
    counted(hand)


def test_what_a_steered_child_had_spawned_is_the_new_runs() -> None:
    """4: it goes on; its end goes with the new run's start, or is told to it."""
    hand, parent, child = family()
    below, other = child.child("below"), child.child("other")
    below.settle()
    steer(parent, "child")
    assert hand.state("other") == "running"
    child.settle()
    turn = hand.begin("child+")
    assert [c.run for c in turn.spec.completions] == ["below"]
    assert turn.settle("so far").word == "paused", "the other is still at work"
    other.settle()
    assert hand.state("child+") == "succeeded"
    counted(hand)


def test_nothing_is_born_below_a_run_that_is_being_replaced() -> None:
    """3"""
    hand, parent, child = family()
    steer(parent, "child")
    assert not child.spawn("late").accepted
    counted(hand)


# ------------------------------------------------------------------ who waits


def test_a_frozen_batch_waits_for_the_new_run() -> None:
    """6: steered by the operator while the parent sleeps."""

    def schedule() -> tuple[bool, list[str]]:
        hand, parent, child = family()
        other = parent.child("other")
        parent.settle("", yielded=True)
        by_operator = Admit("child+", "", "", "steer", root_of("driver"), "rather this", steers="child")
        hand.courier("driver").admit(by_operator, "child+")
        assert hand.receipts("driver", 1)[0].accepted
        child.settle("never heard")
        other.settle()
        early = bool(hand.sent(Start, "parent"))
        hand.begin("child+").settle()
        [start] = hand.take(Start, "parent")
        return early, [c.run for c in start.spec.completions]

    assert schedule() == (False, ["child+", "other"])
    with without(Steering, "_in_the_batch", lambda self, old, new: None):
        early, _ = schedule()
        assert early, "the wake had not waited for it"


def test_a_client_that_waits_for_the_old_run_hears_of_the_new_one() -> None:
    """6"""
    hand = Hand(actors=3)
    child = hand.start("child")
    hand.courier("driver").admit(
        Admit("child+", "", "", "steer", root_of("driver"), "rather this", steers="child"), "child+"
    )
    hand.receipts("driver", 1)
    child.settle("never heard")
    assert hand.registry.ended("child") is None
    hand.begin("child+").settle("heard")
    hand.poll()
    [end] = hand.messages(Completed)
    assert (end.run, end.completion.replaces, end.completion.text) == ("child+", ("child",), "heard")
    assert hand.registry.ended("child").run == "child+"


def test_steered_again_the_row_goes_on() -> None:
    """2, 6: by another session, as one alone would have to wait."""
    hand, parent, child = family()
    steer(parent, "child")
    child.settle()
    turn = hand.begin("child+")
    hand.wait(2.1)
    assert steer(parent, "child", "no, that", new="child++").accepted, "by the old id"
    turn.settle()
    newest = hand.begin("child++")
    assert hand.run("child++").restart.generation == 2
    done = newest.settle().deliver
    assert done is not None
    assert done.completion.replaces == ("child", "child+")
    counted(hand)


def test_a_stop_of_the_old_run_is_a_stop_of_the_new_one() -> None:
    """6"""
    hand, parent, child = family()
    steer(parent, "child")
    child.settle()
    hand.begin("child+")
    hand.stop("", run="child")
    assert [s.run for s in hand.sent(Stop) if s.mark > 0] == ["child+"]


def test_a_stop_while_the_old_run_is_being_ended_leaves_nothing_to_start() -> None:
    """3"""
    hand, parent, child = family()
    steer(parent, "child")
    hand.stop("parent")
    assert hand.state("child+") == "cancelled"
    child.settle()
    parent.settle()
    assert starts(hand) == []
    assert hand.registry.s.sessions.get(key_of("child")) is None
    counted(hand)


def test_a_message_that_waited_for_its_turn_is_cleared_with_the_old_run() -> None:
    """3"""
    hand = Hand(actors=4)
    parent = hand.start("parent")
    child = parent.child("child")
    child.settle("", yielded=True, waits_for="message")
    asked = admit("m", root_of("driver"), session_key=key_of("child"), route="ask")
    busy = [hand.start(f"b{i}") for i in range(3)]
    hand.courier("driver").admit(asked, "m")
    assert hand.receipts("driver", 1)[0].told
    assert starts(hand) == [], "no process is free"
    steer(parent, "child")
    busy[0].settle()
    turn = hand.begin("child+")
    assert (turn.spec.text, turn.spec.told) == ("rather this", ())


# ------------------------------------------------------------------ refusals


def test_two_steers_of_a_child_within_two_seconds_are_one() -> None:
    """1"""
    hand, parent, child = family()
    assert steer(parent, "child").accepted
    refused = steer(parent, "child+", new="x")
    assert (refused.status, refused.retry_after) == ("rate_limited", 2.0)
    hand.wait(1.9)
    assert steer(parent, "child+", new="y").status == "rate_limited"
    hand.wait(0.1)
    assert steer(parent, "child+", new="z").accepted
    assert hand.state("child+") == "cancelled"
    child.settle()
    hand.begin("z")
    counted(hand)


def test_the_same_steer_again_is_as_the_first_time() -> None:
    """2: over a crash of the registry, too."""
    hand, parent, _ = family()
    first = steer(parent, "child")
    assert steer(parent, "child") == first
    hand.crash_registry()
    hand.adopt()
    assert steer(parent, "child") == first
    assert [run.id for run in hand.registry.s.runs.values() if run.session == key_of("child")] == ["child", "child+"]
    counted(hand)


def test_a_session_steers_what_is_below_it_and_nothing_else() -> None:
    """1: not itself, not above, not beside."""
    hand, parent, child = family()
    other = parent.child("other")
    below = child.child("below")
    assert steer(child, "child").status == "forbidden"
    assert steer(child, "parent").status == "forbidden"
    assert steer(other, "child").status == "forbidden"
    assert steer(parent, "below").accepted, "what is deeper is below it, too"
    assert hand.run("below+").requester == key_of("child")
    below.settle()
    counted(hand)


def test_what_has_ended_is_done_and_what_is_not_there_is_an_error() -> None:
    """1"""
    hand, parent, child = family()
    child.settle()
    done = steer(parent, "child")
    assert (done.status, done.run_id) == ("done", "child")
    assert steer(parent, "nobody").status == "error"
    assert starts(hand) == []


@pytest.mark.parametrize("text", ["", "  ", "x" * 4_001])
def test_a_message_has_one_to_four_thousand_characters(text: str) -> None:
    """1"""
    hand, parent, _ = family()
    assert steer(parent, "child", text).limit == "message"
    assert hand.run("child").restart is None


def test_an_item_of_a_map_is_not_steered() -> None:
    """1: its place in the results is its own."""
    hand = Hand(actors=3)
    parent = hand.start("parent")
    parent.child("item", route="map", index=0)
    assert "item of a map" in str(steer(parent, "item").error)


def test_who_is_being_stopped_steers_nobody() -> None:
    """1"""
    hand, parent, _ = family()
    hand.stop("parent")
    assert steer(parent, "child").status == "error"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_of_the_registry_in_the_middle_changes_nothing(when: str) -> None:
    """3: both runs and the line are in the journal."""
    hand, parent, child = family()
    steer(parent, "child")
    if when == "after":
        child.settle("never heard")
    hand.effects.clear()
    hand.crash_registry()
    hand.adopt()
    counted(hand)
    if when == "before":
        child.settle("never heard")
    hand.wait(2.5)
    for actor in list(hand.actors):
        hand.report(actor)
    [start, *_] = hand.take(Start, "child+")
    hand.deliver(start)
    turn = hand.turns["child+"]
    assert turn.settle("heard").word == "settled"
    counted(hand)


# ------------------------------------------------------------------ aborted


def test_a_session_knows_that_its_last_run_was_aborted_until_the_next_is_accepted() -> None:
    """G1 step 4"""
    hand = Hand(actors=2)
    hand.ask("m1")
    turn = hand.begin("m1")
    session = hand.registry.s.sessions["agent:w:main"]
    hand.stop("agent:w:main")
    assert not session.aborted
    turn.settle()
    assert session.aborted
    hand.crash_registry()
    hand.adopt()
    session = hand.registry.s.sessions["agent:w:main"]
    assert session.aborted
    hand.ask("m2")
    assert not session.aborted
    hand.begin("m2").settle()
    assert not session.aborted


def test_a_steered_session_was_not_aborted() -> None:
    """G4: its task goes on."""
    hand, parent, child = family()
    steer(parent, "child")
    child.settle()
    assert not hand.registry.s.sessions[key_of("child")].aborted
    hand.begin("child+")
