"""Stop against all that can be in its way: trees with tools, deaf and stubborn sessions, races with the start."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from fault_agents import GRACE
from fault_tier import ROUNDS, Driver, Log, within

import openclaw_ray as oc
from openclaw_ray.core.errors import JoinTimeout
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]


def _tools(log: Log) -> list[psutil.Process]:
    """Living tools that agents have named, and all below them."""
    found = []
    for line in log.lines():
        words = line.split()
        try:
            top = psutil.Process(int(words[words.index("tool") + 1]))
            found += [top, *top.children(recursive=True)]
        except (ValueError, psutil.Error):
            continue
    return [each for each in found if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.long
def test_a_tree_with_tools_at_work_a_deaf_and_a_stubborn_session_is_ended_whole(
    rt: oc.Runtime, log: Log
) -> None:
    top = rt.spawn(agent_id="node", input=(log.path, "top", (3, 3, 3)))
    log.wait_for(40, timeout=100)
    tools = _tools(log)
    assert len(tools) == 40 * 3
    since = time.monotonic()
    report = rt.stop(top.session_key)
    took = time.monotonic() - since

    assert (report.total, report.stopped, report.failed) == (40, 40, 0)
    assert report.forced == 2
    forced = {row.session_key for row in report.rows if row.outcome == "forced"}
    rows = rt.runs(agent="node", limit=100)
    assert {row["label"] for row in rows if row["sessionKey"] in forced} == {"top.0.0.0", "top.2.2.2"}
    assert took < within(GRACE + 2)
    assert len(rt.runs(agent="node", state="cancelled", limit=100)) == 40
    eventually(lambda: not [each for each in tools if each.is_running() and each.status() != "zombie"], 2)


def test_a_second_stop_and_a_stop_of_what_has_ended_count_it_as_finished(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="count", input=(log.path, 1, 0))
    assert rt.result(receipt, timeout=20).ok
    report = rt.stop(receipt.session_key, timeout=10)
    assert (report.stopped, report.failed) == (0, 0)


def test_a_hang_with_the_interpreters_lock_held_is_ended_by_the_pools_kill(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="gripping", input=(log.path, "g"))
    [line] = log.wait_for(1)
    since = time.monotonic()
    report = rt.stop(receipt.session_key, timeout=20)
    assert (report.stopped, report.forced) == (1, 1)
    assert time.monotonic() - since < within(GRACE + 3)
    eventually(lambda: not psutil.pid_exists(int(line.split()[2])), 2)


def test_a_hang_with_the_interpreters_lock_held_is_ended_by_its_timeout(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="gripping", input=(log.path, "g"), run_timeout_seconds=1)
    result = rt.result(receipt, timeout=20)
    assert result.status is oc.ResultStatus.TIMEOUT


def test_a_frozen_process_is_unknown_not_dead_and_a_stop_ends_it(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="polite", input=(log.path, "p"))
    [line] = log.wait_for(1)
    pid = int(line.split()[2])
    os.kill(pid, signal.SIGSTOP)
    # longer than the two seconds after which the registry asks for a report, and the two it waits for one
    with pytest.raises(JoinTimeout):
        rt.result(receipt, timeout=5)
    assert rt.runs(session=receipt.session_key)[0]["state"] == "running"
    # nobody else is held up by it
    assert rt.map("count", [(log.path, "other", 0)])[0].ok
    report = rt.stop(receipt.session_key, timeout=20)
    assert (report.stopped, report.forced) == (1, 1)
    eventually(lambda: not psutil.pid_exists(pid), 2)


@pytest.fixture
def second(ray_here: str, rt: oc.Runtime, drivers: Callable[..., Driver]) -> Iterator[Callable[[str], None]]:
    """Has another process, a client of the same runtime, stop a session; returns after its stop has."""
    driver = drivers("-m", "second_driver", rt.name, RAY_ADDRESS=ray_here)
    assert driver.line() == "connected"

    def stop(key: str) -> None:
        assert driver.process.stdin is not None
        driver.process.stdin.write(key + "\n")
        driver.process.stdin.flush()
        assert driver.line().startswith("stopped")

    yield stop
    driver.leave()


@pytest.mark.parametrize("who", ["same process", "other process"])
def test_no_turn_starts_after_the_answer_to_its_stop(
    rt: oc.Runtime, log: Log, seed: int, who: str, request: pytest.FixtureRequest
) -> None:
    chance = random.Random(seed)
    stop = rt.stop if who == "same process" else request.getfixturevalue("second")
    answered: dict[str, int] = {}
    for number in range(ROUNDS):
        name = f"round{number}"
        receipt = rt.spawn(agent_id="stamped", input=(log.path, name))
        # before the start, with it, and after it: a spawn's answer to its turn is a matter of a few milliseconds
        threading.Event().wait(chance.choice([0.0, 0.001, 0.003, 0.01]) * chance.random())
        stop(receipt.session_key)
        answered[name] = time.time_ns()
        assert rt.result(receipt, timeout=20).status is oc.ResultStatus.CANCELLED
    rt.map("count", [(log.path, f"last{i}", 0) for i in range(8)])  # a late start would have come by now
    late = [
        line for line in log.lines() if line.startswith("round") and int(line.split()[1]) > answered[line.split()[0]]
    ]
    assert late == []
    assert log.doubled() == {}


def test_completion_and_stop_at_the_same_time_leave_one_end(rt: oc.Runtime, log: Log, seed: int) -> None:
    chance = random.Random(seed)
    ends = set()
    for number in range(ROUNDS):
        receipt = rt.spawn(agent_id="timed", input=(log.path, number, 0.02))
        threading.Event().wait(0.02 + chance.uniform(-0.005, 0.005))
        report = rt.stop(receipt.session_key, timeout=20)
        result = rt.result(receipt, timeout=20)
        ends.add(result.status)
        [row] = rt.runs(session=receipt.session_key)
        if result.ok:
            assert (row["state"], result.text, report.stopped) == ("succeeded", "ended by itself", 0)
        else:
            assert (row["state"], result.status, report.stopped) == ("cancelled", "cancelled", 1)
    keys = [row["key"] for row in rt.history(rt.root_key, limit=1_000) if "key" in row]
    assert len(keys) == len(set(keys))
    assert log.doubled() == {}
    assert ends  # both, as a rule


def test_completion_and_timeout_at_the_same_time_leave_one_end(rt: oc.Runtime, log: Log, seed: int) -> None:
    chance = random.Random(seed)
    receipts = [
        rt.spawn(
            agent_id="timed",
            input=(log.path, number, 0.1),
            run_timeout_seconds=0.1 + chance.uniform(-0.005, 0.005),
        )
        for number in range(ROUNDS)
    ]
    for receipt in receipts:
        result = rt.result(receipt, timeout=30)
        [row] = rt.runs(session=receipt.session_key)
        assert (row["state"], result.status) in {("succeeded", "ok"), ("timed_out", "timeout")}
    keys = [row["key"] for row in rt.history(rt.root_key, limit=1_000) if "key" in row]
    assert len(keys) == len(set(keys))
    assert log.doubled() == {}
