"""A node of the cluster dies: what ran there fails and says so, what was queued goes on elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_tier import HERE, Driver

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(180, method="signal")]


def test_a_lost_node_is_named_and_queued_runs_go_on_elsewhere(drivers: Callable[..., Driver], tmp_path: Path) -> None:
    driver = drivers(str(HERE / "node_driver.py"), str(tmp_path / "log"))
    while not (line := driver.line()).startswith("{"):
        pass
    found = json.loads(line)
    for error in found["ends"]:
        assert (error["cause"], error["death"]) == ("process_died", {"kind": "node", "node": found["lost"]})
        assert found["lost"][:8] in error["message"]
    assert found["queued"] == ["ended by itself"] * 2
    assert found["sibling"] == "running"
    print(f"\n{found['seconds']:.1f} s from the loss to the last queued run")
