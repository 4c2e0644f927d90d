"""SIGKILL of the registry: nothing changes for live runs, and the service is back within five seconds."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_tier import LONG, Log, within

import openclaw_ray as oc
from openclaw_ray.testing.chaos import Killer, Victim, kill
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]

BACK_WITHIN = 5.0


def _ended(log: Log, count: int) -> bool:
    return len(log.lines()) >= count


def test_a_map_runs_each_item_once_and_in_order_over_three_kills(
    rt: oc.Runtime, log: Log
) -> None:
    items = 1_000 if LONG else 300
    killed: list[int] = []

    def at(share: float) -> None:
        eventually(lambda: _ended(log, int(items * share)), 60, every=0.005)
        killed.extend(eventually(lambda: kill(rt, Victim.REGISTRY), 20))

    def killer() -> None:
        for share in (0.1, 0.4, 0.7):
            at(share)

    thread = threading.Thread(target=killer)
    thread.start()
    results = rt.map("count", [(log.path, i, 0) for i in range(items)], width=4)
    thread.join()

    assert len(killed) == 3
    assert len(set(killed)) == 3
    assert [result.text for result in results] == [f"r{i}" for i in range(items)]
    assert log.doubled() == {}
    assert len(log.lines()) == items
    assert rt.stats().registry_incarnation >= 4


def test_the_service_is_back_within_five_seconds(rt: oc.Runtime, log: Log) -> None:
    rt.map("count", [(log.path, "warm", 0)])
    assert kill(rt, Victim.REGISTRY)
    since = time.monotonic()
    [result] = rt.map("count", [(log.path, "after", 0)])
    assert result.text == "rafter"
    assert time.monotonic() - since < within(BACK_WITHIN)


@pytest.mark.long
def test_trees_under_way_lose_no_child_and_double_none(rt: oc.Runtime, log: Log) -> None:
    with ThreadPoolExecutor() as threads:
        spawned = threads.submit(
            rt.map, "parent", [(log.path, f"p{i}", 3, 0.4) for i in range(3)], width=3
        )
        mapped = threads.submit(rt.map, "mapper", [(log.path, f"m{i}", 12) for i in range(2)], width=2)
        woken = threads.submit(rt.map, "yielder", [(log.path, 3, 0.5)])
        eventually(lambda: _ended(log, 4), 60, every=0.005)
        assert kill(rt, Victim.REGISTRY)
        eventually(lambda: rt.stats().registry_incarnation, 20)
        assert kill(rt, Victim.REGISTRY)
        assert [r.value for r in spawned.result()] == [[f"rp{i}.{j}" for j in range(3)] for i in range(3)]
        assert [r.value for r in mapped.result()] == [[f"rm{i}.{j}" for j in range(12)] for i in range(2)]
        assert [r.text for r in woken.result()] == ["rchild.0 rchild.1 rchild.2"]
    assert log.doubled() == {}


def test_a_stop_under_way_is_finished_by_the_next_registry(rt: oc.Runtime, log: Log) -> None:
    receipts = [rt.spawn(agent_id=agent, input=(log.path, agent)) for agent in ("deaf", "polite")]
    log.wait_for(2)
    with ThreadPoolExecutor() as threads:
        stops = [threads.submit(rt.stop, receipt.session_key) for receipt in receipts]
        eventually(lambda: rt.runs(session=receipts[1].session_key, state="cancelled"), 10, every=0.002)
        assert kill(rt, Victim.REGISTRY)
        reports = [stop.result(timeout=30) for stop in stops]
    assert [(report.stopped, report.failed) for report in reports] == [(1, 0), (1, 0)]
    assert reports[0].forced == 1
    assert [rt.result(receipt).status for receipt in receipts] == [oc.ResultStatus.CANCELLED] * 2


def test_what_ran_waited_and_was_stopped_is_each_found_again_as_it_was(rt: oc.Runtime, log: Log) -> None:
    """Five run, at least three are queued, two ends were not taken, one is stopped; then three kills in a row."""
    running = [rt.spawn(agent_id="polite", input=(log.path, f"run{i}")) for i in range(5)]
    stopped = rt.spawn(agent_id="yielder", input=(log.path, 2, 8.0))
    undelivered = [rt.spawn(agent_id="count", input=(log.path, f"undelivered{i}", 0)) for i in range(2)]
    log.wait_for(9)
    eventually(lambda: rt.runs(session=stopped.session_key)[0]["state"] == "paused", 10)
    mapping = threading.Thread(
        target=lambda: rt.map("count", [(log.path, f"q{i}", 0.3) for i in range(8)], width=4)
    )
    mapping.start()
    eventually(lambda: rt.stats().queued >= 3, 10)
    stop = threading.Thread(target=rt.stop, args=(stopped.session_key,))
    stop.start()
    eventually(lambda: rt.runs(session=stopped.session_key)[0]["state"] == "cancelled", 10, every=0.002)
    killed = {eventually(lambda: kill(rt, Victim.REGISTRY), 20)[0] for _ in range(3)}

    mapping.join()
    stop.join()
    assert len(killed) == 3
    assert [rt.result(receipt, timeout=20).text for receipt in undelivered] == ["rundelivered0", "rundelivered1"]
    assert rt.result(stopped, timeout=20).status is oc.ResultStatus.CANCELLED
    assert {row["state"] for receipt in running for row in rt.runs(session=receipt.session_key)} == {"running"}
    [row] = rt.runs(session=stopped.session_key)
    assert row["turns"] == 1  # it was not woken
    for receipt in running:
        assert rt.stop(receipt.session_key, timeout=20).stopped == 1
    assert log.doubled() == {}


@pytest.mark.long
@pytest.mark.timeout(600, method="signal")
@pytest.mark.parametrize("round_seed", range(5))
def test_many_kills_in_one_map(rt: oc.Runtime, log: Log, seed: int, round_seed: int) -> None:
    items = 3_000
    with Killer(rt, [Victim.REGISTRY], rate=0.3, seed=seed * 100 + round_seed):
        results = rt.map("count", [(log.path, i, 0) for i in range(items)], width=4)
    assert [result.text for result in results] == [f"r{i}" for i in range(items)]
    assert log.doubled() == {}
