"""The simulator finds the fault when a rule of PROTOCOL.md 1 or 2 (up and down) is taken out.

Not here: 1.7 and the thread of 1.1 are the shell's (`tests/ray`); that one message is in flight per receiver (2.1) is
to save calls and changes nothing that a program sees; the journal's and the hub's own rules are in `tests/store`
and `test_hubstate`. With the classes driven by hand, rule by rule: `tests/core/rules`.
"""

from __future__ import annotations

from typing import Any

import pytest
from simulated_rules import Rule, check, directed, hunt, setup

from openclaw_ray.core.protocol.activation import Activation
from openclaw_ray.core.protocol.clients import Clients
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.hubstate import HubState
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import Completed
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import State
from openclaw_ray.testing.simulator import (
    Fault,
    FaultKind,
    Hang,
    Join,
    Meddling,
    Plan,
    Schedule,
    Spawn,
    Stop,
    Use,
    Weather,
    Work,
)
from openclaw_ray.testing.simulator.talker import Talker

_commit, _take, _tell = State.commit, HubState.take, Down.tell
_short, _long = Plan(((Work(0.01),),)), Plan(((Work(0.3),),))
_one = (Spawn((1,)), Join())


def commit_or_not(self: State) -> Any:
    """Go on as if a commit that failed had been one."""
    try:
        return _commit(self)
    except JournalFault:
        effects, self.effects = tuple(self.effects), []
        return effects


def forget_what_is_taken(self: HubState, client: str, incarnation: int, cursor: int) -> Any:
    """Take the answer to a poll for its acknowledgement."""
    taken = _take(self, client, incarnation, cursor)
    if taken:
        self._queues[client].messages.clear()
    return taken


def say_it_under_a_new_number(self: Talker, step: Any) -> None:
    """No answer: the same words in a new step."""
    if self.courier.in_flight is step:
        self.courier.in_flight = None
        for event in step.events:
            self.courier.post(event)
        self.pump()


def tell_clients_no_ends(self: Down, receiver: str, message: Any) -> None:
    """Completions of clients go nowhere."""
    found = self.s.receivers.get(receiver)
    if found is None or found.actor or not isinstance(message, Completed):
        _tell(self, receiver, message)


def a_step_loses_its_answer() -> list[Schedule]:
    """The step that reports usage runs, and its answer is lost."""
    plan = Plan(((Work(0.02), Use(7), Work(0.1)),))
    return [
        schedule
        for nth in (2, 3, 4)
        for schedule in directed(
            {1: plan}, _one, meddling=[Meddling("step", nth=nth, sender="session", lose_answer=True)]
        )()
    ]


def the_registry_dies_between() -> list[Schedule]:
    """It dies after one commit or another, before it has done anything about it."""
    return [
        schedule
        for nth in range(5, 14)
        for schedule in directed({1: _long}, _one, faults=[Fault(FaultKind.BETWEEN, nth=nth)])()
    ]


def the_answer_to_resume_is_lost() -> list[Schedule]:
    """The slot is granted in the step that asks for it, whose answer is lost."""
    plans = {1: Plan(((Spawn((2,)), Join(), Work(0.1)),)), 2: _long}
    return [
        schedule
        for nth in range(3, 14)
        for schedule in directed(
            plans, _one, meddling=[Meddling("step", nth=nth, sender="session", lose_answer=True)]
        )()
    ]


RULES = [
    Rule(
        "1.1 one step is in flight",
        ((Courier, "idle", lambda self: True),),
        hunt(Weather.CALM),
        ("everything ends",),
    ),
    Rule(
        "1.2 the same step gives the same answer",
        ((Registry, "_is_repeat", lambda self, client, step: False),),
        a_step_loses_its_answer,
        ("usage counts once",),
    ),
    Rule(
        "1.2 the answer follows the commit",
        ((State, "commit", commit_or_not),),
        lambda: (
            schedule
            for n in range(2, 12)
            for schedule in directed({1: _long}, _one, faults=[Fault(FaultKind.COMMIT, nth=n)])()
        ),
    ),
    Rule(
        "1.5 a recovering registry is asked again",
        ((Courier, "is_final", staticmethod(lambda answer: True)),),
        directed(
            {1: Plan(((Work(5.0),),)), 2: _short},
            (Spawn((1,)), Work(0.8), Spawn((2,)), Join()),
            faults=[Fault(FaultKind.REGISTRY, at=0.5), Fault(FaultKind.SILENCE, at=0.45, lasts=8.0)],
        ),
        ("everything ends",),
    ),
    Rule(
        "1.6 no answer: the same step again, under the same number",
        ((Talker, "_repeat", say_it_under_a_new_number),),
        a_step_loses_its_answer,
        ("usage counts once",),
    ),
    Rule(
        "2.2 messages are repeated until got",
        ((Down, "due", lambda self, now: None),),
        the_answer_to_resume_is_lost,
        ("everything ends",),
    ),
    Rule(
        "2.2 what was seen is dropped",
        ((Courier, "first_heard", lambda self, run: True),),
        hunt(Weather.CALM, Weather.REGISTRY),
        ("each message once",),
    ),
    Rule(
        "2.2 the answer to a poll is no acknowledgement",
        ((HubState, "take", forget_what_is_taken),),
        directed({1: _long}, _one, meddling=[Meddling("poll", nth=2, lose_answer=True)]),
        ("everything ends",),
    ),
    Rule(
        "2.3 a new registry says anew what follows from state",
        ((Crew, "say_again", lambda self: None),),
        the_registry_dies_between,
        ("everything ends",),
    ),
    Rule(
        "2.4 a handle may be stale: a stop names the activation",
        ((Activation, "runs", lambda self, activation: self.spec is not None),),
        directed(
            {1: _long, 2: Plan(((Work(1.0),),))},
            (Spawn((1, 2)), Work(0.9), Stop(0, wait=True)),
            on=setup(pool_max=1, max_spawn_depth=1, prewarm=1),
            meddling=[Meddling("poll", nth=2, delay=1.5)],
        ),
        ("only a stop cancels",),
    ),
    Rule(
        "2.5 a client that is silent is given up",
        ((Clients, "silent", lambda self, client: None),),
        directed({1: Plan(((Hang(),),))}, _one, faults=[Fault(FaultKind.CLIENT, at=1.0)]),
        ("everything ends",),
    ),
    Rule(
        "2.5 a client that dies while the hub is away is missed",
        ((HubState, "expect", lambda self, client, now: None),),
        directed(
            {1: Plan(((Hang(),),))},
            _one,
            faults=[Fault(FaultKind.CLIENT, at=1.0), Fault(FaultKind.HUB, at=1.1)],
        ),
        ("everything ends",),
    ),
    Rule(
        "2.1, 4.4 c: a client hears of an end over its downlink",
        ((Down, "tell", tell_clients_no_ends),),
        directed({1: _short}, _one),
        ("everything ends",),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.number)
def test_a_schedule_needs_the_rule(rule: Rule) -> None:
    check(rule)
