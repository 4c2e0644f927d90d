"""``@agent`` and `Agent`: ids, settings, shapes."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from openclaw_ray.agents import Agent, SyncTurn, Turn, agent
from openclaw_ray.agents.info import AgentInfo, agent_info, is_async


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
