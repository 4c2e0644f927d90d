"""PROTOCOL.md 1.4 to 1.6, Up: what is stale, what is put off, what comes again."""

from __future__ import annotations

import pytest

from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import (
    Admit,
    Answer,
    Progress,
    Start,
)
from openclaw_ray.core.protocol.records import Session
from openclaw_ray.core.protocol.registry import Registry
from rules.asking import admit, root_of
from rules.hand import Hand, without


def test_a_stale_event_is_refused_and_does_not_spoil_its_step() -> None:
    """1.4: the end of an older turn comes again, late, beside what is of now."""

    def schedule() -> tuple[list[str], str]:
        hand = Hand(actors=3)
        parent = hand.start("parent")
        child = parent.child("child")
        old = parent.ending("old", yielded=True)
        parent.settle("old", yielded=True)
        child.settle()
        woken = hand.begin("parent")
        answer = hand.say(woken.actor, old, Progress("parent", woken.activation, "at work"))
        assert hand.run("parent").progress == ("at work", None, None) or hand.run("parent").terminal
        return [v.word for v in answer.verdicts], hand.state("parent")

    assert schedule() == (["refused"], "running")
    with without(Ending, "is_current", lambda self, run, activation: bool(run.actor)):
        assert schedule() == (["settled"], "succeeded"), "the older turn has ended the newer one's run"


@pytest.mark.parametrize("way", ["returned", "yielded"])
def test_a_stale_admit_is_refused_and_does_not_spoil_its_step(way: str) -> None:
    """1.4: a turn that has ended asks for nothing more, also if its run goes on."""

    def schedule() -> tuple[str, str]:
        hand = Hand(actors=2)
        turn = hand.start("r")
        if way == "yielded":
            turn.child("child")
        turn.end(yielded=way == "yielded")
        late = turn.spawn("late").status
        return late, hand.state("r")

    def parent_of_anything(self: Birth, client: str, requester: Session, admit: Admit) -> object:
        return self.s.runs["r"] if admit.activation else parent(self, client, requester, admit)

    parent = Birth._parent
    state = "paused" if way == "yielded" else "succeeded"
    assert schedule() == ("error", state)
    with without(Birth, "_parent", parent_of_anything):
        assert schedule() == ("accepted", state)


def test_a_process_that_is_stale_as_a_whole_is_told_to_end() -> None:
    """1.4: a process that was taken for dead speaks again; nothing that it says counts."""

    def schedule() -> tuple[str, bool]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        voice = hand.courier(turn.actor)
        hand.kill(turn.actor)
        hand.couriers[turn.actor] = voice
        answer = turn.started()
        return answer.word, voice.stale and voice.next_step() is None

    assert schedule() == ("stale", True)
    with without(Registry, "_comes_in", lambda self, event: True):
        assert schedule() == ("ok", False)


def test_while_the_registry_recovers_steps_are_put_off_and_come_again() -> None:
    """1.5"""

    def schedule() -> tuple[str, list[str]]:
        hand = Hand(actors=1)
        hand.crash_registry()
        hand.courier("driver").admit(admit("r", root_of("driver")), 0)
        word = hand.step("driver").word
        hand.adopt()
        if hand.courier("driver").in_flight is not None:
            hand.step("driver")
        return word, list(hand.registry.s.runs)

    assert schedule() == ("recovering", ["root-driver", "r"])
    with without(Courier, "is_final", lambda self, answer: True):
        assert schedule() == ("recovering", ["root-driver"])


def test_nothing_new_is_decided_before_the_actors_were_heard() -> None:
    """1.5, 7.5: a step answered before adoption would be answered without knowing what runs."""

    def schedule() -> str:
        hand = Hand(actors=1)
        hand.crash_registry()
        hand.courier("driver").admit(admit("r", root_of("driver")), 0)
        return hand.step("driver").word

    assert schedule() == "recovering"
    with without(Crew, "begin_adoption", lambda self: None):
        assert schedule() == "ok"


def test_a_registry_that_cannot_write_gets_the_same_step_again() -> None:
    """1.6: unavailable means unknown, not lost."""

    def schedule() -> list[str]:
        hand = Hand(actors=1)
        voice = hand.courier("driver")
        voice.admit(admit("r", root_of("driver")), 0)
        hand.fail_commit("driver")
        voice.answered(Answer(hand.registry.s.incarnation, voice.seq, "unavailable"))
        hand.adopt()
        if voice.in_flight is not None:
            hand.step("driver")
        return [start.spec.run for start in hand.sent(Start)]

    assert schedule() == ["r"]
    with without(Courier, "is_final", lambda self, answer: True):
        assert schedule() == []


def test_an_answer_to_an_older_step_is_not_taken_for_that_of_the_present_one() -> None:
    """1.1, 1.6: of two answers to one step the second comes late."""
    hand = Hand(actors=1)
    first = hand.admit("a"), hand.last
    hand.courier("driver").admit(admit("b", root_of("driver")), "b")
    step = hand.courier("driver").next_step()
    assert hand.courier("driver").answered(first[1]) == ((), [], [])
    assert hand.courier("driver").in_flight is step
