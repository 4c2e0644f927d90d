"""The clean check: what is put back, what is a fault, what is neither."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray.agents import hygiene, turn_loop
from openclaw_ray.agents.hygiene import Baseline, check, private_bytes
from openclaw_ray.agents.turn_loop import TurnLoop


@pytest.fixture
def baseline() -> Baseline:
    return Baseline.take()


@pytest.fixture
def loop() -> Iterator[TurnLoop]:
    loop = TurnLoop()
    yield loop
    loop.close()


def run(loop: TurnLoop, work: Any) -> Any:
    return loop.run(work, lambda *_: None)


def test_a_process_that_nobody_changed_is_clean(baseline: Baseline, loop: TurnLoop) -> None:
    assert check(baseline, loop).clean


# ---------------------------------------------------------------------- put back


def test_the_environment_is_put_back(baseline: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(os.environ))
    value = os.environ[name]
    monkeypatch.setenv(name, value)  # so that a failing test leaves nothing behind
    os.environ["OPENCLAW_SECRET"] = "s3cret"
    os.environ[name] = "changed"
    assert check(baseline).clean
    assert "OPENCLAW_SECRET" not in os.environ
    assert os.environ[name] == value
    del os.environ[name]
    assert check(baseline).clean
    assert os.environ[name] == value


def test_the_working_directory_is_put_back_even_from_a_deleted_one(baseline: Baseline, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert check(baseline).clean
    assert os.getcwd() == baseline.cwd


def test_a_working_directory_that_is_not_there_any_more_is_a_fault(
    baseline: Baseline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    before = Baseline.take()
    monkeypatch.chdir(tmp_path)
    gone.rmdir()
    (reason,) = check(before).reasons
    assert reason.startswith("cwd: ")
    assert str(gone) in reason


def test_the_umask_is_put_back(baseline: Baseline) -> None:
    os.umask(0o077)
    assert check(baseline).clean
    assert os.umask(baseline.umask) == baseline.umask


def test_the_module_path_is_put_back_changed_or_replaced(baseline: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sys.path
    entries = list(path)
    sys.path.insert(0, "/somewhere")
    assert check(baseline).clean
    assert sys.path == entries
    monkeypatch.setattr(sys, "path", ["/elsewhere"])
    assert check(baseline).clean
    assert sys.path is path
    assert sys.path == entries


# ---------------------------------------------------------------------- threads and processes


@pytest.mark.parametrize("daemon", [False, True])
def test_a_thread_that_goes_on_is_a_fault_that_names_it(baseline: Baseline, daemon: bool) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="left-over", daemon=daemon)
    thread.start()
    try:
        assert check(baseline).reasons == ("thread: left-over",)
    finally:
        stop.set()
        thread.join()
    assert check(baseline).clean


def test_a_thread_that_is_just_ending_is_no_fault(baseline: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hygiene, "_MOMENT", 10)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    threading.Thread(target=stop.set).start()
    assert check(baseline).clean
    assert not thread.is_alive()


def test_threads_of_the_runtime_and_of_the_baseline_are_no_fault() -> None:
    stop = threading.Event()
    old = threading.Thread(target=stop.wait)
    old.start()
    baseline = Baseline.take()
    ours = threading.Thread(target=stop.wait, name="openclaw-courier")
    ours.start()
    try:
        assert check(baseline).clean
    finally:
        stop.set()
        old.join()
        ours.join()


def test_a_child_process_that_goes_on_is_a_fault_that_names_it(baseline: Baseline) -> None:
    child = subprocess.Popen(["sleep", "300"])
    try:
        assert check(baseline).reasons == (f"child process: {child.pid} (sleep 300)",)
        assert Baseline.take().children == {child.pid}
    finally:
        child.kill()
        child.wait()
    assert check(baseline).clean


def test_a_child_that_ended_and_was_not_waited_for_is_no_fault(baseline: Baseline) -> None:
    child = subprocess.Popen(["sh", "-c", "exit 3"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert check(baseline).clean
    assert child.wait() == 3


# ---------------------------------------------------------------------- memory


def test_memory_that_grew_beyond_the_limit_is_a_fault() -> None:
    baseline = Baseline.take(max_growth_mb=20)
    kept = [b"x" * (40 << 20)]
    (reason,) = check(baseline).reasons
    assert reason.startswith("memory: grew by ")
    assert reason.endswith("the limit is 20 MB")
    kept.clear()
    assert check(baseline).clean


def test_garbage_is_collected_before_memory_is_judged() -> None:
    baseline = Baseline.take(max_growth_mb=20)
    circle: list[Any] = [b"x" * (40 << 20)]
    circle.append(circle)
    gc.disable()
    try:
        del circle
        assert private_bytes() - baseline.memory > 20 << 20
        assert check(baseline).clean
    finally:
        gc.enable()


# ---------------------------------------------------------------------- the loop


def test_a_loop_that_was_left_as_it_was_is_kept(loop: TurnLoop) -> None:
    async def work() -> asyncio.AbstractEventLoop:
        await asyncio.sleep(0.001)
        async with asyncio.timeout(10):
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        return asyncio.get_running_loop()

    first = run(loop, work())
    assert loop.tidy() == []
    assert run(loop, work()) is first


def test_tasks_left_behind_are_cancelled_and_may_clean_up(loop: TurnLoop) -> None:
    ended: list[str] = []

    async def left(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)
            if name == "a":
                asyncio.create_task(left("c")).set_name("started while ending")
                await asyncio.sleep(0)

    async def work() -> None:
        work.tasks = [asyncio.create_task(left(name)) for name in "ab"]  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run(loop, work())
    assert loop.tidy() == []
    assert sorted(ended) == ["a", "b", "c"]


def test_a_task_that_will_not_end_is_a_fault_that_names_it(loop: TurnLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_loop, "_PATIENCE", 0.05)
    release: list[bool] = []

    async def deaf() -> None:
        while not release:
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                continue

    async def work() -> None:
        work.task = asyncio.create_task(deaf(), name="deaf-task")  # type: ignore[attr-defined]
        work.task._log_destroy_pending = False  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run(loop, work())
    (reason,) = loop.tidy()
    assert reason.startswith("task: deaf-task (")
    work.task.get_coro().close()  # type: ignore[attr-defined]


def test_async_generators_left_behind_are_closed(loop: TurnLoop) -> None:
    closed: list[bool] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    generator = numbers()

    async def work() -> None:
        assert await anext(generator) == 1

    run(loop, work())
    assert loop.tidy() == []
    assert closed == [True]


def test_a_default_executor_is_no_leak_and_goes_with_its_loop(baseline: Baseline, loop: TurnLoop) -> None:
    async def work() -> asyncio.AbstractEventLoop:
        await asyncio.to_thread(int)
        return asyncio.get_running_loop()

    first = run(loop, work())
    assert check(baseline, loop).clean
    assert first.is_closed()
    assert run(loop, work()) is not first
    assert check(baseline, loop).clean


def test_work_that_goes_on_in_the_executor_is_a_fault(baseline: Baseline, loop: TurnLoop) -> None:
    stop = threading.Event()

    async def work() -> None:
        work.future = asyncio.get_running_loop().run_in_executor(None, stop.wait)  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run(loop, work())
    (reason,) = check(baseline, loop).reasons
    assert reason.startswith("thread: ")
    stop.set()
    for thread in threading.enumerate():
        if thread.ident not in baseline.threads:
            thread.join()


def test_a_timer_left_behind_does_not_ring_in_the_next_turn(loop: TurnLoop) -> None:
    rang: list[bool] = []

    async def work() -> None:
        asyncio.get_running_loop().call_later(0.2, rang.append, True)

    async def next_work() -> None:
        await asyncio.sleep(0.3)

    run(loop, work())
    assert loop.tidy() == []
    run(loop, next_work())
    assert rang == []


def test_an_open_connection_left_behind_goes_with_its_loop(loop: TurnLoop) -> None:
    async def work() -> None:
        work.server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)  # type: ignore[attr-defined]

    run(loop, work())
    first = loop._loop
    assert loop.tidy() == []
    assert first is not None
    assert first.is_closed()
    for socket in work.server._sockets or ():  # type: ignore[attr-defined]
        socket.close()
