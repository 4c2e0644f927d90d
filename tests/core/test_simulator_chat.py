"""Conversations of users in seeded schedules: the invariants of `ThreadWatch`, and that each of them can break."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from simulated_rules import directed, expect_broken, having, setup

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol import rebinding, threads
from openclaw_ray.core.protocol.messages import Unbind
from openclaw_ray.core.protocol.thread_record import Thread, ThreadState
from openclaw_ray.testing.simulator import Schedule, Weather, run_schedule
from openclaw_ray.testing.simulator.chat import Chat as Channel
from openclaw_ray.testing.simulator.plans import Ask, Chat, Join, Plan, Program, Rebind, Serve, Spawn, Work


@pytest.mark.parametrize("weather", list(Weather))
def test_every_word_goes_to_one_session_and_every_answer_is_said_once_in_any_weather(weather: Weather) -> None:
    outlines = [run_schedule(schedule) for schedule in having("Serve(", weather, 12)]
    assert sum(outline.words for outline in outlines) > 8
    assert sum(outline.answers for outline in outlines) > 5
    assert sum(outline.bindings for outline in outlines) > 12
    assert sum(outline.unbound for outline in outlines) > 3


def test_words_go_to_the_child_while_its_conversation_is_bound_and_to_the_main_session_after_that() -> None:
    plans = {1: Plan(((Work(0.01),),)), 2: Plan(((Work(0.01),),))}
    client = (
        Serve(),
        Spawn((1,), thread="session"),
        Chat(1, 2),
        Work(0.2),
        Rebind("focus", 0, 0),
        Chat(0, 2),
        Work(0.2),
        Rebind("unfocus", 1),
        Rebind("unfocus", 0),
        Work(0.2),
        Chat(1, 2),
        Chat(0, 2),
        Work(0.3),
        Join(),
    )
    outline = run_schedule(Schedule(3, Program(plans, (client,)), setup()), looks=1.0)
    assert (outline.words, outline.answers) == (4, 5), "the child's own end is said, too"
    assert set(outline.states.values()) == {RunState.SUCCEEDED}


def test_a_client_opens_sessions_of_its_own_which_rest_between_messages() -> None:
    plans = {1: Plan(((Work(0.01),),))}
    asks = tuple(Ask("worker", 1, 60.0, name) for name in ("one", "two", "one", "direct:42"))
    outline = run_schedule(Schedule(4, Program(plans, (asks, asks)), setup()), looks=1.0)
    assert set(outline.states.values()) == {RunState.SUCCEEDED}
    assert len(outline.states) == 8


def test_without_its_rule_a_stop_misses_a_child_that_is_being_bound() -> None:
    plans = {1: Plan(((Work(0.01),),))}
    client = (Serve(), Spawn((1, 1, 1), thread="run"), Join())
    soon = list(directed(plans, client, on=setup(patience=0.004), seeds=10)())
    for schedule in soon:
        run_schedule(schedule, looks=1.0)
    instead = (threads.Threads, "stopped", lambda self, keys: None)
    expect_broken(instead, "nothing asked for before a stop is born after it", soon)


# ---------------------------------------------------------------------- each of them can break

Instead = tuple[object, str, Any]


def _whose_it_was(self: Any, client: Any, agent: str, admit: Any) -> Any:
    """Whose a conversation was when somebody spoke there first."""
    firsts = self.__dict__.setdefault("firsts", {})
    return firsts.setdefault(admit.conversation, _HEARD(self, client, agent, admit))


def _said_after_all(self: Any, run: Any) -> None:
    """What a run comes to is said whether the conversation is its session's or not."""
    thread = self.s.threads.get(run.post)
    if thread is not None:
        thread.say(run.id, threads.answer_text(run.state, run.outcome), self.s.clock.wall())
        self._changed(thread)


def _bound_beside(self: Any, thread: Any) -> None:
    """A conversation is given to the next one without being taken from this one."""


def _said_again(self: Any, message: Any) -> bool:
    self._posted.clear()
    return _HEAR(self, message)


def _told_in_front(self: Any, thread: Any) -> Any:
    """The end is told before what is still to be said."""
    found = _DUE(self, thread)
    if thread.state is ThreadState.ENDING and thread.posts:
        found.insert(0, ("unbind", Unbind(thread.id, thread.conversation, thread.session, thread.why)))
    return found


_HEAR: Callable[..., bool] = Channel.hear
_DUE: Callable[..., Any] = threads.Threads._due
_HEARD: Callable[..., Any] = threads.Threads.heard


@pytest.mark.parametrize(
    ("instead", "rule"),
    [
        ((threads.Threads, "heard", _whose_it_was), "a word goes to whose the conversation is"),
        ((threads.Threads, "ended", _said_after_all), "nothing is said after an unbinding"),
        ((threads.Threads, "_due", _told_in_front), "nothing is said after an unbinding"),
        ((rebinding.Rebinding, "_give_up", _bound_beside), "a conversation is one session's"),
        ((Channel, "hear", _said_again), "an answer is said once"),
        ((Thread, "say", lambda self, run, text, now: None), "an answer is said where it was asked"),
    ],
)
def test_without_its_rule_an_invariant_breaks(instead: Instead, rule: str) -> None:
    weathers = (Weather.CALM, Weather.REGISTRY, Weather.HOSTILE)
    expect_broken(instead, rule, chain.from_iterable(having("Serve(", weather, 60) for weather in weathers))
