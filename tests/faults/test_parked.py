"""Many who wait hold nobody up (SCENARIOS.md 73)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_tier import Log, within

import openclaw_ray as oc

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(120, method="signal")]

PARKED = 1_200


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
