"""Exchanges under seeded disorder: sends, replies, waits given up, dead processes and registries, in any order.

Whatever comes: every exchange ends; its sender hears of it once, as a reply in its turn or as a row with a later one;
nothing is left over.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.protocol import talking
from openclaw_ray.core.protocol.messages import Replied, SendOver, Start
from openclaw_ray.core.visibility import SessionRules, Visibility
from rules.hand import Hand, without
from rules.test_rules_5_talk import talker
from rules.turn import Turn

NAMES = ("a", "b", "c")
SEEDS = range(60)


class Disorder:
    """One seeded run."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        rules = SessionRules(visibility=Visibility.ALL, max_ping_pong_turns=self.pick.randint(0, 5))
        self.hand = Hand(actors=6, pool_max=8, agents=[talker(name) for name in NAMES], sessions=rules)
        self.turns: dict[str, Turn] = {}
        self.waits: dict[str, str] = {}
        self.heard: Counter[str] = Counter()
        self.accepted: set[str] = set()
        self.number = 0

    def step(self, *, more: bool) -> None:
        self.deliver()
        actions = [self.settle, self.settle, self.give_up, self.hear, self.hear, self.hear]
        if more:
            actions += [self.ask, self.send, self.send, self.crash, self.kill]
        self.pick.choice(actions)()

    # ------------------------------------------------------------------ what happens

    def ask(self) -> None:
        self.number += 1
        name = self.pick.choice(NAMES)
        key, session_id = f"agent:{name}:main", f"s-{name}"
        self.hand.admit(f"ask{self.number}", session_key=key, session_id=session_id, route="ask", agent_id=name)

    def send(self) -> None:
        turn = self.any_turn()
        if turn is None:
            return
        self.number += 1
        run, wait = f"m{self.number}", self.pick.random() < 0.5
        ask = SendAsk(f"agent:{self.pick.choice(NAMES)}:main", wait=wait)
        if turn.spawn(run, route="send", send=ask, expects=False).accepted:
            self.accepted.add(run)
            if wait:
                self.waits[run] = turn.run

    def settle(self) -> None:
        turn = self.any_turn()
        if turn is not None:
            self.over(turn)
            turn.settle(self.pick.choice(["more", "more", "REPLY_SKIP", ""]))

    def hear(self) -> None:
        self.hand.notify()
        for run, waiter in list(self.waits.items()):
            turn = self.turns.get(waiter)
            told = turn is not None and any(m.send == run for m in self.hand.messages(Replied, turn.activation))
            if turn is not None and told:
                del self.waits[run]
                self.heard[run] += 1
                turn.say(SendOver(turn.activation, run, True))

    def give_up(self) -> None:
        for run, waiter in list(self.waits.items())[:1]:
            turn = self.turns.get(waiter)
            del self.waits[run]
            if turn is not None:
                turn.say(SendOver(turn.activation, run, False))

    def crash(self) -> None:
        self.hand.crash_registry()
        self.hand.adopt()

    def kill(self) -> None:
        turn = self.any_turn()
        if turn is not None and self.pick.random() < 0.3:
            self.over(turn)
            self.hand.kill(turn.actor)

    # ------------------------------------------------------------------ around it

    def any_turn(self) -> Turn | None:
        return self.pick.choice(list(self.turns.values())) if self.turns else None

    def over(self, turn: Turn) -> None:
        del self.turns[turn.run]
        self.waits = {run: waiter for run, waiter in self.waits.items() if waiter != turn.run}

    def deliver(self) -> None:
        self.hand.grow()
        for start in self.hand.take(Start):
            if start.actor in self.hand.actors:
                before = self.hand.turns.get(start.spec.run)
                self.hand.deliver(start)
                turn = self.hand.turns.get(start.spec.run)
                if turn is not None and turn is not before:
                    self.turns[start.spec.run] = turn
        per_session = Counter(turn.spec.session_key for turn in self.turns.values())
        assert not [key for key, count in per_session.items() if count > 1], "one turn at a time"

    def drain(self) -> None:
        """Let everything end; a message to each session tells it what it has still to hear."""
        for _ in range(600):
            self.step(more=False)
            if not self.turns and not self.hand.sent(Start) and not self.hand.registry.s.queue:
                break
        for name in NAMES:
            self.hand.admit(
                f"last-{name}", session_key=f"agent:{name}:main", session_id=f"s-{name}", route="ask", agent_id=name
            )
        for _ in range(600):
            self.step(more=False)
            if not self.turns and not self.hand.sent(Start) and not self.hand.registry.s.queue:
                break
        self.hand.push()


def played(seed: int) -> Disorder:
    disorder = Disorder(seed)
    for _ in range(60):
        disorder.step(more=True)
    disorder.drain()
    return disorder


@pytest.mark.parametrize("seed", SEEDS)
def test_every_exchange_ends_and_is_heard_of_once(seed: int) -> None:
    disorder = played(seed)
    s = disorder.hand.registry.s
    assert not disorder.turns
    assert s.exchanges == {}
    assert s.news == {}
    assert s.lanes.total == 0
    rows = Counter(row.key for row in disorder.hand.rows if row.key and row.key.startswith("send:"))
    assert set(rows.values()) <= {1}
    unheard = {run for run in disorder.accepted if not disorder.heard[run] and not rows[f"send:v1:{run}"]}
    assert not unheard
    assert max(disorder.heard.values(), default=0) <= 1


def test_without_the_end_of_waits_something_is_left_over() -> None:
    with without(talking.Talking, "left", lambda self, waiter: None):
        assert any(played(seed).hand.registry.s.exchanges for seed in range(12))
