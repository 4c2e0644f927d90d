"""SPEC.md H2 and H4, upkeep of the ledger: what may go, and what nothing else can end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from openclaw_ray.core.ledger import LOST_KEPT, TASK_KEPT
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.messages import Consumed
from openclaw_ray.core.protocol.upkeep import Upkeep
from rules.hand import Hand, without


def ended(state: RunState = RunState.SUCCEEDED, *, heard: bool = True, **options: Any) -> Hand:
    hand = Hand(actors=2)
    hand.start("r", **options).settle(state=state)
    if heard:
        hand.poll()
        hand.say("driver", Consumed("driver", ("r",)))
    return hand


def kept(hand: Hand, after: float, runs: Sequence[str] = ("r",), *, apply: bool = True) -> tuple[int, bool]:
    """After so many seconds: how many records go, and whether the run's is still there."""
    hand.clock.advance(after)
    done, effects = hand.registry.maintain(runs, apply=apply)
    hand.do(effects)
    return len(done), hand.journal.get("runs", "r") is not None


@pytest.mark.parametrize(("state", "time"), [(RunState.SUCCEEDED, TASK_KEPT), (RunState.LOST, LOST_KEPT)])
def test_a_record_goes_when_its_time_is_over(state: RunState, time: float) -> None:
    def schedule() -> list[tuple[int, bool]]:
        hand = ended(state)
        return [kept(hand, time - 1), kept(hand, 1, apply=False), kept(hand, 0), kept(hand, 0)]

    assert schedule() == [(0, True), (1, True), (1, False), (0, False)]
    with without(Upkeep, "_over", lambda self, run: True):
        assert schedule()[0] == (1, False)


def test_what_somebody_is_still_to_hear_of_stays() -> None:
    assert kept(ended(heard=False), 2 * TASK_KEPT) == (0, True)


def test_what_has_not_ended_stays() -> None:
    hand = Hand(actors=1)
    hand.start("r")
    assert kept(hand, 2 * TASK_KEPT) == (0, True)


def test_a_turn_in_a_process_that_nobody_knows_is_ended_as_lost() -> None:
    """It cannot be made by any schedule: the record of the process is taken away by hand."""
    hand = Hand(actors=2)
    turn = hand.start("r")
    assert hand.registry.maintain((), apply=True)[0] == []
    del hand.registry.s.actors[turn.actor]
    [said] = hand.registry.maintain((), apply=False)[0]
    assert (said.action, said.run, hand.state("r")) == ("end", "r", "running")
    done, effects = hand.registry.maintain((), apply=True)
    hand.do(effects)
    assert [each.run for each in done] == ["r"]
    hand.poll()
    assert (hand.state("r"), hand.ends()) == ("lost", ["r"])
    assert hand.registry.maintain((), apply=True)[0] == []
