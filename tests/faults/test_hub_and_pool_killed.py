"""SIGKILL of the hub loses nothing; SIGKILL of the pool ends the turns that run, and what is queued goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_tier import Log, within

import openclaw_ray as oc
from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.testing.chaos import Killer, Victim, kill, processes
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]


def _transcript(rt: oc.Runtime, key: str) -> list[str]:
    return [row["role"] for row in rt.history(key)]


def test_a_map_over_kills_of_the_hub_is_whole_and_every_transcript_has_its_rows_once(
    rt: oc.Runtime, log: Log
) -> None:
    items = 300
    with ThreadPoolExecutor() as threads:
        mapping = threads.submit(rt.map, "count", [(log.path, i, 0) for i in range(items)], width=4)
        for share in (0.2, 0.6):
            eventually(lambda s=share: len(log.lines()) >= items * s, 60, every=0.005)
            assert eventually(lambda: kill(rt, Victim.HUB), 20)
        results = mapping.result()
    assert [result.text for result in results] == [f"r{i}" for i in range(items)]
    assert log.doubled() == {}
    eventually(
        lambda: all(_transcript(rt, r.session_key) == ["user", "assistant"] for r in results[::10]), 20
    )
    wrong = {
        r.index: roles for r in results if (roles := _transcript(rt, r.session_key)) != ["user", "assistant"]
    }
    assert wrong == {}


def test_announces_and_wakes_pass_over_a_kill_of_the_hub(rt: oc.Runtime, log: Log) -> None:
    receipt = rt.spawn(agent_id="yielder", input=(log.path, 3, 0.5))
    log.wait_for(3)
    assert kill(rt, Victim.HUB)
    result = rt.result(receipt, timeout=30)
    assert result.text == "rchild.0 rchild.1 rchild.2"
    whole = ["user"] * 4 + ["assistant"]
    assert eventually(lambda: sorted(_transcript(rt, receipt.session_key)) == sorted(whole), 10)
    keys = Counter(row.get("key") or row["text"] for row in rt.history(receipt.session_key))
    assert max(keys.values()) == 1


def test_the_events_of_a_run_are_seen_over_a_kill_of_the_hub(rt: oc.Runtime, log: Log) -> None:
    first = rt.map("count", [(log.path, "before", 0)])[0]
    assert kill(rt, Victim.HUB)
    second = rt.map("count", [(log.path, "after", 0)])[0]
    states: dict[str, list[str]] = {first.run_id: [], second.run_id: []}
    for event in rt.events(after=0):
        if event.run_id in states:
            states[event.run_id].append(str(event.state))
        if states[second.run_id][-1:] == ["succeeded"]:
            break
    assert states[first.run_id] == states[second.run_id] == ["queued", "running", "succeeded"]


def test_the_pools_death_ends_running_turns_and_queued_ones_go_on(rt: oc.Runtime, log: Log) -> None:
    running = [rt.spawn(agent_id="polite", input=(log.path, i)) for i in range(3)]
    log.wait_for(3)
    queued = [rt.spawn(agent_id="count", input=(log.path, f"q{i}", 0.2)) for i in range(12)]
    assert kill(rt, Victim.POOL)
    since = time.monotonic()
    for receipt in running:
        result = rt.result(receipt, timeout=10)
        assert result.error is not None
        assert result.error.death is not None
        assert (result.error.cause, result.error.death.kind) == (Cause.PROCESS_DIED, "pool")
    results = [rt.result(receipt, timeout=30) for receipt in queued]
    took = time.monotonic() - since
    # those that were in a turn at that moment died with it; each of the others ran
    for i, result in enumerate(results):
        assert result.text == f"rq{i}" or (result.error and result.error.cause == Cause.PROCESS_DIED)
    assert sum(result.ok for result in results) >= 6
    assert took < within(10)
    assert log.doubled() == {}
    assert all(r.ok for r in rt.map("count", [(log.path, f"next {i}", 0) for i in range(10)]))


@pytest.mark.long
def test_a_map_over_a_kill_of_the_pool_has_every_item_in_its_place(rt: oc.Runtime, log: Log) -> None:
    items = 60
    with ThreadPoolExecutor() as threads:
        mapping = threads.submit(rt.map, "count", [(log.path, i, 0.05) for i in range(items)], width=4)
        eventually(lambda: len(log.lines()) >= 20, 60, every=0.005)
        assert kill(rt, Victim.POOL)
        results = mapping.result(timeout=60)
    for i, result in enumerate(results):
        assert result.text == f"r{i}" or (result.error and result.error.cause == Cause.PROCESS_DIED)
    assert sum(not result.ok for result in results) <= 8
    assert log.doubled() == {}


@pytest.mark.parametrize("victim", [Victim.REGISTRY, Victim.HUB, Victim.POOL])
def test_a_process_that_is_frozen_for_a_while_is_not_taken_for_dead(
    rt: oc.Runtime, log: Log, victim: Victim
) -> None:
    items = 40
    with ThreadPoolExecutor() as threads:
        mapping = threads.submit(rt.map, "count", [(log.path, i, 0.02) for i in range(items)], width=3)
        log.wait_for(10)
        [pid, *_] = eventually(lambda: processes(rt, victim), 10)
        with _frozen(pid):
            threading.Event().wait(1)
        results = mapping.result(timeout=60)
    assert [result.text for result in results] == [f"r{i}" for i in range(items)]
    assert log.doubled() == {}


@contextlib.contextmanager
def _frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.long
@pytest.mark.timeout(600, method="signal")
@pytest.mark.parametrize("round_seed", range(8))
def test_all_of_it_at_random(rt: oc.Runtime, log: Log, seed: int, round_seed: int) -> None:
    victims = [Victim.REGISTRY, Victim.HUB, Victim.BUSY, Victim.POOL]
    chance = seed * 100 + round_seed
    with Killer(rt, victims, rate=0.5, seed=chance), ThreadPoolExecutor() as threads:
        mapped = threads.submit(rt.map, "count", [(log.path, i, 0.02) for i in range(300)], width=3)
        trees = [
            threads.submit(rt.map, "parent", [(log.path, f"p{i}", 3, 0.2) for i in range(12)], width=2),
            threads.submit(rt.map, "mapper", [(log.path, f"m{i}", 10) for i in range(4)], width=1),
            threads.submit(rt.map, "yielder", [(log.path, 3, 0.1)], width=1),
        ]
        results = mapped.result()
        tops = [result for tree in trees for result in tree.result()]
    for i, result in enumerate(results):
        assert result.text == f"r{i}" or (result.error and result.error.cause == Cause.PROCESS_DIED)
    for top in tops:
        assert top.ok or (top.error and top.error.cause == Cause.PROCESS_DIED)
    assert log.doubled() == {}
