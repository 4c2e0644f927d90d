"""`turn.map`: items become children, their ends become results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from fake_port import FakePort, make_spec
from turn_drive import Drive

from openclaw_ray.agents import Turn
from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.core.errors import RunFailed, SpawnError, SpawnForbidden
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.mapping import BACK_PRESSURE
from openclaw_ray.core.results import Receipt, Result


def shout(request: SpawnRequest) -> Result[Any]:
    return Result(text=request.task.upper(), run_id="r")


def texts(results: list[Result[Any]]) -> list[str | None]:
    return [result.text for result in results]


def test_a_map_gives_the_results_in_order_of_the_items(drive: Drive, port: FakePort) -> None:
    port.run = shout

    async def body(turn: Any) -> None:
        results = await turn.map("shouter", (letter for letter in "abcdefghijklmnopqrstuvwxyz"))
        assert texts(results) == list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        assert [result.index for result in results] == list(range(26))

    drive.ok(body, port)
    assert {(request.route, request.agent_id, request.expects) for request in port.requests} == {
        ("map", "shouter", False)
    }
    assert len(set(port.consumed)) == 26
    assert port.summaries == ["map of shouter: 26 items ended: 26 ok"]
    assert port.pauses == port.resumes == 1


def test_results_come_in_order_although_the_ends_do_not(drive: Drive, port: FakePort) -> None:
    def courier() -> None:
        for number in (3, 1, 2):
            port.settle(f"run-{number}", str(number))

    port.on_pause = [courier]

    async def body(turn: Any) -> None:
        assert texts(await turn.map("w", "abc")) == ["1", "2", "3"]

    drive.ok(body, port)


def test_no_more_than_width_children_are_asked_for_at_once(drive: Drive, port: FakePort) -> None:
    port.hold = True
    sizes: list[int] = []

    def courier() -> None:
        while len(port.requests) < 5 or port.held:
            assert port.asked.wait(10)
            port.asked.clear()
            sizes.append(len(port.held))
            port.answer_held()

    port.run = shout
    port.thread(courier)

    async def body(turn: Any) -> None:
        assert len(await turn.map("w", "abcde", width=2)) == 5

    drive.ok(body, port)
    assert max(sizes) == 2


def test_the_default_width_is_eight(drive: Drive, port: FakePort) -> None:
    def courier() -> None:
        assert len(port.requests) == 8
        port.run = shout
        for number in range(1, 9):
            port.settle(f"run-{number}")

    port.on_pause = [courier]

    async def body(turn: Any) -> None:
        assert len(await turn.map("w", ["x"] * 20)) == 20

    drive.ok(body, port)


def test_an_empty_map_gives_nothing_and_does_not_pause(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        assert await turn.map("w", []) == []

    drive.ok(body, port)
    assert port.pauses == 0


def test_text_items_are_tasks_and_others_are_inputs(drive: Drive, port: FakePort) -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    port.run = shout
    shy = Shy()

    async def body(turn: Any) -> None:
        await turn.map("w", ["text", {"n": 1}, None, shy, list(range(9_999))], timeout=3)

    drive.ok(body, port)
    given = sorted(port.requests, key=lambda request: request.index or 0)
    assert [request.has_input for request in given] == [False, True, True, True, True]
    assert [request.task for request in given[:3]] == ["text", "{'n': 1}", "None"]
    assert given[3].input is shy
    assert "Shy" in given[3].task
    assert len(given[4].task) <= 200
    assert {request.timeout for request in given} == {3}


def test_an_item_that_cannot_be_asked_for_is_an_error_in_its_place(drive: Drive, port: FakePort) -> None:
    port.run = shout

    async def body(turn: Any) -> None:
        good, empty, large = await turn.map("w", ["a", "", "x" * (2 << 20)])
        assert good.ok
        assert (empty.status, empty.error.type) == ("error", "InvalidItem")
        assert empty.error.message.startswith("item 1:")
        assert (large.status, large.error.type) == ("error", "TaskTooLarge")

    drive.ok(body, port)
    assert port.summaries == ["map of w: 3 items ended: 2 error, 1 ok"]


@pytest.mark.parametrize("on_error", ["collect", "raise"])
@pytest.mark.parametrize(
    ("status", "kind", "limit", "maximum"),
    [
        ("forbidden", SpawnForbidden, "allowAgents", None),
        ("forbidden", SpawnForbidden, "maxSpawnDepth", 1),
        ("forbidden", SpawnForbidden, BACK_PRESSURE, 0),
        ("error", SpawnError, "agentId", None),
    ],
)
def test_a_map_whose_first_item_a_rule_refuses_raises_it(
    drive: Drive,
    port: FakePort,
    on_error: str,
    status: str,
    kind: type[SpawnError | SpawnForbidden],
    limit: str,
    maximum: int | None,
) -> None:
    port.answer = lambda request: Receipt(status, error="w may not be named", limit=limit, maximum=maximum)

    async def body(turn: Any) -> None:
        with pytest.raises(kind, match="w may not be named"):
            await turn.map("w", "abcdefghijkl", retries=2, on_error=on_error)

    drive.ok(body, port)
    assert port.consumed == []


def test_a_refusal_after_something_was_started_is_an_error_in_its_place(drive: Drive, port: FakePort) -> None:
    port.run = shout
    port.answer = lambda request: (
        Receipt("forbidden", error="agent w is not allowed", limit="allowAgents") if request.task == "b" else None
    )

    async def body(turn: Any) -> None:
        first, second, third = await turn.map("w", "abc", retries=2)
        assert (first.text, third.text) == ("A", "C")
        assert (second.status, second.text, second.error.type) == ("error", None, "SpawnForbidden")

    drive.ok(body, port)
    assert len(port.requests) == 3


def test_a_failed_item_is_run_again(drive: Drive, port: FakePort) -> None:
    def flaky(request: SpawnRequest) -> Result[Any]:
        return shout(request) if len(port.requests) > 2 else Result(status=ResultStatus.ERROR)

    port.run = flaky

    async def body(turn: Any) -> None:
        assert texts(await turn.map("w", ["a"], retries=2)) == ["A"]

    drive.ok(body, port)
    assert len(port.requests) == 3


def test_the_children_cap_is_waited_out(drive: Drive, port: FakePort) -> None:
    cap = 2

    def answer(request: SpawnRequest) -> Receipt | None:
        unsettled = [child for child in port.children() if not port.completion(child.run_id).done()]
        if len(unsettled) >= cap:
            return Receipt("forbidden", error="full", limit=BACK_PRESSURE, value=cap, maximum=cap)
        return None

    port.answer = answer

    def courier() -> None:
        done = 0
        while done < 6:
            for child in port.children():
                if not port.completion(child.run_id).done():
                    port.settle(child.run_id, child.run_id)
                    done += 1

    port.on_pause = [courier]

    async def body(turn: Any) -> None:
        results = await turn.map("w", "abcdef", width=4)
        assert [result.ok for result in results] == [True] * 6

    drive.ok(body, port)


def test_a_map_whose_places_are_all_taken_waits_for_other_children(drive: Drive, port: FakePort) -> None:
    def answer(request: SpawnRequest) -> Receipt | None:
        if request.route == "map" and not port.completion("run-1").done():
            return Receipt("forbidden", error="full", limit=BACK_PRESSURE, value=1, maximum=1)
        return None

    port.answer = answer
    port.run = lambda request: shout(request) if request.route == "map" else None
    port.on_pause = [lambda: port.settle("run-1", "the other")]

    async def body(turn: Any) -> None:
        await turn.spawn("other")
        assert texts(await turn.map("w", ["a"])) == ["A"]
        assert [done.text for done in await turn.join()] == ["the other"]

    drive.ok(body, port)


def test_a_map_that_nobody_can_make_room_for_tries_again_by_itself(drive: Drive, port: FakePort) -> None:
    def answer(request: SpawnRequest) -> Receipt | None:
        if len(port.requests) < 3:
            return Receipt("forbidden", error="full", limit=BACK_PRESSURE, value=1, maximum=1)
        return None

    port.answer = answer
    port.run = shout

    async def body(turn: Any) -> None:
        assert texts(await turn.map("w", ["a"])) == ["A"]

    drive.ok(body, port)


def test_on_error_raise_stops_the_others_and_raises(drive: Drive, port: FakePort) -> None:
    port.on_pause = [lambda: port.settle("run-2", status=ResultStatus.ERROR)]

    async def body(turn: Any) -> None:
        with pytest.raises(RunFailed):
            await turn.map("w", "abcde", width=3, on_error="raise")
        assert await turn.join() == []

    drive.ok(body, port)
    assert sorted(port.stopped) == ["run-1", "run-3"]
    assert sorted(port.consumed) == ["run-1", "run-2", "run-3"]
    assert len(port.requests) == 3
    assert port.pauses == port.resumes == 1
    assert port.summaries == ["map of w: 1 items ended: 1 error"]


def test_a_run_accepted_after_the_map_has_failed_is_stopped_too(drive: Drive, port: FakePort) -> None:
    port.run = lambda request: Result(status=ResultStatus.ERROR) if request.task == "a" else None

    port.hold = True

    async def body(turn: Any) -> None:
        port.on_pause = [lambda: answer_one(port)]
        with pytest.raises(RunFailed):
            await turn.map("w", "ab", on_error="raise")
        assert port.stopped == []
        port.answer_held()
        assert port.stopped == ["run-2"]

    drive.ok(body, port)


def answer_one(port: FakePort) -> None:
    """Answer the first of the held spawns only."""
    later = port.held[1:]
    del port.held[1:]
    port.answer_held()
    port.held += later


def test_what_the_items_raise_stops_the_children_and_is_raised(drive: Drive, port: FakePort) -> None:
    def items() -> Iterator[str]:
        yield "a"
        yield "b"
        raise OSError("the disk is gone")

    port.on_pause = [lambda: port.settle("run-1")]

    async def body(turn: Any) -> None:
        with pytest.raises(OSError, match="disk"):
            await turn.map("w", items(), width=2)

    drive.ok(body, port)
    assert port.stopped == ["run-2"]
    assert port.pauses == port.resumes == 1


def test_a_completion_that_cannot_be_had_is_a_lost_result(drive: Drive, port: FakePort) -> None:
    port.on_pause = [lambda: port.completion("run-1").set_exception(OSError("its process died"))]

    async def body(turn: Any) -> None:
        (result,) = await turn.map("w", ["a"])
        assert (result.status, result.error.message) == ("lost", "its process died")

    drive.ok(body, port)


def test_a_map_that_the_agent_gives_up_stops_its_children_and_no_others(port: FakePort) -> None:
    async def main() -> None:
        turn = Turn(make_spec(), port)
        await turn.spawn("other")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await turn.map("w", "ab")
        assert sorted(port.stopped) == ["run-2", "run-3"]
        assert port.pauses == port.resumes == 1

    asyncio.run(main())


def test_the_width_is_checked_before_anything_is_asked_for(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ValueError, match="width"):
            await turn.map("w", "ab", width=0)

    drive.ok(body, port)
    assert port.requests == []
