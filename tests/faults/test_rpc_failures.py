"""Calls between processes that fail at random, before they arrive, on the way, or with their answers."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_tier import HERE, LONG, Driver

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(300 if LONG else 120, method="signal")]

ITEMS = 200 if LONG else 30
STOPS = 20 if LONG else 2
SHARE = 6 if LONG else 3  # per cent of the calls, for each of the three ways to fail


@pytest.mark.long
def test_every_item_once_when_calls_between_actors_fail(drivers: Callable[..., Driver], tmp_path: Path) -> None:
    log = tmp_path / "log"
    push = {
        "num_failures": 1_000,
        "req_failure_prob": SHARE,
        "resp_failure_prob": SHARE,
        "in_flight_failure_prob": SHARE,
    }
    driver = drivers(
        str(HERE / "rpc_driver.py"),
        str(log),
        str(ITEMS),
        str(STOPS),
        RAY_testing_rpc_failure=json.dumps({"CoreWorkerService.grpc_client.PushTask": push}),
        RAY_testing_rpc_failure_avoid_intra_node_failures="0",
        # else each failure costs a second in which Ray waits to hear that the callee is dead
        RAY_timeout_ms_task_wait_for_death_info="50",
    )
    while not (line := driver.line()).startswith("{"):
        print(line, file=sys.stderr)
    found = json.loads(line)
    assert found["texts"] == [f"r{i}" for i in range(ITEMS)]
    assert found["trees"] == [[f"rp{i}.{j}" for j in range(3)] for i in range(2)]
    assert found["errors"] == []
    assert found["woken"] == ["rchild.0 rchild.1 rchild.2"] * 2
    assert found["hoards"] == ["200000 200000 200000"] * 2
    assert found["stopped"] == [[4, 0, ["cancelled"] * 3]] * STOPS
    assert found["leaks"] == []
    lines = Counter(log.read_text().split("\n"))
    once = [line for line in lines if line and not line.startswith("child.")]  # of which there are two
    assert [line for line in once if lines[line] > 1] == []
