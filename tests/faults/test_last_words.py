"""No hook is needed at an end: what was said is there, and what was never born stays so (SCENARIOS.md 69, 70)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import ray
from fault_agents import AGENTS, CONFIG
from fault_tier import Log, at_rest

import openclaw_ray as oc
from openclaw_ray.actors.names import find_actor
from openclaw_ray.testing import assert_gone
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]


def _kill_outright(rt: oc.Runtime, row: dict[str, object]) -> None:
    os.kill(int(str(row["pid"])), signal.SIGKILL)


def _ray_kill(rt: oc.Runtime, row: dict[str, object]) -> None:
    ray.kill(find_actor(rt.name, str(row["actor"])))


def _stop(rt: oc.Runtime, row: dict[str, object]) -> None:
    rt.stop(str(row["sessionKey"]), timeout=20)


def test_the_transcript_is_whole_to_the_last_message_however_the_process_ends(rt: oc.Runtime, log: Log) -> None:
    ends = [_kill_outright, _ray_kill, _stop]
    receipts = [rt.spawn(agent_id="talker", input=(log.path, 0.7)) for _ in ends]
    # seen from within, nothing is missing or doubled while it is on its way
    assert [line.split()[0] for line in log.wait_for(len(ends))] == ["True"] * len(ends)
    for end, receipt in zip(ends, receipts, strict=True):
        [row] = rt.runs(session=receipt.session_key)
        end(rt, row)
        assert not rt.result(receipt, timeout=20).ok
        rows = rt.history(receipt.session_key)
        assert [r["text"] for r in rows][1:3] == ["one", "two"], end.__name__
        assert rows[0]["role"] == "user"


@pytest.fixture
def full(ray_here: str) -> Iterator[oc.Runtime]:
    """A runtime whose sessions need a CPU each, of which there are two."""
    entries = {"polite": {"ray": {"num_cpus": 1}}}
    config = {**CONFIG, "agents": {**CONFIG["agents"], "entries": entries}}  # type: ignore[dict-item]
    with oc.Runtime.start(agents=AGENTS, config=config) as runtime:
        yield runtime
    assert_gone(runtime.name)


def test_what_is_stopped_while_its_process_is_being_created_never_starts(full: oc.Runtime, log: Log) -> None:
    receipts = [full.spawn(agent_id="polite", input=(log.path, i)) for i in range(9)]
    log.wait_for(2)
    assert eventually(lambda: full.stats().actors.get("growing"), 10)
    reports = [full.stop(receipt.session_key, timeout=20) for receipt in reversed(receipts)]
    assert sum(report.stopped for report in reports) == 9
    assert {full.result(receipt, timeout=20).status for receipt in receipts} == {oc.ResultStatus.CANCELLED}
    assert full.map("count", [(log.path, f"next {i}", 0) for i in range(4)])[0].ok
    at_rest(full)
    assert len([line for line in log.lines() if not line.startswith("next")]) == 2
