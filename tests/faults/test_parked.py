"""Many who wait hold nobody up (SCENARIOS.md 73): in one process, and in several that have connected.

``OPENCLAW_RAY_LONG=1 pytest -s tests/faults/test_parked.py`` prints the figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_tier import HERE, Driver, Log, within

import openclaw_ray as oc

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(120, method="signal")]

PARKED = 1_200
CLIENTS = 6


def test_with_many_callers_parked_a_spawn_an_announce_and_a_stop_get_through(rt: oc.Runtime, log: Log) -> None:
    hung = [rt.spawn(agent_id=agent, input=(log.path, agent)) for agent in ("polite", "deaf")]
    log.wait_for(2)
    with ThreadPoolExecutor(PARKED) as threads:
        parked = [threads.submit(rt.result, hung[i % 2], timeout=60) for i in range(PARKED)]
        since = time.monotonic()
        assert {row["state"] for row in rt.runs(agent="deaf", state="running")} == {"running"}
        assert time.monotonic() - since < within(1)
        result = rt.result(rt.spawn(agent_id="parent", input=(log.path, "p", 2, 0)), timeout=20)
        assert result.value == ["rp.0", "rp.1"]
        assert time.monotonic() - since < within(3)
        assert not any(each.done() for each in parked)
        assert [rt.stop(receipt.session_key, timeout=20).stopped for receipt in hung] == [1, 1]
        assert {each.result().status for each in parked} == {oc.ResultStatus.CANCELLED}


def test_with_many_callers_parked_in_processes_of_their_own_a_spawn_an_announce_and_a_stop_get_through(
    rt: oc.Runtime, log: Log, ray_here: str, drivers: Callable[..., Driver]
) -> None:
    hung = rt.spawn(agent_id="polite", input=(log.path, "polite"))
    log.wait_for(1)
    each = PARKED // CLIENTS
    arguments = (rt.name, str(each), hung.run_id, hung.session_key, hung.agent_id)
    clients = [drivers(str(HERE / "parked_client.py"), *arguments, RAY_ADDRESS=ray_here) for _ in range(CLIENTS)]
    assert [client.line() for client in clients] == ["parked"] * CLIENTS
    since = time.monotonic()
    result = rt.result(rt.spawn(agent_id="parent", input=(log.path, "p", 2, 0)), timeout=30)
    announced = time.monotonic() - since
    assert result.value == ["rp.0", "rp.1"]
    assert announced < within(3)
    since = time.monotonic()
    assert rt.stop(hung.session_key, timeout=30).stopped == 1
    stopped = time.monotonic() - since
    assert stopped < within(3)
    told = [json.loads(client.line()) for client in clients]
    heard = time.monotonic() - since
    assert [one["got"] for one in told] == [{"cancelled": each}] * CLIENTS
    assert heard < within(5)
    for client in clients:
        client.leave()
    spread = max(one["spread"] for one in told)
    print(f"\n{CLIENTS} clients × {each} callers: spawn with two announces {announced:.2f} s, stop {stopped:.2f} s;")
    print(f"all had heard after {heard:.2f} s, the callers of one client within {spread:.2f} s")
