"""The process that owns a runtime is killed in the middle of its work; the next start recovers (DESIGN.md 8, 10)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_tier import HERE, Driver, Log, within
from recover_agents import AGENTS, CONFIG

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_at_rest

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]

WOKEN_WITHIN = 5.0


def _ask(driver: Driver, *agents: str) -> None:
    assert driver.process.stdin is not None
    for agent in agents:
        driver.process.stdin.write(f"{agent}\n")
        driver.process.stdin.flush()


def _recovered(driver: Driver) -> dict[str, int]:
    while not (line := driver.line()).startswith("{"):
        pass  # Ray's own word on its worker processes
    found: dict[str, int] = json.loads(line)
    return found


def _states(rt: oc.Runtime) -> dict[str, tuple[str, str | None]]:
    return {row["agentId"]: (row["state"], (row.get("error") or {}).get("cause")) for row in rt.runs(limit=100)}


@pytest.mark.long
def test_a_killed_service_goes_on_where_it_may_and_does_nothing_twice(
    drivers: Callable[..., Driver], ray_here: str, tmp_path: Path
) -> None:
    log, place = Log(tmp_path / "log"), tmp_path / "state"
    driver = drivers(str(HERE / "recover_driver.py"), log.path, str(place), RAY_ADDRESS=ray_here)
    assert _recovered(driver) == {}
    _ask(driver, "boss")
    log.wait_for(3)  # boss, quick, slow
    _ask(driver, "keeper", "plain")
    log.wait_for(5)
    _ask(driver, "late")  # the main lane is full
    with oc.Runtime.connect(place.name) as client:
        eventually(lambda: client.runs(state="queued"), what="one waits")
        assert client.runs(agent="quick")[0]["state"] == "succeeded"
    driver.process.kill()
    driver.process.wait()

    began = time.monotonic()
    with oc.Runtime.start(config=CONFIG, agents=AGENTS, state_dir=place, recover=True) as rt:
        assert rt.recovered == {"waiting": 1, "interrupted": 2, "resumed": 1, "requeued": 1}
        up = time.monotonic()
        eventually(lambda: not rt.runs(state=["queued", "running", "paused"]), 30, what="all have ended")
        assert time.monotonic() - up < within(WOKEN_WITHIN), f"the start itself took {up - began:.1f} s"
        assert _states(rt) == {
            "boss": ("succeeded", None),
            "quick": ("succeeded", None),
            "slow": ("failed", "interrupted"),
            "keeper": ("succeeded", None),
            "plain": ("failed", "interrupted"),
            "late": ("succeeded", None),
        }
        before = ["boss began", "quick began", "slow began", "keeper began", "plain began"]
        assert sorted(log.lines()) == sorted([*before, "boss wake ok error", "keeper resume", "late began"])
        assert_at_rest(rt, timeout=20)


