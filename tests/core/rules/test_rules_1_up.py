"""PROTOCOL.md 1, Up: steps, their answers, and what fences them."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.protocol import courier
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.journal import JournalFault, MemoryJournal
from openclaw_ray.core.protocol.messages import (
    Admit,
    Answer,
    Consumed,
    Effect,
    Progress,
    Start,
    Step,
    StopAsk,
    UsageAdded,
    Verdict,
)
from openclaw_ray.core.protocol.records import Session
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import Receipt, Usage
from rules.hand import Hand, admit, key_of, root_of, without


def note(text: str) -> Progress:
    return Progress("r", "s-r.1", text)


def test_one_step_is_in_flight_and_what_gathers_goes_into_the_next() -> None:
    """1.1: with two under way the second may overtake, and then the first is refused as old."""

    def schedule() -> list[str]:
        hand = Hand()
        voice = hand.courier("driver")
        voice.admit(admit("first", root_of("driver")), 1)
        steps = [voice.next_step()]
        for name in ("second", "third"):
            voice.admit(admit(name, root_of("driver")), name)
        steps.append(voice.next_step())
        for step in [s for s in reversed(steps) if s is not None]:
            voice.answered(hand.registry.step(step)[0])
        if voice.pending:
            hand.step("driver")
        return [w.run for w in hand.registry.s.queue.waiting()]

    assert schedule() == ["first", "second", "third"]
    with without(Courier, "idle", lambda self: True):
        assert schedule() == ["second", "third"]


def test_a_step_has_at_most_256_events_and_admits_and_no_admit_overtakes_an_event() -> None:
    """1.1"""

    def schedule() -> list[tuple[int, int]]:
        hand = Hand()
        voice = hand.courier("driver")
        for i in range(300):
            voice.post(note(str(i)))
            voice.admit(admit(f"r{i}", root_of("driver")), i)
        sizes = []
        while (step := voice.next_step()) is not None:
            sizes.append((len(step.events), len(step.admits)))
            voice.answered(hand.registry.step(step)[0])
        return sizes

    assert schedule() == [(256, 0), (44, 256), (0, 44)]
    with without(courier, "MOST", 10_000):
        assert schedule() == [(300, 300)]


def test_events_apply_before_admits() -> None:
    """1.2: a stop and an admit of the same step: nothing is born under the stop."""

    def schedule() -> str:
        hand = Hand(actors=2)
        top = hand.start("top")
        voice = hand.courier(top.actor)
        voice.post(StopAsk("stop-1", "", run="top"))
        voice.admit(admit("late", key_of("top"), activation=top.activation), 0)
        return hand.step(top.actor).receipts[0].status

    def admits_first(self: Registry, step: Step) -> tuple[str, list[Verdict]]:
        early.append(self._take_admits(step))
        return take_events(self, step)

    def already(self: Registry, step: Step) -> tuple[Receipt, ...]:
        return early.pop() if early else take_admits(self, step)

    early: list[tuple[Receipt, ...]] = []
    take_events, take_admits = Registry._take_events, Registry._take_admits
    assert schedule() == "forbidden"
    with without(Registry, "_take_events", admits_first), without(Registry, "_take_admits", already):
        assert schedule() == "accepted"


def test_a_failed_commit_keeps_nothing_and_a_rebuilt_registry_goes_on() -> None:
    """1.2: all of a step in one transaction, or none of it."""

    def schedule() -> tuple[int, str, list[str]]:
        hand = Hand(actors=1)
        hand.courier("driver").admit(admit("r", root_of("driver")), 0)
        hand.fail_commit("driver")
        kept = hand.journal.count("runs", {})
        hand.adopt()
        return kept, hand.step("driver").receipts[0].status, [s.spec.run for s in hand.sent(Start)]

    def half(self: MemoryJournal, writes: Any) -> None:
        if self.fail_next:
            self.fail_next = 0
            real(self, list(writes)[: len(writes) // 2])
            raise JournalFault("the disk is full in the middle")
        real(self, writes)

    real = MemoryJournal.commit
    assert schedule() == (0, "accepted", ["r"])
    with without(MemoryJournal, "commit", half):
        assert schedule() != (0, "accepted", ["r"])


def test_effects_follow_the_commit() -> None:
    """1.2: what was not committed was never told to anybody."""

    def schedule() -> list[Start]:
        hand = Hand(actors=1)
        told.append(hand)
        hand.courier("driver").admit(admit("r", root_of("driver")), 0)
        hand.fail_commit("driver")
        return hand.sent(Start)

    def tell(effect: Effect) -> None:
        for hand in told:
            hand.do([effect])

    told: list[Hand] = []
    assert schedule() == []
    with without(State, "effect", lambda self, effect: tell(effect)):
        assert len(schedule()) == 1


@pytest.mark.parametrize("crash", [False, True], ids=["lost answer", "crash between commit and answer"])
def test_the_same_step_again_gives_the_same_answer(crash: bool) -> None:
    """1.2, 1.6: the last seq and answer of a client are journaled with what the step did."""

    def schedule() -> tuple[int | None, str]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        hand.courier(turn.actor).post(UsageAdded("r", turn.activation, Usage(7, 0)))
        twice(hand, turn.actor)
        turn.end()
        twice(hand, turn.actor)
        return hand.run("r").usage.input_tokens, hand.last.verdicts[0].word

    def twice(hand: Hand, actor: str) -> None:
        hand.lose(actor)
        if crash:
            hand.crash_registry()
            hand.adopt()
        hand.step(actor)

    assert schedule() == (7, "settled")
    with without(Registry, "_is_repeat", lambda self, client, step: False):
        assert schedule() == (14, "refused")


def test_a_run_asked_for_again_under_the_same_id_is_the_same_run() -> None:
    """1.3: ids are minted by the courier and checked by the registry, also when the run has ended and left memory."""

    def schedule() -> tuple[str, int]:
        hand = Hand(actors=1)
        hand.start("r").settle()
        hand.poll()
        hand.say("driver", Consumed("driver", ("r",)))
        assert "r" not in hand.registry.s.runs
        return hand.admit("r").status, len(hand.sent(Start))

    assert schedule() == ("accepted", 0)
    with without(State, "journaled_run", lambda self, run: self.runs.get(run)):
        assert schedule() == ("accepted", 1), "executed twice"


def test_a_key_of_another_session_is_refused() -> None:
    """1.3"""
    hand = Hand(actors=1)
    hand.start("r")
    receipt = hand.admit("other", session_key=key_of("r"))
    assert receipt.status == "error"
    assert "taken" in (receipt.error or "")


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


def test_a_stale_admit_is_refused_and_does_not_spoil_its_step() -> None:
    """1.4: a turn that has ended asks for nothing more."""

    def schedule() -> tuple[str, str]:
        hand = Hand(actors=2)
        turn = hand.start("r")
        turn.end()
        late = turn.spawn("late").status
        return late, hand.state("r")

    def parent_of_anything(self: Birth, client: str, requester: Session, admit: Admit) -> object:
        return self.s.runs["r"] if admit.activation else parent(self, client, requester, admit)

    parent = Birth._parent
    assert schedule() == ("error", "succeeded")
    with without(Birth, "_parent", parent_of_anything):
        assert schedule() == ("accepted", "succeeded")


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


def test_an_unavailable_registry_gets_the_same_step_again() -> None:
    """1.6: no answer means unknown; a new number for the same words would say them twice."""
    hand = Hand(actors=1)
    voice = hand.courier("driver")
    voice.admit(admit("r", root_of("driver")), 0)
    step = voice.next_step()
    assert step is not None
    assert voice.answered(Answer(hand.registry.s.incarnation, step.seq, "unavailable")) is None
    assert voice.next_step() is None
    assert voice.in_flight is step


def test_an_answer_to_an_older_step_is_not_taken_for_that_of_the_present_one() -> None:
    """1.1, 1.6: of two answers to one step the second comes late."""
    hand = Hand(actors=1)
    first = hand.admit("a"), hand.last
    hand.courier("driver").admit(admit("b", root_of("driver")), "b")
    step = hand.courier("driver").next_step()
    assert hand.courier("driver").answered(first[1]) == ((), [], [])
    assert hand.courier("driver").in_flight is step
