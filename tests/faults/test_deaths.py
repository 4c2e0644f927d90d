"""The death table of a session process (DESIGN.md 8): whatever ends it, its run says so truly, and no other ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import ray
from fault_tier import HERE, Driver, Log

import openclaw_ray as oc
from openclaw_ray.actors.exit_watch import kernel_tells, left_behind
from openclaw_ray.actors.names import find_actor
from openclaw_ray.core.death import Exit
from openclaw_ray.testing.chaos import Victim, kill
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]

WAYS = {
    "SIGKILL": {"kind": "signal", "signal": "SIGKILL"} if kernel_tells() else {"kind": "unknown"},
    "SIGTERM": {"kind": "signal", "signal": "SIGTERM"} if kernel_tells() else {"kind": "unknown"},
    "SIGSEGV": {"kind": "signal", "signal": "SIGSEGV"},
    "SIGABRT": {"kind": "signal", "signal": "SIGABRT"},
    "exit 7": {"kind": "exit", "exitCode": 7},
    "exit 0": {"kind": "exit", "exitCode": 0},
}


def test_each_death_is_told_by_its_true_cause_and_ends_one_run_only(rt: oc.Runtime, log: Log) -> None:
    sibling = rt.spawn(agent_id="timed", input=(log.path, "sibling", 2.5))
    log.wait_for(1)
    receipts = {way: rt.spawn(agent_id="ender", input=(log.path, way)) for way in [*WAYS, "fork"]}
    assert rt.result(receipts.pop("fork"), timeout=30).text == "ended"
    for way, receipt in receipts.items():
        error = rt.result(receipt, timeout=30).error
        assert error is not None
        assert (error.type, error.cause) == ("ProcessDied", "process_died"), way
        assert error.death is not None
        assert error.death.to_json() == WAYS[way], error.message
        [row] = rt.runs(session=receipt.session_key)
        assert (row["state"], row["error"]["death"]) == ("failed", WAYS[way])
        children = {"requester": receipt.session_key}
        eventually(lambda c=children: [r["state"] for r in rt.runs(**c)] == ["succeeded"], 20)
    assert rt.result(sibling, timeout=30).text == "ended by itself"
    # each announce quotes it: that is what a requester's model reads
    words = ("failed: session process", "exit code 7", "SIGSEGV", "SIGABRT")
    eventually(lambda: all(word in str(rt.history(rt.root_key, limit=100)) for word in words), 10)
    # an older kernel does not tell; then it is read from what the process has left behind
    [crashed] = rt.runs(session=receipts["SIGSEGV"].session_key)
    assert left_behind(str(rt.state_dir), crashed["actor"]) == Exit(signal=11)


@pytest.mark.long
def test_a_process_killed_before_anybody_has_met_it_is_replaced_at_once(rt: oc.Runtime, log: Log) -> None:
    """The registry dies with its Hello, so that only the pool knows of it (PROTOCOL.md 7.1)."""
    owned = find_actor(rt.name, "pool").owned
    before = set(ray.get(owned.remote()))
    receipts = [rt.spawn(agent_id="polite", input=(log.path, i)) for i in range(len(before) + 1)]
    [unmet, *_] = eventually(lambda: set(ray.get(owned.remote())) - before, 20, every=0.002)
    [registry] = kill(rt, Victim.REGISTRY, signal.SIGSTOP)
    pid = ray.get(find_actor(rt.name, unmet).ping.remote(), timeout=20)["pid"]
    os.kill(pid, signal.SIGKILL)
    os.kill(registry, signal.SIGKILL)
    # else 90 seconds would have to pass; on a busy machine it may have been met, and died in a turn
    eventually(lambda: not rt.runs(agent="polite", state="queued"), 40, every=0.1)
    assert len(rt.runs(agent="polite", state="running")) >= len(before)
    for receipt in receipts:
        rt.stop(receipt.session_key, timeout=20)


@pytest.mark.long
def test_a_session_that_takes_too_much_memory_is_ended_for_that_and_its_siblings_go_on(
    drivers: Callable[..., Driver], tmp_path: Path
) -> None:
    """SCENARIOS.md 82: on a Ray whose memory monitor is real, and would end hub, registry and pool first."""
    driver = drivers(str(HERE / "memory_driver.py"), str(tmp_path / "log"))
    while not (line := driver.line()).startswith("{"):
        pass
    found = json.loads(line)
    assert found["error"]["cause"] == "process_died"
    assert found["error"]["death"]["kind"] == "out_of_memory"
    assert "low on memory" in found["error"]["message"]
    assert found["row"] == found["error"]
    assert "low on memory" in found["announced"]
    assert found["sibling"] == "ended by itself"
