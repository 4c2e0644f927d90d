"""A stop or deadline reaches a turn: where it waits, where it asks, before it began, after it ended."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest
from fake_port import FakePort, make_spec
from turn_drive import Awaited, Drive

from openclaw_ray.agents import SyncTurn, Turn, agent
from openclaw_ray.agents.run_turn import TurnRunner
from openclaw_ray.core.errors import Cancelled
from openclaw_ray.core.lifecycle import RunState


async def wait_by(turn: Any, how: str) -> None:
    if how == "spawn":
        await turn.spawn("x")
    elif how == "history":
        await turn.history()
    elif how == "map":
        await turn.map("w", "abc")
    elif how == "check":
        turn.check()
    else:
        await turn.join(until=how)


@pytest.mark.parametrize("how", ["spawn", "history", "map", "all", "first"])
def test_a_cancel_ends_whatever_the_turn_waits_in(drive: Drive, port: FakePort, how: str) -> None:
    port.born("old")
    port.hold = True

    def courier() -> None:
        assert (port.paused if how in ("all", "first") else port.asked).wait(10)
        port.cancel("stopped")

    async def body(turn: Any) -> None:
        port.thread(courier)
        await wait_by(turn, how)
        raise AssertionError("not reached")

    ended = drive(body, port)
    assert ended.outcome.state is RunState.CANCELLED
    assert ended.outcome.error is not None
    assert ended.outcome.error.cause == "stopped"
    # its children are the registry's affair, or go on: a deadline stops nobody else
    assert (port.stopped, port.consumed) == ([], [])


def test_a_cancel_while_waiting_for_the_slot_ends_the_turn(drive: Drive, port: FakePort) -> None:
    port.hold_resume = True
    port.born("old")

    def courier() -> None:
        port.asked.clear()
        port.settle("old")
        assert port.asked.wait(10)
        port.cancel("timeout")

    port.on_pause = [courier]

    async def body(turn: Any) -> None:
        await turn.join()
        raise AssertionError("not reached")

    assert drive(body, port).outcome.state is RunState.TIMED_OUT
    assert port.consumed == []


@pytest.mark.parametrize("how", ["spawn", "history", "map", "all", "first", "check"])
def test_a_turn_that_is_to_end_cannot_wait_any_more(drive: Drive, port: FakePort, how: str) -> None:
    receipt = port.born("old")
    port.settle("old")

    async def body(turn: Any) -> None:
        port.cancel("stopped")
        if drive.kind == "async":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(30)
        log = list(port.log)
        with pytest.raises(Cancelled, match="stopped"):
            await wait_by(turn, how)
        assert port.log == log

    drive.ok(body, port)
    assert receipt


def test_a_deadline_makes_the_turn_timed_out(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        turn.check()
        port.cancel("timeout")
        turn.check()

    outcome = drive(body, port).outcome
    assert outcome.state is RunState.TIMED_OUT
    assert outcome.error is not None
    assert outcome.error.cause == "timeout"


def test_a_turn_that_was_cancelled_before_it_began_does_not_run(drive: Drive, port: FakePort) -> None:
    port.cancel("stopped")

    async def body(turn: Any) -> None:
        raise AssertionError("not reached")

    assert drive(body, port).outcome.state is RunState.CANCELLED


def test_an_agent_that_returns_in_spite_of_a_cancel_has_returned(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> str:
        port.cancel("stopped")
        return "finished anyway"

    outcome = drive(body, port).outcome
    assert (outcome.state, outcome.text) == (RunState.SUCCEEDED, "finished anyway")


def test_the_first_reason_stays(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        drive.runner.cancel("timeout")
        drive.runner.cancel("stopped")
        turn.check()

    assert drive(body, port).outcome.state is RunState.TIMED_OUT


def test_the_runner_can_cancel_by_itself(drive: Drive, port: FakePort) -> None:
    port.born("old")
    port.on_pause = [lambda: drive.runner.cancel("stopped")]

    async def body(turn: Any) -> None:
        await turn.join()

    assert drive(body, port).outcome.state is RunState.CANCELLED
    drive.runner.cancel("stopped")  # nothing runs: nothing happens

    async def next_body(turn: Any) -> str:
        turn.check()
        return "fine"

    assert drive.ok(next_body, FakePort()).outcome.text == "fine"


def test_a_late_cancel_of_one_turn_does_not_reach_the_next(drive: Drive) -> None:
    first, second = FakePort(), FakePort()

    async def nothing(turn: Any) -> None:
        return None

    async def body(turn: Any) -> str:
        first.cancel("stopped")
        if drive.kind == "async":
            await asyncio.sleep(0)
        turn.check()
        return "fine"

    drive.ok(nothing, first)
    assert drive.ok(body, second).outcome.text == "fine"


def test_an_async_agent_is_cancelled_in_its_own_waits_and_may_clean_up(runner: TurnRunner) -> None:
    port = FakePort()
    cleaned = []

    @agent
    async def sleeper(turn: Turn) -> None:
        port.thread(lambda: port.cancel("stopped"))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            port.cancel("stopped")  # again: must not break into this
            await asyncio.sleep(0.001)
            cleaned.append(True)
            raise

    outcome = runner.run(make_spec(), sleeper, port).outcome
    port.join_threads()
    assert outcome.state is RunState.CANCELLED
    assert cleaned == [True]


def test_a_cancelled_error_without_a_cancel_is_a_failure(runner: TurnRunner) -> None:
    @agent
    async def confused(turn: Turn) -> None:
        raise asyncio.CancelledError

    outcome = runner.run(make_spec(), confused, FakePort()).outcome
    assert outcome.state is RunState.FAILED
    assert outcome.error is not None
    assert "nobody had stopped" in outcome.error.message


def test_a_task_group_hides_neither_cancel_nor_yield(runner: TurnRunner) -> None:
    port = FakePort()
    port.born("old")

    @agent
    async def yielding(turn: Turn) -> None:
        async with asyncio.TaskGroup():
            turn.yield_("later")

    @agent
    async def stopped(turn: Turn) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn.join())
            group.create_task(turn.join())
            port.thread(lambda: port.cancel("stopped"))

    ended = runner.run(make_spec(), yielding, port)
    assert (ended.yielded, ended.outcome.text) == (True, "later")
    assert runner.run(make_spec(), stopped, port).outcome.state is RunState.CANCELLED
    port.join_threads()


@pytest.mark.parametrize("number", range(50))
def test_a_cancel_at_any_moment_of_a_join_is_seen(drive: Drive, number: int) -> None:
    port = FakePort()
    port.born("old")
    start = threading.Barrier(2)

    def stop() -> None:
        start.wait()
        port.cancel("stopped")

    async def body(turn: Any) -> None:
        port.thread(stop)
        start.wait()
        await turn.join()

    assert drive(body, port).outcome.state is RunState.CANCELLED


def test_a_plain_turn_waits_in_any_thread(port: FakePort) -> None:
    port.born("old")
    seen: list[str] = []
    turn = SyncTurn(make_spec(), port)

    def wait() -> None:
        try:
            turn.join()
        except Cancelled as exc:
            seen.append(exc.reason)

    port.thread(wait)
    assert port.paused.wait(10)
    port.cancel("stopped")
    port.join_threads()
    assert seen == ["stopped"]
    assert isinstance(Awaited(turn), Awaited)
