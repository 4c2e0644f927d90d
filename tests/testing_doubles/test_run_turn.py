"""`run_turn`: one turn, its children made up by the test."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import run_turn


@dataclass(frozen=True)
class Paper:
    title: str


@oc.agent
async def lead(turn: oc.Turn) -> str:
    turn.progress("asking", 0, 1)
    await turn.spawn("find sources", agent_id="finder", label="search")
    [found] = await turn.join()
    turn.state["asked"] = turn.state.get("asked", 0) + 1
    turn.add_usage(input_tokens=5)
    turn.append("system", "one source")
    return f"{turn.text}: {found.text}"


@oc.agent(id="sync_lead")
def sync_lead(turn: oc.SyncTurn) -> str:
    turn.spawn("find sources", agent_id="finder")
    return turn.join()[0].text


class Counts(oc.Agent):
    async def on_turn(self, turn: oc.Turn) -> str:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        return turn.kind


@oc.agent
def yields(turn: oc.SyncTurn) -> str:
    if turn.kind == "task":
        turn.spawn("a", agent_id="finder")
        turn.state["waits"] = True
        turn.yield_("waiting")
    return f"{turn.state['waits']}: {[done.text for done in turn.completions]}"


@oc.agent
def mapper(turn: oc.SyncTurn) -> list[Any]:
    return [result.value if result.ok else result.status.value for result in turn.map("worker", turn.input)]


# ---------------------------------------------------------------------- what it gives


def test_it_gives_the_result_the_spawns_the_state_and_what_else_the_turn_did() -> None:
    ran = run_turn(lead, "go", children={"finder": "three papers"}, state={"asked": 1})
    assert ran.result.text == "go: three papers"
    assert ran.result.ok
    [request] = ran.spawned
    assert (request.task, request.agent_id, request.label) == ("find sources", "finder", "search")
    assert ran.state == {"asked": 2}
    assert ran.rows == ({"role": "system", "text": "one source"},)
    assert [(said.text, said.done, said.total) for said in ran.progress] == [("asking", 0, 1)]
    assert ran.usage == oc.Usage(input_tokens=5)
    assert not ran.yielded
    assert ran.unheard == ()


def test_a_plain_function_and_a_class_run_the_same_way() -> None:
    assert run_turn(sync_lead, children={"finder": "found"}).result.text == "found"
    ran = run_turn(Counts, state={"turns": 4})
    assert (ran.result.text, ran.state) == ("task", {"turns": 5})


def test_it_works_within_an_async_test() -> None:
    async def test() -> Any:
        return run_turn(lead, "go", children={"finder": "x"}).result.text

    assert asyncio.run(test()) == "go: x"


def test_a_turn_that_raises_gives_a_failed_result_and_the_state_as_it_was() -> None:
    @oc.agent
    def fails(turn: oc.SyncTurn) -> None:
        turn.state["half"] = True
        raise ValueError("no")

    ran = run_turn(fails, state={"before": 1})
    assert ran.state == {"before": 1}
    with pytest.raises(oc.RunFailed, match="no"):
        ran.result.raise_for_status()


def test_a_returned_value_is_a_copy_and_one_that_cannot_be_pickled_fails() -> None:
    kept: list[Any] = []

    @oc.agent
    def gives(turn: oc.SyncTurn) -> Any:
        kept.append([Paper("a")])
        return kept[0]

    assert run_turn(gives).result.value == kept[0]
    assert run_turn(gives).result.value is not kept[0]

    @oc.agent
    def cannot(turn: oc.SyncTurn) -> Any:
        return (x for x in "ab")

    error = run_turn(cannot).result.error
    assert error is not None
    assert error.type == "Unpicklable"


def test_a_large_value_comes_whole() -> None:
    @oc.agent
    def large(turn: oc.SyncTurn) -> bytes:
        return bytes(200_000)

    assert run_turn(large).result.value == bytes(200_000)


def test_the_turn_sees_input_history_and_session_as_given() -> None:
    @oc.agent
    async def looks(turn: oc.Turn) -> dict[str, Any]:
        rows = await turn.history()
        return {
            "text": turn.text,
            "input": turn.input,
            "index": turn.index,
            "rows": [row["text"] for row in rows],
            "session": [turn.session.key, turn.session.depth, turn.session.role, turn.session.label],
        }

    ran = run_turn(
        looks,
        input=[1, 2],
        index=3,
        history=[("user", "before"), ("assistant", "answer")],
        session={"key": "agent:looks:main", "depth": 0, "role": "main", "label": "title"},
    )
    assert ran.result.value == {
        "text": "[1, 2]",
        "input": [1, 2],
        "index": 3,
        "rows": ["before", "answer"],
        "session": ["agent:looks:main", 0, "main", "title"],
    }
    assert ran.result.session_key == "agent:looks:main"
    with pytest.raises(TypeError, match="no field 'dept'; there are attachments, context"):
        run_turn(looks, session={"dept": 1})


def test_a_turn_sees_what_its_session_was_given() -> None:
    @oc.agent
    def looks(turn: oc.SyncTurn) -> Any:
        return [turn.session.model, turn.session.thinking, turn.session.cwd, turn.session.attachments]

    given = {"model": "a/b", "thinking": "low", "cwd": "/w", "attachments": ["/f/a.txt"]}
    assert run_turn(looks, "go", session=given).result.value == ["a/b", "low", "/w", ("/f/a.txt",)]


# ---------------------------------------------------------------------- children


def test_a_task_text_goes_before_an_agent_id_and_a_function_is_given_the_request() -> None:
    @oc.agent
    async def asks(turn: oc.Turn) -> list[str]:
        for task in ("a", "b"):
            await turn.spawn(task, agent_id="finder")
        return [done.text for done in await turn.join()]

    children = {"b": "only b", "finder": lambda request: f"{request.agent_id} did {request.task}"}
    assert run_turn(asks, children=children).result.value == ["finder did a", "only b"]


@pytest.mark.parametrize("answer", [ValueError("broken"), lambda request: int("x"), ZeroDivisionError])
def test_a_child_that_raises_has_failed(answer: Any) -> None:
    @oc.agent
    def asks(turn: oc.SyncTurn) -> Any:
        turn.spawn("a", agent_id="finder")
        [done] = turn.join()
        assert done.result.text is None
        return [done.result.status.value, done.result.error.type]  # type: ignore[union-attr]

    status, kind = run_turn(asks, children={"finder": answer}).result.value
    assert status == "error"
    assert kind in ("ValueError", "ZeroDivisionError")


def test_a_result_counts_as_it_is() -> None:
    ran = run_turn(mapper, input=[1], children={"worker": oc.Result(status=oc.ResultStatus.TIMEOUT)})
    assert ran.result.value == ["timeout"]


def test_the_items_of_a_map_are_spawns() -> None:
    ran = run_turn(mapper, input=[1, 2, 3], children={"worker": lambda request: request.input * 10})
    assert ran.result.value == [10, 20, 30]
    assert [(request.route, request.index, request.input) for request in ran.spawned] == [
        ("map", 0, 1),
        ("map", 1, 2),
        ("map", 2, 3),
    ]


def test_a_spawn_can_be_refused() -> None:
    @oc.agent
    def asks(turn: oc.SyncTurn) -> str:
        try:
            turn.spawn("a", agent_id="finder")
        except oc.SpawnForbidden as error:
            return f"refused: {error.receipt.limit}"
        return "accepted"

    refusal = oc.SpawnForbidden(oc.Receipt("forbidden", error="too deep", limit="maxSpawnDepth"))
    assert run_turn(asks, children={"finder": refusal}).result.text == "refused: maxSpawnDepth"


def test_the_first_of_two_is_taken_and_the_other_stopped() -> None:
    @oc.agent
    def first(turn: oc.SyncTurn) -> str:
        for task in ("a", "b"):
            turn.spawn(task, agent_id="finder")
        return turn.join(until="first")[0].text

    ran = run_turn(first, children={"finder": lambda request: request.task})
    assert ran.result.text == "a"
    assert len(ran.spawned) == 2


def test_a_yielded_turn_goes_on_in_a_wake_turn() -> None:
    ran = run_turn(yields, children={"finder": "found"})
    assert (ran.yielded, ran.result.text, ran.state) == (True, "waiting", {"waits": True})
    assert [done.text for done in ran.unheard] == ["found"]
    woken = run_turn(yields, completions=ran.unheard, state=ran.state)
    assert (woken.yielded, woken.result.text, woken.unheard) == (False, "True: ['found']", ())


# ---------------------------------------------------------------------- what a test must hear of


def test_an_unexpected_spawn_is_an_assertion_that_names_task_and_remedy() -> None:
    with pytest.raises(AssertionError) as raised:
        run_turn(lead, "go", children={"writer": "text"})
    text = str(raised.value)
    assert "task \"find sources\" of agent 'finder'" in text
    assert "children=… answers 'writer'; add 'finder': …" in text


def test_an_unexpected_spawn_is_heard_of_even_if_the_agent_swallows_it() -> None:
    @oc.agent
    def swallows(turn: oc.SyncTurn) -> str:
        try:
            turn.spawn("a", agent_id="finder")
        except AssertionError:
            return "nothing happened"
        return "spawned"

    with pytest.raises(AssertionError, match="does not expect"):
        run_turn(swallows)
    with pytest.raises(AssertionError, match="does not expect"):
        run_turn(mapper, input=[1, 2])


def test_an_assertion_in_an_answer_is_the_tests_own() -> None:
    def answer(request: Any) -> str:
        assert request.label == "other", "wrong label"
        return "x"

    with pytest.raises(AssertionError, match="wrong label"):
        run_turn(lead, children={"finder": answer})


def test_an_agent_is_no_answer() -> None:
    with pytest.raises(AssertionError, match="LocalRuntime runs whole trees"):
        run_turn(lead, children={"finder": sync_lead})


def test_what_is_no_agent_is_refused() -> None:
    def plain(turn: Any) -> None: ...

    with pytest.raises(TypeError, match="decorate the function with @agent"):
        run_turn(plain)


def test_state_that_json_cannot_hold_is_found() -> None:
    with pytest.raises(TypeError, match="spot"):
        run_turn(Counts, state={"spot": {1}})
    with pytest.raises(oc.StateTooLarge):
        run_turn(Counts, state={"big": "x" * 70_000})


@oc.agent
def lists_tools(turn: oc.SyncTurn) -> list[str]:
    with contextlib.suppress(oc.ToolDenied):
        turn.call("agents_list")
        raise AssertionError("a sub-agent does not have it")
    return list(turn.tools)


def test_tools_are_those_of_such_a_session_where_nothing_is_configured() -> None:
    looks = ["sessions", "sessions_history", "sessions_list"]
    assert run_turn(lists_tools).result.value == [*looks, "sessions_spawn", "sessions_yield", "subagents"]
    leaf: list[str] = run_turn(lists_tools, session={"role": "leaf"}).result.value
    assert leaf == ["sessions", "sessions_yield"]
