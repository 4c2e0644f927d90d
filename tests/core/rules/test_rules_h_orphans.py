"""SPEC.md H3, H4: what proves an un-ended run alive, when it counts no more, and how an orphan is ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from openclaw_ray.core.protocol.admitting import Admitting
from openclaw_ray.core.protocol.child_views import children_of
from openclaw_ray.core.protocol.executors import Executor, executor_of
from openclaw_ray.core.protocol.orphans import MISSING_FOR, Orphans
from rules.asking import agent, key_of
from rules.hand import Hand, without
from rules.turn import Turn

HOUR = 3600.0


def family(children: int = 1, **limits: Any) -> tuple[Hand, Turn, list[Turn]]:
    hand = Hand(actors=children + 2, **limits)
    parent = hand.start("parent")
    parent.started()
    turns = [parent.child(f"c{n}") for n in range(children)]
    for turn in turns:
        turn.started()
    return hand, parent, turns


def lose_process(hand: Hand, turn: Turn) -> None:
    """No schedule does this: the record of its process is taken away by hand."""
    del hand.registry.s.actors[turn.actor]


def lose_place(hand: Hand, run: str) -> None:
    """Nor this: its place in line is."""
    hand.registry.s.queue.remove(run)


# ---------------------------------------------------------------------- executors


def test_each_state_of_an_un_ended_run_has_its_executor() -> None:
    hand = Hand(actors=1)
    s = hand.registry.s
    first = hand.start("first")
    first.started()
    hand.admit("queued")
    hand.ask("m1")
    hand.ask("m2")
    assert [executor_of(s, s.runs[run]) for run in ("first", "queued", "m1", "m2")] == [
        Executor.PROCESS,
        Executor.LINE,
        Executor.LINE,
        Executor.LINE,
    ]
    first.spawn("child")
    first.settle(yielded=True)
    assert executor_of(s, s.runs["first"]) is Executor.CHILDREN


# ---------------------------------------------------------------------- the sweeper


@pytest.mark.parametrize("what", ["process", "place", "session"])
def test_an_orphan_is_ended_as_lost_after_a_minute_and_its_requester_hears(what: str) -> None:
    def schedule() -> tuple[str, float]:
        hand = Hand(actors=1)
        turn = hand.start("r")
        turn.started()
        if what == "process":
            lose_process(hand, turn)
        elif what == "session":
            del hand.registry.s.sessions[key_of("r")]
        else:
            hand.admit("waits")
            lose_place(hand, "waits")
        run, began = "waits" if what == "place" else "r", hand.clock.mono()
        while not hand.run(run).terminal and hand.clock.mono() - began < 100:
            hand.wait(1)
        lasted = hand.clock.mono() - began
        hand.poll()
        assert run in hand.ends()
        outcome = hand.run(run).outcome
        assert outcome is not None
        assert outcome.error is not None
        assert outcome.error.cause == "orphaned"
        return hand.state(run), lasted

    state, lasted = schedule()
    assert state == "lost"
    assert MISSING_FOR <= lasted <= MISSING_FOR + 3
    with without(Orphans, "sweep", lambda self: None), pytest.raises(AssertionError):
        schedule()


def test_what_is_back_within_the_minute_goes_on() -> None:
    hand, _, [child] = family()
    actor = hand.registry.s.actors.pop(child.actor)
    hand.wait(MISSING_FOR - 5)
    hand.registry.s.actors[actor.id] = actor
    hand.wait(MISSING_FOR)
    hand.registry.s.actors.pop(child.actor)
    hand.wait(MISSING_FOR - 5)
    assert hand.state("c0") == "running"


def test_what_has_a_process_or_a_place_in_line_is_not_ended_at_any_age() -> None:
    """D6: a process that is known to have it proves it alive."""
    hand = Hand(actors=1, turn_timeout_seconds=0)
    hand.start("old").started()
    hand.admit("queued")
    hand.wait(1.0)
    hand.clock.advance(50 * HOUR)
    for _ in range(100):
        hand.wait(1.0)
    assert (hand.state("old"), hand.state("queued")) == ("running", "queued")


def test_the_sweeper_looks_at_so_many_runs_at_a_time_and_comes_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from openclaw_ray.core.protocol import orphans

    monkeypatch.setattr(orphans, "LOOK_AT", 2)
    hand, _, turns = family(children=4, max_children=9)
    for turn in turns:
        lose_process(hand, turn)
    looked: list[int] = []
    why = Orphans.why_over
    with without(Orphans, "why_over", lambda self, run, now: looked.append(1) or why(self, run, now)):
        hand.wait(1.0)
        assert len(looked) <= 4
        hand.wait(MISSING_FOR + 20)
    assert [hand.state(f"c{n}") for n in range(4)] == ["lost"] * 4


def test_what_a_start_never_decided_on_is_ended_when_it_is_stale() -> None:
    """H5: a start holds what was un-ended, and died before it came to decide."""
    hand = Hand(actors=2, drivers=("driver",))
    hand.ask("top")
    hand.begin("top").started()
    hand.crash_registry()
    hand.do(hand.registry.open_boot("next", True))
    hand.do(hand.registry.register([agent("w")], "b1", b"code"))
    assert executor_of(hand.registry.s, hand.registry.s.runs["top"]) is Executor.HELD
    hand.wait(MISSING_FOR + 5)
    assert hand.state("top") == "queued"
    hand.clock.advance(2 * HOUR)
    hand.wait(3)
    assert hand.state("top") == "lost"


# ---------------------------------------------------------------------- admission and lists


def aged(lose: Callable[[Hand, Turn], None], age: float) -> tuple[Hand, Turn, list[Turn]]:
    """Two children of a cap of two, of which the first is lost; so old, and not looked at by the sweeper."""
    hand, parent, turns = family(children=2, max_children=2)
    with without(Orphans, "sweep", lambda self: None):
        lose(hand, turns[0])
        hand.clock.advance(age)
        hand.tick()
    return hand, parent, turns


def test_a_stale_run_does_not_count_against_the_children_cap() -> None:
    def schedule(age: float = 2 * HOUR + 1) -> str:
        _, parent, _ = aged(lose_process, age)
        return parent.spawn("one more").status

    assert schedule() == "accepted"
    assert schedule(age=2 * HOUR - 60) == "forbidden"
    with without(Admitting, "_active_children", lambda self, requester: requester.active):
        assert schedule() == "forbidden"


def test_a_proven_run_counts_at_any_age() -> None:
    _, parent, _ = aged(lambda hand, turn: None, 40 * HOUR)
    assert parent.spawn("one more").status == "forbidden"


def test_a_stale_run_with_something_living_below_counts() -> None:
    hand, parent, turns = family(children=2, max_children=2)
    turns[0].child("grandchild").started()
    with without(Orphans, "sweep", lambda self: None):
        lose_process(hand, turns[0])
        hand.clock.advance(3 * HOUR)
        assert parent.spawn("one more").status == "forbidden"


def test_a_stale_run_is_not_in_its_requesters_list() -> None:
    hand, parent, _ = aged(lose_process, 3 * HOUR)
    facts = children_of(hand.registry.s, hand.journal, parent.spec.session_key, {}, 10)
    assert [each.run_id for each in facts] == ["c1"]
