"""Messages between sessions in seeded schedules: the invariants of `TalkWatch`, and that each of them can break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from simulated_rules import expect_broken, having

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol import message_run, negotiation, registry, talking
from openclaw_ray.core.protocol.messages import TAKEN, Verdict
from openclaw_ray.core.protocol.negotiation import Move
from openclaw_ray.testing.simulator import Schedule, Weather, run_schedule
from openclaw_ray.testing.simulator.plans import Plan, Program, Send, Take, Work
from openclaw_ray.testing.simulator.setup import Setup


@pytest.mark.parametrize("weather", list(Weather))
def test_every_message_is_handled_once_and_heard_of_once_in_any_weather(weather: Weather) -> None:
    outlines = [run_schedule(schedule) for schedule in having("Send(", weather, 20)]
    assert sum(outline.messages for outline in outlines) > 40
    assert sum(outline.replies for outline in outlines) > 3
    assert sum(outline.turns_of_replies for outline in outlines) > 3
    assert sum(outline.heard_later for outline in outlines) > 3


def test_a_running_turn_takes_what_steers_and_the_rest_is_a_turn_after_it() -> None:
    """Three messages to a busy session: the one that steers overtakes the others, and has no turn of its own."""
    plans = {1: Plan(((Work(0.05), Take(0.5)),)), 2: Plan(((Work(0.01),),)), 3: Plan(((Work(0.01),),))}
    client = (
        Send("worker", 1),
        Work(0.02),
        Send("worker", 2),
        Send("worker", 3, mode="steer"),
        Send("worker", 2, 5.0),
    )
    outline = run_schedule(Schedule(1, Program(plans, (client,)), Setup()), looks=1.0)
    assert (outline.messages, outline.steered, outline.replies, outline.turns) == (4, 1, 1, 3)
    assert set(outline.states.values()) == {RunState.SUCCEEDED}


# ---------------------------------------------------------------------- each of them can break

Instead = tuple[object, str, Any]


def _takes_and_leaves(s: Any, ending: Any, event: Any) -> Verdict:
    """The turn gets the message, and the message its turn all the same."""
    return Verdict(event.message, TAKEN, RunState.QUEUED)


def _first_in(*args: Any, **more: Any) -> Any:
    """The newest message is the next one."""
    run = _MESSAGE_RUN(*args, **more)
    session = args[1]
    if run.id in session.waiting:
        session.waiting.insert(0, session.waiting.pop())
    return run


def _never_heard(self: Any, event: Any) -> None:
    exchange = self.s.exchanges.get(event.send)
    if exchange is not None and exchange.waiter == event.receiver:
        self._unwait(exchange)


def _one_more(phase: Any, turns: int, limit: int, left: int, said: Any) -> Move:
    return negotiation.next_move(phase, turns, limit + 1, left, said)


_MESSAGE_RUN: Callable[..., Any] = message_run.message_run


@pytest.mark.parametrize(
    ("instead", "rule"),
    [
        ((registry, "take_steered", _takes_and_leaves), "a message is handled once"),
        ((talking, "message_run", _first_in), "each sender's messages in order"),
        ((talking.Talking, "send_over", _never_heard), "a requester hears once"),
        ((talking, "next_move", _one_more), "turns of replies are bounded"),
    ],
)
def test_without_its_rule_an_invariant_breaks(instead: Instead, rule: str) -> None:
    expect_broken(instead, rule, having("Send(", Weather.CALM, 400))
