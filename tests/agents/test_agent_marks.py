"""``@agent`` and `Agent`: ids, settings, shapes."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fake_port import FakePort, make_spec

from openclaw_ray.agents import Agent, SyncTurn, Turn, agent
from openclaw_ray.agents.bundle import make_bundle
from openclaw_ray.agents.info import AgentInfo, agent_info, is_async
from openclaw_ray.agents.run_turn import TurnRunner


def test_a_bare_decorator_takes_the_name_of_the_function() -> None:
    @agent
    def Count_Words(turn: SyncTurn) -> None: ...

    assert agent_info(Count_Words) == AgentInfo("count_words", False, True, False)


def test_the_function_stays_what_it_was() -> None:
    def worker(turn: Any) -> str:
        return f"did {turn}"

    marked = agent(id="w-1", resumable=True, spawns=False, follow_up=True)(worker)
    assert marked is worker
    assert marked("it") == "did it"
    assert agent_info(marked) == AgentInfo("w-1", True, False, True)


def test_async_functions_are_told_from_plain_ones_through_decorators() -> None:
    @agent
    async def one(turn: Turn) -> None: ...

    @functools.wraps(one)
    def two(turn: Turn) -> Any:
        return one(turn)

    assert is_async(one)
    assert is_async(two)
    assert not is_async(lambda turn: None)


@pytest.mark.parametrize("bad", ["", "Worker", "-a", "_a", "a b", "a/b", "é", "x" * 65, "a\n", 7])
def test_an_id_that_cannot_be_one_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="cannot be an agent id"):

        @agent(id=bad)
        def worker(turn: SyncTurn) -> None: ...


def test_a_name_that_cannot_be_an_id_asks_for_one() -> None:
    with pytest.raises(ValueError, match="id=…"):

        @agent
        def _private(turn: SyncTurn) -> None: ...


def test_shapes_that_cannot_be_agents_are_refused() -> None:
    def generator(turn: SyncTurn) -> Iterator[int]:
        yield 1

    def no_turn() -> None: ...

    class Klass: ...

    for thing, said in (
        (generator, "generator"),
        (no_turn, "one argument"),
        (Klass, "subclasses Agent"),
        (functools.partial(no_turn), "partial"),
        (print, "builtin"),
    ):
        with pytest.raises(TypeError, match=said):
            agent(thing)


def test_a_class_has_its_name_as_id_and_asks_for_follow_ups() -> None:
    class Reviewer(Agent):
        resumable = True

    assert agent_info(Reviewer) == AgentInfo("reviewer", True, True, True)


def test_a_class_with_on_resume_is_resumable_and_so_is_what_inherits_it() -> None:
    class Careful(Agent):
        def on_resume(self, turn: SyncTurn) -> str:
            return "resumed"

    class Heir(Careful): ...

    class Without(Careful):
        resumable = False

    assert [agent_info(each).resumable for each in (Careful, Heir, Without)] == [True, True, False]


def test_what_a_class_says_of_its_turns_is_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.on_resume cannot be called with self and one argument, the turn"):

        class Wrong(Agent):
            def on_resume(self) -> None: ...  # type: ignore[override]

    with pytest.raises(TypeError, match="is a generator"):

        class Generator(Agent):
            def on_turn(self, turn: SyncTurn) -> Iterator[int]:
                yield 1

    with pytest.raises(TypeError, match="resumable is True or False, not 'yes'"):

        class Vague(Agent):
            resumable = "yes"  # type: ignore[assignment]

    with pytest.raises(TypeError, match="has an on_resume, and resumable = False"):

        class Torn(Agent):
            resumable = False

            def on_resume(self, turn: SyncTurn) -> None: ...

    with pytest.raises(TypeError, match=r"@agent\(resumable=…\) is True or False, not 1"):
        agent(resumable=1)  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_the_turn_of_an_interrupted_run_is_led_to_on_resume(runner: TurnRunner, kind: str) -> None:
    class OfSync(Agent):
        id = "worker"

        async def on_turn(self, turn: Turn) -> str:
            return f"turn {turn.kind}"

        def on_resume(self, turn: SyncTurn) -> str:
            assert isinstance(turn, SyncTurn)
            return f"resumed {turn.text}"

    class OfAsync(Agent):
        id = "worker"

        def on_turn(self, turn: SyncTurn) -> str:
            return f"turn {turn.kind}"

        async def on_resume(self, turn: Turn) -> str:
            assert isinstance(turn, Turn)
            return f"resumed {turn.text}"

    made = {"sync": OfSync, "async": OfAsync}[kind]
    assert runner.run(make_spec(kind="resume", text="go on"), made, FakePort()).outcome.text == "resumed go on"
    assert runner.run(make_spec(kind="task"), made, FakePort()).outcome.text == "turn task"


def test_without_one_of_its_own_the_turn_goes_to_on_turn(runner: TurnRunner) -> None:
    class Plain(Agent):
        id = "worker"
        resumable = True

        async def on_turn(self, turn: Turn) -> str:
            return f"turn {turn.kind}"

    assert runner.run(make_spec(kind="resume"), Plain, FakePort()).outcome.text == "turn resume"


def test_a_bundle_keeps_what_is_resumable() -> None:
    class Careful(Agent):
        def on_resume(self, turn: SyncTurn) -> None: ...

    @agent(resumable=True)
    def marked(turn: SyncTurn) -> None: ...

    @agent
    def plain(turn: SyncTurn) -> None: ...

    bundle = make_bundle([Careful, marked, plain])
    assert {code.id: code.resumable for code in bundle.agents} == {"careful": True, "marked": True, "plain": False}


def test_a_subclass_of_an_agent_is_another_agent() -> None:
    class Base(Agent):
        id = "base-agent"
        spawns = False

    class Special(Base):
        follow_up = False

    assert agent_info(Base).id == "base-agent"
    assert agent_info(Special) == AgentInfo("special", False, False, False)


def test_instances_and_undecorated_functions_are_refused_with_the_remedy() -> None:
    class Reviewer(Agent): ...

    def plain(turn: SyncTurn) -> None: ...

    for thing, said in (
        (Reviewer(), "the class Reviewer"),
        (plain, "decorate"),
        (Agent, "subclass"),
        ("worker", "decorate"),
    ):
        with pytest.raises(TypeError, match=said):
            agent_info(thing)


def test_importing_agents_brings_nothing_heavy() -> None:
    code = (
        "import sys, openclaw_ray.agents, openclaw_ray.agents.run_turn, openclaw_ray.agents.hygiene, "
        "openclaw_ray.agents.bundle\n"
        "heavy = {'ray', 'numpy', 'pydantic', 'psutil', 'click', 'rich', 'sqlite3'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
