"""Rate limits in the registry: let in by steps and by the clock, given back by every end, kept over crashes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from openclaw_ray.core.protocol.limiting import Limiting
from openclaw_ray.core.protocol.messages import BackOff, LimitAsk, LimitDone, Permit, Start
from openclaw_ray.core.rate_limits import LimitRule
from rules.hand import Hand, without
from rules.turn import Turn

TWO_AT_ONCE = (LimitRule("api", concurrent=2),)


def ask(turn: Turn, number: int = 1, name: str = "api") -> str:
    """A request; gives its id."""
    id = f"{turn.activation}:{number}"
    turn.say(LimitAsk(turn.run, turn.activation, id, name))
    return id


def permits(turn: Turn) -> list[tuple[str, str]]:
    """What the turn was told."""
    turn.hand.notify()
    return [(m.ask, m.why) for m in turn.hand.messages(Permit, turn.activation)]


def test_a_place_is_told_of_in_the_answer_to_the_step_that_asks() -> None:
    hand = Hand(actors=1, rates=TWO_AT_ONCE)
    turn = hand.start("a")
    answer = turn.say(LimitAsk("a", turn.activation, "x", "api"))
    assert [m for _, told in answer.down for _, m in told] == [Permit("x")]


def test_the_third_waits_until_one_gives_back() -> None:
    hand = Hand(actors=3, rates=TWO_AT_ONCE)
    turns = [hand.start(run) for run in "abc"]
    ids = [ask(turn) for turn in turns]
    assert permits(turns[2]) == []
    turns[0].say(LimitDone("a", turns[0].activation, ids[0]))
    turns[0].say(LimitDone("a", turns[0].activation, ids[0]))
    assert permits(turns[2]) == [(ids[2], "")]
    assert hand.registry.limiting.statistics() == {"api": (2, 0)}


def test_every_end_of_a_turn_gives_back() -> None:
    hand = Hand(actors=8, rates=TWO_AT_ONCE, max_spawn_depth=1)
    turns = {run: hand.start(run) for run in ("ends", "dies", "waits", "next", "last")}
    ids = {run: ask(turn) for run, turn in turns.items()}
    turns["ends"].settle()
    assert permits(turns["waits"]) == [(ids["waits"], "")]
    hand.do(hand.registry.died(turns["dies"].actor, "killed"))
    assert permits(turns["next"]) == [(ids["next"], "")]
    hand.do(hand.registry.died(turns["last"].actor, "killed while it waited"))
    turns["waits"].settle()
    turns["next"].settle()
    assert hand.registry.limiting.statistics() == {"api": (0, 0)}
    with without(Limiting, "left", lambda self, run: None):
        hand = Hand(actors=2, rates=(LimitRule("api", concurrent=1),))
        first, second = hand.start("first"), hand.start("second")
        ask(first), ask(second)
        first.settle()
        assert permits(second) == []


def test_time_lets_in_at_the_rate() -> None:
    hand = Hand(actors=8, rates=(LimitRule("api", rate=10),), max_spawn_depth=1)
    turns = [hand.start(run) for run in "abcde"]
    for turn in turns:
        ask(turn)
    assert [len(permits(turn)) for turn in turns] == [1, 0, 0, 0, 0]
    hand.wait(0.25)
    assert [len(permits(turn)) for turn in turns] == [1, 1, 1, 0, 0]
    hand.wait(0.2)
    assert [len(permits(turn)) for turn in turns] == [1, 1, 1, 1, 1]


def test_what_one_says_slows_all() -> None:
    hand = Hand(actors=2, rates=(LimitRule("api", rate=1000, burst=100),))
    one, other = hand.start("one"), hand.start("other")
    one.say(BackOff("one", one.activation, "api", 3.0))
    ask(other)
    hand.wait(2.9)
    assert permits(other) == []
    hand.wait(0.2)
    assert len(permits(other)) == 1


def test_a_crash_keeps_holders_and_line_and_lets_nobody_in_too_early() -> None:
    hand = Hand(actors=4, rates=(LimitRule("api", rate=1, concurrent=2),), max_spawn_depth=1)
    turns = [hand.start(run) for run in "abcd"]
    ids = [ask(turn) for turn in turns]
    hand.wait(1.0)
    assert [len(permits(turn)) for turn in turns] == [1, 1, 0, 0]
    hand.crash_registry()
    hand.adopt()
    assert hand.registry.limiting.statistics() == {"api": (2, 2)}
    hand.wait(5.0)
    assert permits(turns[2]) == []
    turns[1].say(LimitDone("b", turns[1].activation, ids[1]))
    turns[0].settle()
    assert [len(permits(turn)) for turn in turns[2:]] == [1, 0], "the bucket of the new one was empty, and holds one"
    hand.wait(1.0)
    assert len(permits(turns[3])) == 1


def test_one_that_was_let_in_and_not_told_is_told_by_the_next_incarnation() -> None:
    hand = Hand(actors=1, rates=TWO_AT_ONCE)
    turn = hand.start("a")
    turn.hand.courier(turn.actor).post(LimitAsk("a", turn.activation, "x", "api"))
    hand.lose(turn.actor)
    hand.crash_registry()
    hand.adopt()
    hand.step(turn.actor)
    assert ("x", "") in permits(turn)
    assert hand.registry.limiting.statistics() == {"api": (1, 0)}


def test_a_limit_that_those_above_hold_while_they_wait_is_refused() -> None:
    hand = Hand(actors=3, rates=(LimitRule("api", concurrent=1),))
    parent = hand.start("parent")
    ask(parent)
    child = parent.child("child")
    parent.pause()
    ask(child)
    assert [why for _, why in permits(child)] == ["held_above"]
    assert hand.registry.limiting.statistics() == {"api": (1, 0)}


def test_so_is_one_that_has_asked_before_the_one_above_waits() -> None:
    hand = Hand(actors=3, rates=(LimitRule("api", concurrent=1),))
    parent = hand.start("parent")
    ask(parent)
    child = parent.child("child")
    ask(child)
    assert permits(child) == []
    parent.pause()
    assert [why for _, why in permits(child)] == ["held_above"]
    with without(Limiting, "paused", lambda self, run: None):
        hand = Hand(actors=3, rates=(LimitRule("api", concurrent=1),))
        parent = hand.start("parent")
        ask(parent)
        child = parent.child("child")
        ask(child)
        parent.pause()
        assert permits(child) == []


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    hand = Hand(actors=1, rates=TWO_AT_ONCE)
    turn = hand.start("a")
    ask(turn, name="ap")
    hand.notify()
    [told] = hand.messages(Permit, turn.activation)
    assert (told.why, told.detail) == ("unknown", ("api",))


def test_a_stale_turn_gets_nothing() -> None:
    hand = Hand(actors=2, rates=TWO_AT_ONCE)
    turn = hand.start("a")
    turn.say(LimitAsk("a", "someone.7", "x", "api"))
    assert hand.registry.limiting.statistics() == {"api": (0, 0)}


def test_a_reload_changes_the_rule_in_place_and_frees_who_waits_for_one_that_is_gone() -> None:
    from dataclasses import replace

    hand = Hand(actors=4, rates=(LimitRule("api", concurrent=1), LimitRule("old", concurrent=1)))
    turns = [hand.start(run) for run in "abcd"]
    for turn, name in zip(turns, ("api", "api", "old", "old"), strict=True):
        ask(turn, name=name)
    assert [len(permits(turn)) for turn in turns] == [1, 0, 1, 0]
    limits = replace(hand.limits, rates=(LimitRule("api", concurrent=2),))
    hand.do(hand.registry.reload(limits, {}, "boot"))
    hand.tick()
    assert [len(permits(turn)) for turn in turns] == [1, 1, 1, 1]


@dataclass
class _Crowd:
    """Sessions of two clients that are let in, stay for a while and give back, or are killed meanwhile."""

    hand: Hand
    pick: random.Random
    came: dict[str, float] = field(default_factory=dict)
    left: dict[str, float] = field(default_factory=dict)
    turns: dict[str, tuple[Turn, str]] = field(default_factory=dict)
    killed: int = 0

    def arrive(self) -> None:
        """What was granted begins, on new processes where some were killed."""
        self.hand.grow()
        for start in self.hand.take(Start):
            self.hand.deliver(start)
            turn = self.hand.turns[start.spec.run]
            self.turns[turn.run] = turn, ask(turn)

    def step(self, now: float) -> None:
        for run, (turn, id) in list(self.turns.items()):
            if run not in self.came and permits(turn) == [(id, "")]:
                self.came[run] = now
            stays = run in self.came and now < self.came[run] + 0.2
            if self.pick.random() < 0.01 and self.killed < 20:
                self.killed += 1
                self.hand.kill(turn.actor)
            elif run in self.came and not stays:
                turn.say(LimitDone(run, turn.activation, id))
                turn.settle()
            else:
                continue
            self.left[run] = now
            del self.turns[run]


@pytest.mark.parametrize("seed", [1, 2])
def test_two_hundred_sessions_under_twenty_a_second_and_five_at_once(seed: int) -> None:
    """Never above either; what is killed gives back; two clients have equal shares while both want in."""
    hand = Hand(
        actors=16, pool_max=16, drivers=("one", "two"), max_spawn_depth=1,
        rates=(LimitRule("api", rate=20, concurrent=5),),
    )  # fmt: skip
    crowd, now = _Crowd(hand, random.Random(seed)), 0.0
    waiting = {by: [f"{by}-{n}" for n in range(100)] for by in ("one", "two")}
    born = dict.fromkeys(waiting, 0)
    while len(crowd.left) < 200 and now < 60:
        for by, runs in waiting.items():
            at_work = born[by] - sum(run.startswith(by) for run in crowd.left)
            for run in [runs.pop(0) for _ in range(min(7 - at_work, len(runs)))]:
                assert hand.admit(run, by).accepted
                born[by] += 1
        crowd.arrive()
        hand.wait(0.01)
        now += 0.01
        crowd.step(now)
        held, _ = hand.registry.limiting.statistics()["api"]
        assert held <= 5
    assert not crowd.turns
    assert crowd.killed == 20
    assert len(crowd.left) == 200
    assert hand.registry.limiting.statistics() == {"api": (0, 0)}
    moments = sorted(crowd.came.values())
    for begin in moments:
        assert sum(begin <= at < begin + 1 - 1e-9 for at in moments) <= 21  # looked at every 10 ms
        assert sum(at <= begin < crowd.left[run] for run, at in crowd.came.items()) <= 5
    assert len(moments) / moments[-1] > 15  # and it is used
    half = sorted(crowd.came, key=lambda run: crowd.came[run])[: len(moments) // 2]
    share = sum(run.startswith("one") for run in half) / len(half)
    assert abs(share - 0.5) <= 0.1
