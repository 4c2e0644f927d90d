"""SIGKILL and worse of session actors: every item is accounted for in its place, and nothing stays taken."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from fault_tier import LONG, Log

import openclaw_ray as oc
from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.testing.chaos import Killer, Victim
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]


def test_every_item_is_ok_or_died_in_its_place_under_a_kill_a_second(
    rt: oc.Runtime, log: Log, seed: int
) -> None:
    items = 1_500 if LONG else 180
    with Killer(rt, [Victim.BUSY], rate=1.0, seed=seed) as killer:
        results = rt.map("count", [(log.path, i, 0.08) for i in range(items)], width=4)
    died = {r.index for r in results if r.error is not None and r.error.cause == Cause.PROCESS_DIED}

    assert [result.index for result in results] == list(range(items))
    assert {r.text if r.ok else r.index for r in results} == {i if i in died else f"r{i}" for i in range(items)}
    assert 0 < len(died) <= len(killer.blows)
    assert log.doubled() == {}
    # a killed process is named with its pid, so that it can be found in the machine's own logs
    pids = {str(blow.pid) for blow in killer.blows}
    for result in results:
        assert result.error is None or any(pid in result.error.message for pid in pids)

    again = rt.map("count", [(log.path, f"again {i}", 0) for i in range(20)], width=4)
    assert all(result.ok for result in again)


@pytest.mark.long
def test_retries_run_anew_what_died(rt: oc.Runtime, log: Log, seed: int) -> None:
    with Killer(rt, [Victim.BUSY], rate=1.0, seed=seed):
        results = rt.map("count", [(log.path, i, 0.1) for i in range(70)], width=4, retries=20)
    assert [result.text for result in results] == [f"r{i}" for i in range(70)]


@pytest.mark.long
def test_large_values_are_whole_or_their_loss_is_told(rt: oc.Runtime, log: Log, seed: int) -> None:
    items = 100
    with Killer(rt, [Victim.SESSION], rate=1.5, seed=seed):
        results = rt.map("bulky", [(log.path, i) for i in range(items)], width=4)
    assert [result.index for result in results] == list(range(items))
    for i, result in enumerate(results):
        if result.ok:
            assert result.value == bytes([i % 256]) * 200_000
        else:
            assert result.error is not None
            assert result.error.cause in (Cause.PROCESS_DIED, Cause.VALUE_LOST)
    assert sum(result.ok for result in results) > items / 2
    assert log.doubled() == {}


def test_each_way_to_die_is_told_by_its_true_reason(rt: oc.Runtime, log: Log) -> None:
    results = rt.map("once_or_crash", [(log.path, i) for i in range(40)], width=4)
    reasons = {r.index: r.error.cause for r in results if r.error is not None}
    assert reasons == {7: Cause.PROCESS_DIED, 27: Cause.PROCESS_DIED, 13: Cause.EXITED, 33: Cause.EXITED}
    assert log.doubled() == {}


def test_a_killed_process_takes_its_tools_and_their_children_along(rt: oc.Runtime, log: Log) -> None:
    receipts = [rt.spawn(agent_id="tooled", input=(log.path, i)) for i in range(2)]
    lines = [line.split() for line in log.wait_for(2)]
    groups = {int(line[2]) for line in lines}
    eventually(lambda: len(_in_groups(groups)) == 2 + 3 * 2, 10)
    for pid in groups:
        os.kill(pid, signal.SIGKILL)
    results = [rt.result(receipt, timeout=20) for receipt in receipts]
    assert {r.error.cause for r in results if r.error} == {Cause.PROCESS_DIED}
    eventually(lambda: not _in_groups(groups), 2, what="no tool left")


def _in_groups(groups: set[int]) -> list[str]:
    """Living processes of these process groups."""
    found = []
    for each in psutil.process_iter(["name", "status"]):
        try:
            if os.getpgid(each.pid) in groups and each.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(f"{each.pid} {each.info['name']}")
        except OSError:
            continue
    return found


def test_children_of_a_killed_parent_go_on_and_end(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="leaver", input=(log.path, 3, 1.0))
    lines = log.wait_for(4)
    [pid] = [int(line.split()[1]) for line in lines if line.startswith("pid")]
    os.kill(pid, signal.SIGKILL)

    result = rt.result(receipt, timeout=10)
    assert result.error is not None
    assert result.error.cause == Cause.PROCESS_DIED
    children = rt.runs(requester=receipt.session_key)
    assert len(children) == 3
    eventually(
        lambda: [row["state"] for row in rt.runs(requester=receipt.session_key)] == ["succeeded"] * 3, 20
    )
    # nothing of it holds up the driver
    assert rt.map("count", [(log.path, "after", 0)])[0].ok


def test_a_yielded_parent_hears_of_a_killed_child_once(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="yielder", input=(log.path, 3, 1.5))
    log.wait_for(3)
    [row] = rt.runs(requester=receipt.session_key, state="running", limit=1)
    os.kill(row["pid"], signal.SIGKILL)
    result = rt.result(receipt, timeout=30)
    assert len((result.text or "").split()) == 2
    states = sorted(row["state"] for row in rt.runs(requester=receipt.session_key))
    assert states == ["failed", "succeeded", "succeeded"]


def test_a_map_in_a_turn_has_the_killed_item_in_its_place(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="mapper", input=(log.path, "m", 60))
    with Killer(rt, [Victim.BUSY], rate=2.0, seed=3, most=3):
        result = rt.result(receipt, timeout=60)
    if result.ok:
        assert len(result.value) == 60
        assert {text for text in result.value if text is not None} <= {f"rm.{i}" for i in range(60)}
    else:
        assert result.error is not None
        assert result.error.cause == Cause.PROCESS_DIED
    # what the killed parent left behind ends by itself
    eventually(lambda: not rt.runs(agent="count", state=["queued", "running", "paused"]), 30)
