"""`turn.join`: what it waits for, gives back, consumes and leaves alone."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from fake_port import FakePort, make_spec
from turn_drive import Drive

from openclaw_ray.agents import SyncTurn, Turn
from openclaw_ray.core.errors import JoinTimeout
from openclaw_ray.core.results import Receipt


def runs(completions: list[Any]) -> list[str]:
    return [completion.run_id for completion in completions]


def test_a_join_without_children_returns_at_once(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        assert await turn.join() == []
        assert await turn.join([]) == []
        assert await turn.join(until="first") == []

    drive.ok(body, port)
    assert port.pauses == 0


def test_a_join_waits_for_all_children_and_gives_them_in_order_of_birth(drive: Drive, port: FakePort) -> None:
    def courier() -> None:
        for run_id in ("run-2", "run-3", "run-1"):
            port.settle(run_id)

    port.on_pause = [courier]

    async def body(turn: Any) -> None:
        for task in "abc":
            await turn.spawn(task)
        assert runs(await turn.join()) == ["run-1", "run-2", "run-3"]
        assert await turn.join() == []

    drive.ok(body, port)
    assert port.consumed == ["run-1", "run-2", "run-3"]


def test_a_join_that_waits_gives_the_slot_back_and_has_one_again_before_it_returns(
    drive: Drive, port: FakePort
) -> None:
    port.on_pause = [lambda: port.settle("run-1")]

    async def body(turn: Any) -> None:
        await turn.spawn("a")
        await turn.join()

    drive.ok(body, port)
    assert port.log == ["spawn", "pause", "resume", "consume run-1"]


def test_a_join_returns_only_when_the_slot_is_there(drive: Drive, port: FakePort) -> None:
    port.hold_resume = True
    granted: list[str] = []

    def courier() -> None:
        port.asked.clear()
        port.settle("run-1")
        assert port.asked.wait(10)
        granted.append("granted")
        port.grant()

    port.on_pause = [courier]

    async def body(turn: Any) -> None:
        await turn.spawn("a")
        await turn.join()
        assert granted == ["granted"]

    drive.ok(body, port)


def test_a_join_of_what_has_settled_does_not_pause(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        receipt = await turn.spawn("a")
        port.settle("run-1", "early")
        (done,) = await turn.join(receipt)
        assert done.text == "early"

    drive.ok(body, port)
    assert port.pauses == 0


def test_a_join_of_named_children_leaves_the_others(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        one, two, three = [await turn.spawn(task) for task in "abc"]
        for number in (1, 2, 3):
            port.settle(f"run-{number}")
        assert runs(await turn.join([three, one, three])) == ["run-1", "run-3"]
        assert runs(await turn.join()) == ["run-2"]
        assert runs(await turn.join([two])) == ["run-2"]

    drive.ok(body, port)


def test_children_of_earlier_turns_are_joined_first(drive: Drive, port: FakePort) -> None:
    port.born("old-1", "old-2")

    async def body(turn: Any) -> None:
        receipt = await turn.spawn("a")
        for run_id in ("run-1", "old-2", "old-1"):
            port.settle(run_id)
        assert runs(await turn.join([receipt])) == ["run-1"]
        assert runs(await turn.join()) == ["old-1", "old-2"]

    drive.ok(body, port)


def test_what_cannot_be_joined_is_refused(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(TypeError, match="str"):
            await turn.join(["run-1"])
        with pytest.raises(ValueError, match="no room"):
            await turn.join([Receipt("forbidden", error="no room")])
        with pytest.raises(ValueError, match="some"):
            await turn.join(until="some")

    drive.ok(body, port)


def test_a_child_that_nobody_hears_of_is_not_joined(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        receipt = await turn.spawn("a", expects_completion_message=False)
        assert await turn.join() == []
        with pytest.raises(ValueError, match="expects_completion_message"):
            await turn.join([receipt])

    drive.ok(body, port)


@pytest.mark.parametrize("timeout", [-0.1, math.nan])
def test_a_timeout_that_is_no_duration_is_refused(drive: Drive, port: FakePort, timeout: float) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ValueError, match="timeout"):
            await turn.join(timeout=timeout)

    drive.ok(body, port)


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_join_that_times_out_names_the_unsettled_and_consumes_nothing(
    drive: Drive, port: FakePort, timeout: float
) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("a")
        await turn.spawn("b")
        port.settle("run-1")
        with pytest.raises(JoinTimeout) as caught:
            await turn.join(timeout=timeout)
        assert caught.value.unsettled == ("key-run-2",)
        assert caught.value.seconds == timeout
        assert port.consumed == []
        assert port.pauses == port.resumes <= (1 if timeout else 0)
        port.settle("run-2")
        assert len(await turn.join()) == 2

    drive.ok(body, port)


def test_a_child_that_is_joined_again_and_again_is_watched_once(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("a")
        for _ in range(5):
            with pytest.raises(JoinTimeout):
                await turn.join(timeout=0.001)
        assert len(port.completion("run-1")._done_callbacks) == 1
        port.on_pause = [lambda: port.settle("run-1")]
        assert len(await turn.join()) == 1

    drive.ok(body, port)


def test_until_first_gives_the_first_alone_and_stops_and_consumes_the_others(drive: Drive, port: FakePort) -> None:
    port.stop_settles = False
    port.on_pause = [lambda: port.settle("run-2")]

    async def body(turn: Any) -> None:
        for task in "abc":
            await turn.spawn(task)
        assert runs(await turn.join(until="first")) == ["run-2"]
        assert port.stopped == ["run-1", "run-3"]
        assert port.consumed == ["run-2"]
        assert await turn.join() == []
        port.settle("run-1")
        port.settle("run-3")
        assert port.consumed == ["run-2", "run-1", "run-3"]

    drive.ok(body, port)


def test_until_first_of_several_that_have_settled_gives_the_eldest_and_consumes_all(
    drive: Drive, port: FakePort
) -> None:
    async def body(turn: Any) -> None:
        for task in "abc":
            await turn.spawn(task)
        port.settle("run-3")
        port.settle("run-2")
        assert runs(await turn.join(until="first")) == ["run-2"]
        assert port.stopped == ["run-1"]

    drive.ok(body, port)
    assert port.pauses == 0
    assert sorted(port.consumed) == ["run-1", "run-2", "run-3"]


def test_what_a_completion_fails_with_is_raised_and_nothing_is_consumed(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.spawn("a")
        port.completion("run-1").set_exception(OSError("lost"))
        with pytest.raises(OSError, match="lost"):
            await turn.join()

    drive.ok(body, port)
    assert port.consumed == []


def test_joins_side_by_side_each_pause_and_resume(port: FakePort) -> None:
    port.on_pause = [lambda: port.settle("run-1"), lambda: port.settle("run-2")]

    async def main() -> None:
        turn = Turn(make_spec(), port)
        one, two = [await turn.spawn(task) for task in "ab"]
        first, second = await asyncio.gather(turn.join(one), turn.join(two))
        assert runs(first + second) == ["run-1", "run-2"]

    asyncio.run(main())
    port.join_threads()
    assert port.pauses == port.resumes == 2


def test_a_join_that_the_agent_gives_up_has_its_slot_again_and_leaves_the_children(port: FakePort) -> None:
    async def main() -> None:
        turn = Turn(make_spec(), port)
        await turn.spawn("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await turn.join()
        assert (port.pauses, port.resumes, port.stopped, port.consumed) == (1, 1, [], [])

    asyncio.run(main())


def test_a_turn_may_be_made_by_hand_for_a_test_of_an_agent(port: FakePort) -> None:
    port.run = lambda request: None
    turn = SyncTurn(make_spec(text="hello"), port, input=3)
    assert (turn.text, turn.input) == ("hello", 3)
