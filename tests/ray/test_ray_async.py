"""`AsyncRuntime`: the same as `Runtime`, in programs with a loop (DESIGN.md 7)."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import ray
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.core.errors import AskTimeout, JoinTimeout, PickleRefused, RuntimeClosed, UnknownAgent
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


@pytest.fixture(autouse=True, scope="module")
def _by_value() -> Iterator[None]:
    """What actors are given here is not on their paths."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def with_client(rt: oc.Runtime, work: Callable[[oc.AsyncRuntime], Awaitable[Any]]) -> Any:
    """Run ``work`` in a loop of its own with a client of its own; no thread of it is left."""

    async def run() -> Any:
        async with oc.AsyncRuntime.connect(rt.name) as client:
            return await work(client)

    answer = asyncio.run(run())
    eventually(lambda: not ours(), 10, what="no thread of an async client is left")
    return answer


def ours() -> list[str]:
    names = ("openclaw-async", "openclaw-opening", "openclaw-closing")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(names)]


def test_it_has_the_names_and_options_of_the_other_one() -> None:
    def surface(cls: type) -> dict[str, list[str]]:
        names = [name for name in dir(cls) if not name.startswith("_")]
        return {
            name: list(inspect.signature(member).parameters) if callable(member := getattr(cls, name)) else []
            for name in names
        }

    assert surface(oc.AsyncRuntime) == surface(oc.Runtime)


def test_work_and_looking(rt: oc.Runtime) -> None:
    async def work(client: oc.AsyncRuntime) -> None:
        receipt = await client.spawn("hello", "echo")
        result = await client.result(receipt)
        assert (result.text, (await client.result(receipt)).text) == ("hello", "hello")
        assert (await client.ask("look_around", "hello")).value["kind"] == "message"
        assert [r.text for r in await client.map("echo", ["a", "b", "c"])] == ["a", "b", "c"]
        came = [r.text async for r in client.imap("echo", ["a", "b", "c"], ordered=False)]
        assert sorted(came) == ["a", "b", "c"]
        tries = [await client.map("echo", ["a"], map_id="async") for _ in range(2)]
        assert [results[0].reused for results in tries] == [False, True]
        assert [row["text"] for row in await client.runs(root=client.root_key, agent="echo")].count("hello") == 1
        assert await client.sessions(root=client.root_key, agent="echo")
        rows = await client.history(result.session_key)
        assert rows[-1]["text"] == "hello"
        assert (await client.stats()).sessions_started > 0
        assert client.name == rt.name
        assert client.state_dir == rt.state_dir
        with pytest.raises(UnknownAgent):
            await client.map("nobody", ["x"])
        with pytest.raises(ValueError, match="transcripts is"):
            client.imap("echo", ["x"], transcripts="some")  # type: ignore[arg-type]
        with pytest.raises(oc.SpawnError):
            await client.ask("agent:no:such", "x")
        with pytest.raises(PickleRefused, match=r"use Runtime\.connect\("):
            pickle.dumps(client)

    with_client(rt, work)


def test_a_hundred_waits_take_no_threads_and_a_stop_ends_them(rt: oc.Runtime, gate: Gate) -> None:
    async def work(client: oc.AsyncRuntime) -> None:
        receipt = await client.spawn("wait", "hold", input=str(gate.place))
        await asyncio.to_thread(gate.wait_for, 1)
        before = threading.active_count()
        waits = [asyncio.create_task(client.result(receipt)) for _ in range(100)]
        given_up = [asyncio.create_task(client.result(receipt)) for _ in range(100)]
        await asyncio.sleep(0)
        for wait in given_up:
            wait.cancel()
        assert {type(e) for e in await asyncio.gather(*given_up, return_exceptions=True)} == {asyncio.CancelledError}
        assert threading.active_count() <= before
        with pytest.raises(JoinTimeout):
            await client.result(receipt, timeout=0.01)
        assert (await client.stop(receipt.session_key, timeout=20)).stopped == 1
        assert {r.status for r in await asyncio.gather(*waits)} == {oc.ResultStatus.CANCELLED}

    with_client(rt, work)


def test_events_and_the_result_of_another_clients_run(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)

    async def work(client: oc.AsyncRuntime) -> None:
        async def ended() -> str:
            async for event in client.events():
                if event.run_id == receipt.run_id and event.state == "succeeded":
                    return str(event.kind)
            return "closed"

        watching = asyncio.create_task(ended())
        other = asyncio.create_task(client.result(receipt, timeout=60))
        with pytest.raises(JoinTimeout):
            await client.result(receipt, timeout=0.1)
        gate.open()
        assert (await other).text == "through"
        assert await asyncio.wait_for(watching, 30) == "run"

    with_client(rt, work)
    assert rt.result(receipt).text == "through"


def test_an_ask_that_is_given_up_is_not_kept(rt: oc.Runtime, gate: Gate) -> None:
    async def work(client: oc.AsyncRuntime) -> None:
        with pytest.raises(AskTimeout) as caught:
            await client.ask("asked_hold", str(gate.place), timeout=0.2)
        given_up = asyncio.create_task(client.ask("asked_hold", str(gate.place)))
        await asyncio.to_thread(gate.wait_for, 1)
        async with asyncio.timeout(30):
            while len(await client.runs(session="agent:asked_hold:main", state=["queued", "running"])) < 2:
                await asyncio.sleep(0.01)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        gate.open()
        end = client._sync._client.requester.completion(caught.value.run_id)  # type: ignore[attr-defined]
        await client._waits.outcome(end, 30)
        client._sync._client.requester.consume((caught.value.run_id,))  # type: ignore[attr-defined]
        async with asyncio.timeout(20):
            while client._sync._client.requester._ends:
                await asyncio.sleep(0.01)

    with_client(rt, work)


def test_a_spawn_that_is_given_up_leaves_no_child(rt: oc.Runtime, gate: Gate) -> None:
    async def work(client: oc.AsyncRuntime) -> str:
        given_up = asyncio.create_task(client.spawn("wait", "hold", input=str(gate.place)))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        while not (rows := await client.runs(root=client.root_key, agent="hold", state="cancelled")):
            await asyncio.sleep(0.01)
        return str(rows[0]["state"])

    assert with_client(rt, work) == "cancelled"


@pytest.mark.parametrize("way", ["break", "cancel", "raise"])
def test_leaving_a_stream_early_stops_what_is_un_ended(rt: oc.Runtime, gate: Gate, way: str) -> None:
    async def work(client: oc.AsyncRuntime) -> None:
        async def some() -> None:
            items = [("x", 0), *[(str(gate.place), number) for number in range(50)]]
            async for result in client.imap("gate_or_go", items, width=3):
                assert result.text == "went"
                if way == "break":
                    break
                if way == "raise":
                    raise LookupError

        async def left() -> bool:
            rows = await client.runs(root=client.root_key, agent="gate_or_go", state=["queued", "running"])
            return not rows

        task = asyncio.create_task(some())
        if way == "cancel":
            await asyncio.to_thread(gate.wait_for, 1)
            task.cancel()
        [ended] = await asyncio.gather(task, return_exceptions=True)
        kinds = {"break": type(None), "cancel": asyncio.CancelledError, "raise": LookupError}
        assert type(ended) is kinds[way]
        async with asyncio.timeout(30):
            while not await left():
                await asyncio.sleep(0.01)
        assert len(await client.runs(root=client.root_key, agent="gate_or_go", limit=100)) < 20

    with_client(rt, work)


def test_items_may_come_from_an_async_iterable(rt: oc.Runtime) -> None:
    async def source(count: int, fail: bool = False) -> AsyncIterator[str]:
        for number in range(count):
            await asyncio.sleep(0.001)
            yield f"item {number}"
        if fail:
            raise LookupError("the source broke")

    async def work(client: oc.AsyncRuntime) -> None:
        assert [r.text for r in await client.map("echo", source(30), width=4)] == [f"item {n}" for n in range(30)]
        with pytest.raises(LookupError, match="the source broke"):
            await client.map("echo", source(3, fail=True))

    with_client(rt, work)


def test_closing_ends_the_waits(rt: oc.Runtime, gate: Gate) -> None:
    async def work() -> None:
        client = await oc.AsyncRuntime.connect(rt.name)
        receipt = await client.spawn("wait", "hold", input=str(gate.place))
        waiting = asyncio.create_task(client.result(receipt))
        watching = asyncio.create_task(anext(client.events()))
        await asyncio.to_thread(gate.wait_for, 1)
        await client.close()
        await client.close()
        with pytest.raises(RuntimeClosed):
            await waiting
        with pytest.raises(RuntimeClosed):
            await client.spawn("x", "echo")
        with pytest.raises(RuntimeClosed):
            await client.stats()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(work())
    eventually(lambda: not ours(), 10, what="no thread of an async client is left")


class Server:
    """An async actor of a host's."""

    async def serve(self, name: str) -> list[Any]:
        async with oc.AsyncRuntime.connect(name) as client:
            first = await asyncio.gather(*(client.ask("remembering", "count") for _ in range(5)))
            texts = [r.text async for r in client.imap("echo", ["a", "b"])]
            try:
                await client.ask("remembering", "fail")
            except oc.RunFailed as error:
                texts.append(type(error).__name__)
            return [len({r.value for r in first}), texts]


def test_in_an_async_actor(rt: oc.Runtime) -> None:
    server = ray.remote(num_cpus=0)(Server).remote()
    assert ray.get(server.serve.remote(rt.name), timeout=60) == [5, ["a", "b", "RunFailed"]]
    ray.kill(server)


@pytest.mark.long
def test_it_starts_a_ray_that_outlives_the_thread_that_started_it() -> None:
    """Ray's processes would end with that thread."""
    answer = run_program(
        """
        import asyncio, itertools, json, threading
        import agents
        import openclaw_ray as oc
        config = {"ray": {"pool": {"prewarm": 1, "max": 8}}}

        async def served():
            async with oc.AsyncRuntime.start(agents=[agents.echo], config=config) as rt:
                opening = [t for t in threading.enumerate() if t.name == "openclaw-opening"]
                await asyncio.to_thread(lambda: [t.join(20) for t in opening])  # it ends, and Ray stays
                names = [t.name for t in threading.enumerate()]
                try:
                    await asyncio.wait_for(rt.map("echo", itertools.repeat("x"), width=2), 0.5)
                except TimeoutError:
                    pass
                return names, [r.text for r in await rt.map("echo", ["a", "b"])]

        names, texts = asyncio.run(served())
        import ray
        for thread in threading.enumerate():
            if thread.name.startswith("openclaw"):
                thread.join(20)
        left = [t.name for t in threading.enumerate() if t.name.startswith("openclaw")]
        print(json.dumps([texts, ray.is_initialized(), "openclaw-opening" in names, left]))
        """
    ).answer()
    assert answer == [["a", "b"], False, False, []]
