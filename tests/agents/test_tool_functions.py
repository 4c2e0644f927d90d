"""Typed functions as tools: what they say of themselves, how their calls are read, run and answered."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import pytest
from fake_port import FakePort
from turn_drive import Drive

import openclaw_ray as oc
from openclaw_ray.agents.bundle import make_bundle
from openclaw_ray.agents.info import agent_info
from openclaw_ray.agents.tools.decorator import tool_info
from openclaw_ray.testing import LocalRuntime, eventually, run_turn


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is 0 or more")


class Place(TypedDict):
    city: str
    zip: NotRequired[int]


@dataclasses.dataclass
class Endless:
    inner: Endless | None = None


UserId = NewType("UserId", int)

# ---------------------------------------------------------------------- what a signature says


@pytest.mark.parametrize(
    ("annotation", "schema", "good", "bad"),
    [
        (str, {"type": "string"}, [("a", "a")], [1, ["a"]]),
        (int, {"type": "integer"}, [(3, 3), (3.0, 3)], [True, "3", 3.5, float("inf")]),
        (float, {"type": "number"}, [(3, 3.0), (0.5, 0.5)], [True, "3", 10**400]),
        (bool, {"type": "boolean"}, [(True, True)], [1, "true"]),
        (Any, {}, [({"a": 1}, {"a": 1}), (None, None)], []),
        (UserId, {"type": "integer"}, [(3, 3)], ["3"]),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [([1, 2], [1, 2]), ((1,), [1])], ["ab", [1, "b"]]),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}, [(["a"], ["a"])], ["a"]),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}, [(["a"], ("a",))], [{"a": 1}]),
        (list, {"type": "array"}, [([1, "a"], [1, "a"])], [1]),
        (
            dict[str, int],
            {"type": "object", "additionalProperties": {"type": "integer"}},
            [({"a": 1}, {"a": 1})],
            [{1: 1}, {"a": "b"}, [1]],
        ),
        (Mapping[str, Any], {"type": "object"}, [({"a": []}, {"a": []})], ["a"]),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, [(None, None), (1, 1)], ["a"]),
        (
            str | list[str],
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            [("a", "a"), (["a"], ["a"])],
            [1, [1]],
        ),
        (Literal["a", 1, True], {"enum": ["a", 1, True]}, [("a", "a"), (1, 1), (True, True)], ["b", 2, False]),
        (Colour, {"enum": ["red", "blue"]}, [("red", Colour.RED), (Colour.BLUE, Colour.BLUE)], ["RED", 1]),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
                "required": ["x"],
                "additionalProperties": False,
            },
            [({"x": 1}, Point(1.0)), (Point(2.0), Point(2.0))],
            [{"y": 1}, {"x": 1, "z": 2}, {"x": "1"}, {"x": -1}, 7],
        ),
        (
            Place,
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                "required": ["city"],
                "additionalProperties": False,
            },
            [({"city": "Rome"}, {"city": "Rome"})],
            [{"zip": 1}, {"city": 1}],
        ),
    ],
    ids=str,
)
def test_a_type_is_its_schema_and_a_strict_reader(annotation: Any, schema: Any, good: Any, bad: Any) -> None:
    def typed(value: Any) -> None: ...

    typed.__annotations__["value"] = annotation
    signature = tool_info(oc.tool(typed)).signature
    assert signature.schema()["properties"]["value"] == schema
    for given, meant in good:
        read = signature.read({"value": given})["value"]
        assert read == meant
        assert type(read) is type(meant)
    for given in bad:
        with pytest.raises(oc.ToolInputError, match=r"^typed: value"):
            signature.read({"value": given})


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (bytes, "bytes has no form in JSON"),
        (set[str], r"set\[str\] has no form"),
        (tuple[int, str], "has no form in JSON"),
        (dict[int, str], "names of an object's fields are texts"),
        (list[bytes], "bytes has no form"),
        (Endless, "Endless is a part of itself"),
        ("Nowhere", "'Nowhere' does not resolve"),
    ],
    ids=str,
)
def test_a_type_that_json_cannot_say_is_refused_where_it_is_written(annotation: Any, says: str) -> None:
    def typed(value: Any) -> None: ...

    typed.__annotations__["value"] = annotation
    with pytest.raises(oc.ToolSignatureError, match=rf"tool typed: value: .*{says}"):
        oc.tool(typed)


def test_parameters_without_a_type_or_a_name_are_refused() -> None:
    def untyped(a): ...  # type: ignore[no-untyped-def]

    def method(self, a: str) -> None: ...  # type: ignore[no-untyped-def]

    def many(*names: str) -> None: ...

    def by_place(a: str, /) -> None: ...

    for function, says in (
        (untyped, "a: it has no type"),
        (method, "no method"),
        (many, "take a list or a dict"),
        (by_place, "by place alone"),
    ):
        with pytest.raises(oc.ToolSignatureError, match=says):
            oc.tool(function)
    with pytest.raises(TypeError, match="for functions"):
        oc.tool(Point)
    with pytest.raises(ValueError, match="cannot be a tool's name"):
        oc.tool(name="des cribe")(lambda: None)
    with pytest.raises(ValueError, match="and not describe"):
        oc.tool(name="describe")(lambda: None)


@oc.tool
def search(turn: oc.SyncTurn, query: str, limit: Annotated[int, "how many"] = 3, colour: Colour = Colour.RED) -> str:
    """Look for something.

    In all places.

    Args:
        query: what for,
            in words.

    Returns:
        What was found.
    """
    turn.check()
    return f"{query} x{limit} {colour.value} for {turn.session.agent_id}"


def test_a_docstring_is_the_description_and_a_turn_is_not_in_the_schema() -> None:
    signature = tool_info(search).signature
    assert signature.about == "Look for something.\n\nIn all places."
    assert signature.schema() == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what for, in words."},
            "limit": {"type": "integer", "description": "how many", "default": 3},
            "colour": {"enum": ["red", "blue"], "default": "red"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


# ---------------------------------------------------------------------- which tools an agent has


@oc.tool
async def wait_for(turn: oc.Turn, seconds: float) -> dict[str, Any]:
    """Wait."""
    await asyncio.sleep(seconds)
    return {"slept": seconds, "agent": turn.session.agent_id}


@oc.tool
def fails(why: str) -> None:
    raise LookupError(why)


@oc.tool(name="point")
def make_point(at: Point) -> Point:
    return at


@oc.tool
def opaque() -> object:
    return threading.current_thread()


OWN = (search, wait_for, fails, make_point, opaque)


def run(drive: Drive, port: FakePort, body: Any, tools: Any = OWN) -> Any:
    """A body that is to succeed, of an agent with these tools."""
    return drive.ok(body, port, tools=tools)


def test_a_turn_has_its_agents_tools_beside_the_session_tools(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        assert {"search", "point", "subagents"} <= set(turn.tools)
        assert "exec" not in turn.tools
        described = {each["name"]: each for each in turn.tools.describe()}
        assert described["search"]["description"].startswith("Look for")
        assert (await turn.tools.search(query="cats", limit=2)).value == "cats x2 red for worker"
        assert (await turn.call("search", query="a", colour="blue"))["text"] == "a x3 blue for worker"

    run(drive, port, body)


def test_a_name_that_is_taken_is_refused_with_both_origins() -> None:
    @oc.tool(name="search")
    def other(query: str) -> str:
        return query

    with pytest.raises(oc.DuplicateTool, match=r"'search' stands for two tools: .*:search .* and .*other"):
        oc.agent(tools=[search, other])
    with pytest.raises(oc.DuplicateTool, match="the built-in tool exec"):
        oc.agent(tools=[oc.tool(name="Exec")(lambda: None)])
    with pytest.raises(oc.DuplicateTool, match="another name of the built-in tool exec"):
        oc.agent(tools=[oc.tool(name="bash")(lambda: None)])
    with pytest.raises(ValueError, match="there are edit, exec, process, read, write"):
        oc.agent(tools=["browser"])
    with pytest.raises(ValueError, match="is there without being named"):
        oc.agent(tools=["subagents"])
    with pytest.raises(TypeError, match="is no tool: decorate the function with @tool"):
        oc.agent(tools=[Point])
    with pytest.raises(oc.DuplicateTool):

        class Reviewer(oc.Agent):
            tools = (search, other)


def test_the_same_tool_twice_is_one_and_a_class_lists_its_own() -> None:
    class Reviewer(oc.Agent):
        tools = (search, search, "read")

    assert agent_info(Reviewer).tools == (search, "read")


def test_tools_count_in_an_agents_identity() -> None:
    def made(*tools: Any) -> Any:
        @oc.agent(id="w", tools=tools)
        def w(turn: oc.SyncTurn) -> None: ...

        return w

    [plain], [read], [again] = (make_bundle([made(*tools)]).agents for tools in ((), ("read",), ("read",)))
    assert plain.hash != read.hash == again.hash
    assert read.tools == ("read",)
    with pytest.raises(oc.DuplicateAgent):
        make_bundle([made(search), made(fails)])


# ---------------------------------------------------------------------- calls


def test_a_call_that_is_wrong_does_nothing(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        for params, says in (
            ({}, "search: query: it is required: a text"),
            ({"query": 1}, "search: query: it is a text, not 1"),
            ({"query": None}, "search: query: it is required"),
            ({"query": "a", "limt": 1}, "search: limt: there is no such parameter; did you mean limit"),
            ({"query": "a", "turn": 1}, "search: turn: there is no such parameter"),
        ):
            with pytest.raises(oc.ToolInputError, match=says):
                await turn.call("search", **params)
        with pytest.raises(oc.ToolInputError, match=r"point: at\.x: it is a number, not 'a'"):
            await turn.call("point", at={"x": "a"})

    run(drive, port, body)
    assert port.rows == []


def test_what_a_tool_returns_is_a_result_and_a_row(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        waited = await turn.tools.wait_for(seconds=0)
        assert (waited["slept"], waited["agent"], waited.ok) == (0.0, "worker", True)
        point = await turn.tools.point(at={"x": 1})
        assert point.value == Point(1.0)
        assert point.to_json() == {"value": {"x": 1.0, "y": 0.0}}
        thing = await turn.tools.opaque()
        assert set(thing.to_json()) == {"text"}
        assert json.dumps(thing.to_json())

    run(drive, port, body)
    rows = [json.loads(row.text) for row in port.rows]
    assert [(row["tool"], row["status"]) for row in rows] == [("wait_for", "ok"), ("point", "ok"), ("opaque", "ok")]
    assert rows[0]["params"] == {"seconds": 0}


def test_what_a_tool_raises_is_raised_as_its_failure_and_stays_in_the_transcript(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(oc.ToolFailed) as caught:
            await turn.tools.fails(why="no such thing")
        assert (caught.value.tool, caught.value.kind, caught.value.message) == ("fails", "LookupError", "no such thing")
        assert isinstance(caught.value.__cause__, LookupError)

    run(drive, port, body)
    [row] = port.rows
    assert json.loads(row.text) == {
        "tool": "fails",
        "params": {"why": "no such thing"},
        "status": "error",
        "text": "LookupError: no such thing",
    }


def test_rows_are_bounded(drive: Drive, port: FakePort) -> None:
    @oc.tool
    def echo(text: str) -> str:
        return text

    async def body(turn: Any) -> None:
        assert len((await turn.tools.echo(text="x" * 100_000))["text"]) == 100_000

    run(drive, port, body, [echo])
    assert len(port.rows[0].text) < 3_000


@pytest.mark.parametrize("drive", ["async"], indirect=True)
def test_a_plain_tool_of_an_async_turn_does_not_block_its_loop(drive: Drive) -> None:
    inside, go = threading.Event(), threading.Event()

    @oc.tool
    def block() -> str:
        inside.set()
        assert go.wait(10)
        return threading.current_thread().name

    async def body(turn: Any) -> str:
        call = asyncio.ensure_future(turn.tools.block())
        while not inside.is_set():
            await asyncio.sleep(0)
        go.set()
        name: str = (await call).value
        return name

    assert drive.ok(body, FakePort(), tools=[block]).outcome.text == "tool block"


@pytest.mark.parametrize("drive", ["async"], indirect=True)
def test_a_stop_ends_an_async_turn_though_its_plain_tool_goes_on(drive: Drive, port: FakePort) -> None:
    go, ended = threading.Event(), threading.Event()

    @oc.tool
    def deaf() -> None:
        port.cancel()
        go.wait(10)
        ended.set()

    async def body(turn: Any) -> None:
        await turn.tools.deaf()

    done = drive(body, port, tools=[deaf])
    assert not ended.is_set()
    assert done.outcome.state == "cancelled"
    assert json.loads(port.rows[0].text)["status"] == "cancelled"
    go.set()
    assert ended.wait(10)


def test_a_stop_cancels_an_async_tool_in_either_turn(drive: Drive, port: FakePort) -> None:
    seen = []

    @oc.tool
    async def slow() -> None:
        port.cancel()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def body(turn: Any) -> None:
        await turn.tools.slow()

    assert drive(body, port, tools=[slow]).outcome.state == "cancelled"
    assert seen == ["cancelled"]
    assert json.loads(port.rows[0].text)["status"] == "cancelled"


def test_a_tool_uses_the_turn_of_its_own_kind_whatever_the_turn_is(drive: Drive, port: FakePort) -> None:
    @oc.tool
    def plainly(turn: oc.SyncTurn, n: int) -> int:
        turn.state["n"] = n
        return len(turn.history())

    @oc.tool
    async def awaiting(turn: oc.Turn) -> int:
        turn.state["more"] = turn.state["n"] + 1
        return len(await turn.history())

    async def body(turn: Any) -> None:
        await turn.tools.plainly(n=1)
        await turn.tools.awaiting()
        assert turn.state == {"n": 1, "more": 2}

    run(drive, port, body, [plainly, awaiting])


@pytest.mark.parametrize("waits", [False, True])
def test_a_tool_may_end_the_turn_to_wait_for_children(drive: Drive, port: FakePort, waits: bool) -> None:
    @oc.tool
    def plainly(turn: oc.SyncTurn) -> None:
        turn.spawn("x")
        turn.yield_("later")

    @oc.tool
    async def awaiting(turn: oc.Turn) -> None:
        await turn.spawn("x")
        turn.yield_("later")

    async def body(turn: Any) -> None:
        await turn.call("awaiting" if waits else "plainly")
        raise AssertionError("the turn goes on")

    assert run(drive, port, body, [plainly, awaiting]).yielded
    assert json.loads(port.rows[0].text)["status"] == "yielded"


def test_a_tool_with_ray_options_runs_plainly_without_ray(drive: Drive, port: FakePort) -> None:
    @oc.tool(ray={"num_cpus": 0.5, "resources": {"licence": 1}})
    def elsewhere(n: int) -> int:
        return n + 1

    @oc.tool(ray={})
    async def async_elsewhere(n: int) -> int:
        await asyncio.sleep(0)
        return n + 2

    async def body(turn: Any) -> None:
        assert (await turn.tools.elsewhere(n=1)).value == 2
        assert (await turn.tools.async_elsewhere(n=1)).value == 3

    run(drive, port, body, [elsewhere, async_elsewhere])
    assert port.log[0] == "task elsewhere {'num_cpus': 0.5, 'resources': {'licence': 1}}"


def test_ray_options_are_checked_where_they_are_written() -> None:
    for options, says in (
        ({"cpus": 1}, "there is no option 'cpus'"),
        ({"num_cpus": "1"}, "number of 0 or more"),
        ({"resources": {"a": "b"}}, "names to amounts"),
        ([1], "is a dict"),
    ):
        with pytest.raises(TypeError, match=says):
            oc.tool(name="elsewhere", ray=options)(lambda: None)  # type: ignore[arg-type]
    with pytest.raises(oc.ToolSignatureError, match="is given none"):

        @oc.tool(ray={"num_cpus": 1})
        def elsewhere(turn: oc.SyncTurn) -> None: ...


# ---------------------------------------------------------------------- doubles


@oc.agent(id="finder", tools=[search, fails])
def finder(turn: oc.SyncTurn) -> str:
    return str(turn.tools.search(query=turn.text)["text"])


def test_run_turn_calls_tools_and_can_answer_for_them() -> None:
    assert run_turn(finder, "cats").result.text == "cats x3 red for finder"
    assert run_turn(finder, "cats", tools={"search": "none"}).result.text == "none"
    ran = run_turn(finder, "cats", tools={"search": lambda query: query.upper()})
    assert ran.result.text == "CATS"
    assert json.loads(ran.rows[0]["text"])["params"] == {"query": "cats"}
    failed = run_turn(finder, "cats", tools={"search": TimeoutError("no net")}).result.error
    assert failed is not None
    assert (failed.type, failed.message) == ("ToolFailed", "tool search raised TimeoutError: no net")
    with pytest.raises(TypeError, match="no such tool; there are agents_list, fails"):
        run_turn(finder, "cats", tools={"serch": ""})


def test_tools_travel_with_their_agent_and_a_stop_ends_their_wait() -> None:
    with LocalRuntime(agents=[finder, sleeper]) as rt:
        assert rt.ask("finder", "dogs").text == "dogs x3 red for finder"
        receipt = rt.spawn("x", "sleeper")
        eventually(lambda: receipt.session_key in {r["sessionKey"] for r in rt.runs() if r["state"] == "running"})
        assert rt.stop(receipt.session_key).stopped == 1
        assert rt.result(receipt).status == "cancelled"


@oc.agent(id="sleeper", tools=[wait_for])
def sleeper(turn: oc.SyncTurn) -> None:
    turn.tools.wait_for(seconds=60)
