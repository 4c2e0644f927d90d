"""PROTOCOL.md 1.1 to 1.3, Up: steps and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from openclaw_ray.core.protocol import courier
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.journal import JournalFault, MemoryJournal, Write
from openclaw_ray.core.protocol.messages import (
    Consumed,
    Effect,
    Progress,
    Start,
    Step,
    StopAsk,
    UsageAdded,
    Verdict,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import Receipt, Usage
from rules.asking import admit, key_of, root_of
from rules.hand import Hand, without


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


def test_a_step_is_bounded_and_no_admit_overtakes_an_event() -> None:
    """1.1"""

    def schedule() -> list[tuple[int, int]]:
        hand = Hand()
        voice = hand.courier("driver")
        for i in range(300):
            voice.post(note(str(i)))
        for i in range(40):
            voice.admit(admit(f"r{i}", root_of("driver")), i)
        sizes = []
        while (step := voice.next_step()) is not None:
            sizes.append((len(step.events), len(step.admits)))
            voice.answered(hand.registry.step(step)[0])
        return sizes

    assert schedule() == [(256, 0), (44, 16), (0, 16), (0, 8)]
    with without(courier, "MOST", 10_000), without(courier, "MOST_ADMITS", 10_000):
        assert schedule() == [(300, 40)]


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

    def answers_first(self: MemoryJournal, writes: Sequence[Write]) -> None:
        if self.fail_next:
            self.fail_next = 0
            commit(self, [write for write in writes if write.table == "clients"])
            raise JournalFault("the disk is full in the middle")
        commit(self, writes)

    commit = MemoryJournal.commit
    assert schedule() == (0, "accepted", ["r"])
    with without(MemoryJournal, "commit", answers_first):
        assert schedule() == (0, "accepted", []), "a run that was promised and does not exist"


def test_answer_and_effects_follow_the_commit() -> None:
    """1.2: what was not committed is told to nobody."""

    def schedule() -> tuple[list[str], int]:
        hand = Hand(actors=1)
        hand.courier("driver").admit(admit("r", root_of("driver")), 0)
        hand.journal.fail_next = 1
        with suppress(JournalFault):
            hand.lose("driver")
        return [start.spec.run for start in hand.sent(Start)], hand.journal.count("runs", {})

    def anyway(self: State) -> tuple[Effect, ...]:
        with suppress(JournalFault):
            return commit(self)
        return tuple(self.effects)

    commit = State.commit
    assert schedule() == ([], 0)
    with without(State, "commit", anyway):
        assert schedule() == (["r"], 0), "it runs, and no registry will ever know of it"


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
