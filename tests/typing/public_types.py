"""What type checkers make of the public names; read by mypy alone, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, assert_type

import openclaw_ray as oc


@oc.agent
def worker(turn: oc.SyncTurn) -> str:
    assert_type(turn.spawn("x", agent_id="worker"), oc.Receipt)
    assert_type(turn.join(until="first", timeout=1.0), list[oc.Completion])
    assert_type(turn.map("worker", ["x"], timeout=2.0), list[oc.Result[Any]])
    assert_type(turn.completions, tuple[oc.Completion, ...])
    assert_type(turn.session, oc.SessionView)
    assert_type(turn.state, dict[str, Any])
    assert_type([event.completion for event in turn.events], list[oc.Completion | None])
    assert_type(turn.auth.get("anthropic"), oc.Credential)
    assert_type(turn.auth.get("anthropic").secret, str)
    turn.auth.failed("anthropic:default", cooldown=60, reason="rate_limit")
    turn.spawn(7)  # type: ignore[arg-type]
    return turn.text


@oc.agent(id="other", resumable=True, spawns=False, follow_up=True)
async def other(turn: oc.Turn) -> oc.Result[int]:
    receipt = await turn.spawn("x")
    assert_type(receipt.accepted, bool)
    assert_type(receipt.run_id, str)
    assert_type(receipt.error, str | None)
    assert_type(await turn.join(receipt), list[oc.Completion])
    assert_type(await turn.map("worker", range(3)), list[oc.Result[Any]])
    assert_type(await turn.auth.get("anthropic", "anthropic:work"), oc.Credential)
    await turn.auth.succeeded("anthropic:work")
    turn.join().sort()  # type: ignore[attr-defined]
    return oc.Result(value=3)


# a decorated function stays what it was
plain: Callable[[oc.SyncTurn], str] = worker
wrong: Callable[[oc.SyncTurn], int] = worker  # type: ignore[assignment]
oc.agent(resumable="yes")  # type: ignore[call-overload]


class Reviewer(oc.Agent):
    resumable = True

    async def on_turn(self, turn: oc.Turn) -> str:
        return turn.text

    def on_resume(self, turn: oc.SyncTurn) -> None:
        assert_type(turn.index, int | None)


@oc.tool
def search(turn: oc.SyncTurn, query: str, limit: int = 3) -> list[str]:
    return [query] * limit


@oc.tool(name="measure", ray={"num_cpus": 2, "resources": {"licence": 1}})
async def measure_it(n: int) -> int:
    return n


# so does a tool, which a test may call
found: Callable[[oc.SyncTurn, str, int], list[str]] = search
later: Callable[[int], Awaitable[int]] = measure_it
oc.tool(name=7)  # type: ignore[call-overload]
oc.tool(rays={})  # type: ignore[call-overload]
oc.agent(tools=[7])  # type: ignore[list-item]


@oc.agent(tools=[search, measure_it, "read", "exec"])
def with_tools(turn: oc.SyncTurn) -> None:
    assert_type(turn.tools.search(query="x"), oc.ToolResult)
    assert_type(turn.call("exec", command="ls").error, str | None)
    assert_type(turn.tools.search(query="x").value, Any)
    search(turn, 7)  # type: ignore[arg-type]


class WithTools(oc.Agent):
    tools = [search, "write"]  # noqa: RUF012

    async def on_turn(self, turn: oc.Turn) -> None:
        assert_type(await turn.tools.write(path="a", content="b"), oc.ToolResult)


def misspelt() -> None:
    oc.Runtim  # type: ignore[attr-defined]  # noqa: B018


class Animal: ...


class Dog(Animal): ...


def results(dog: oc.Result[Dog], text: oc.Result[str]) -> None:
    assert_type(dog.value, Dog | None)
    assert_type(dog.raise_for_status(), oc.Result[Dog])
    assert_type(dog.raise_for_status().value, Dog | None)
    assert_type(dog.error, oc.ErrorInfo | None)
    assert_type(dog.status, oc.ResultStatus)
    assert_type(dog.usage, oc.Usage)
    animal: oc.Result[Animal] = dog  # a result gives, and never takes
    narrow: oc.Result[Dog] = animal  # type: ignore[assignment]
    assert_type(oc.Result(value="x"), oc.Result[str])
    text.value.upper()  # type: ignore[union-attr]
    dog.text = "x"  # type: ignore[misc]
    print(narrow)


def program(rt: oc.Runtime, receipt: oc.Receipt) -> None:
    assert_type(oc.Runtime.start(agents=[worker, Reviewer], config={"ray": {}}), oc.Runtime)
    assert_type(oc.Runtime.connect("name"), oc.Runtime)
    assert_type(rt.spawn("x", "worker", input=[1]), oc.Receipt)
    assert_type(rt.ask("worker", "x"), oc.Result[Any])
    typed: oc.Result[int] = rt.result(receipt)
    many: list[oc.Result[int]] = rt.map("worker", [1, 2], on_error="raise", transcripts="failed")
    assert_type(rt.imap("worker", iter("abc"), ordered=False), Iterator[oc.Result[Any]])
    assert_type(rt.events(), Iterator[oc.Event])
    assert_type(rt.stop("key"), oc.StopReport)
    assert_type(rt.stats(), oc.RuntimeStats)
    rt.map("worker", [1], transcripts="some")  # type: ignore[arg-type]
    oc.Runtime.start(if_exists="join")  # type: ignore[arg-type]
    print(typed, many)


async def program_with_a_loop(receipt: oc.Receipt) -> None:
    assert_type(await oc.AsyncRuntime.start(agents=[worker]), oc.AsyncRuntime)
    async with oc.AsyncRuntime.connect("name") as rt:
        assert_type(rt, oc.AsyncRuntime)
        assert_type(await rt.spawn("x"), oc.Receipt)
        assert_type(await rt.ask("worker", "x"), oc.Result[Any])
        typed: oc.Result[int] = await rt.result(receipt)
        many: list[oc.Result[int]] = await rt.map("worker", [1, 2])
        async for result in rt.imap("worker", numbers()):
            assert_type(result, oc.Result[Any])
        async for event in rt.events():
            assert_type(event, oc.Event)
        assert_type(await rt.stop("key"), oc.StopReport)
        rt.spawn("x").accepted  # type: ignore[attr-defined]  # noqa: B018
        print(typed, many)


async def numbers() -> AsyncIterator[int]:
    yield 1
