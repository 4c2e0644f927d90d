"""Run timeouts: told by the registry, from the first start on (PROTOCOL.md 5.5; SCENARIOS.md D)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from support.runtimes import GRACE

import openclaw_ray as oc
from openclaw_ray.core.errors import RunTimedOut

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


def test_a_cooperative_agent_ends_at_its_deadline(rt: oc.Runtime, gate: Gate) -> None:
    results = rt.map("hold", [gate.place], timeout=0.5)
    assert [result.status for result in results] == [oc.ResultStatus.TIMEOUT]
    assert results[0].error is not None
    assert results[0].error.message == "timed out after 0.5 s (runTimeoutSeconds)"
    assert results[0].runtime_ms >= 500
    with pytest.raises(RunTimedOut):
        results[0].raise_for_status()


@pytest.mark.parametrize("agent", ["deaf", "stubborn"])
def test_a_deaf_one_is_ended_after_the_grace(rt: oc.Runtime, gate: Gate, agent: str) -> None:
    began = time.monotonic()
    [result] = rt.map(agent, [gate.place], timeout=0.5)
    assert 0.5 + min(1.0, GRACE) <= time.monotonic() - began < 2 * (0.5 + GRACE + 2.0)
    assert result.status is oc.ResultStatus.TIMEOUT
    assert result.error is not None
    assert "its process did not end by itself and was ended" in result.error.message


def test_check_raises_timeout(rt: oc.Runtime, gate: Gate) -> None:
    rt.map("checking", [gate.place], timeout=0.3)
    assert gate.lines("raised") == ["Cancelled timeout"]


def test_the_last_progress_stands_as_partial_in_the_result(rt: oc.Runtime, gate: Gate) -> None:
    [result] = rt.map("reporting", [gate.place], timeout=0.5)
    assert result.status is oc.ResultStatus.TIMEOUT
    assert (result.partial, result.text) == ("step 3", None)


def test_the_partial_progress_of_a_killed_one_is_kept_too(rt: oc.Runtime, gate: Gate) -> None:
    [result] = rt.map("deaf", [gate.place], timeout=0.5)
    assert result.partial == "asleep"


def test_time_in_the_queue_is_not_taken_from_the_run(rt: oc.Runtime) -> None:
    results = rt.map("nap", [0.3] * 5, width=1, timeout=1)
    assert [result.status for result in results] == [oc.ResultStatus.OK] * 5


def test_zero_is_no_timeout_and_a_huge_one_does_not_fire(rt: oc.Runtime) -> None:
    for timeout in (0, 2**31, 10**10):
        assert rt.map("nap", [0.05], timeout=timeout)[0].ok


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "abc", True])
def test_what_is_no_number_of_seconds_is_refused(rt: oc.Runtime, wrong: object) -> None:
    with pytest.raises(ValueError, match="run_timeout_seconds"):
        rt.spawn("x", "echo", run_timeout_seconds=wrong)  # type: ignore[arg-type]


def test_a_parents_deadline_leaves_its_children_alone(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("go", "relay", input=gate.place, run_timeout_seconds=0.7)
    gate.wait_for(2)
    assert rt.result(receipt).status is oc.ResultStatus.TIMEOUT
    [middle] = rt.runs(requester=receipt.session_key)
    assert middle["state"] == "paused"
    assert {row["state"] for row in rt.runs(requester=middle["sessionKey"])} == {"running"}
    gate.open()


def test_the_pauses_of_a_run_count(rt: oc.Runtime, gate: Gate) -> None:
    [result] = rt.map("yielding", [[["wait"]]], timeout=0.5)
    assert result.status is oc.ResultStatus.TIMEOUT
    for row in rt.runs(requester=result.session_key):
        rt.stop(row["sessionKey"])


def test_a_timeout_is_not_tried_again_without_being_asked(rt: oc.Runtime, gate: Gate) -> None:
    rt.map("hold", [gate.place], timeout=0.3)
    assert len(gate.entered) == 1
    rt.map("hold", [gate.place], timeout=0.3, retries=1)
    assert len(gate.entered) == 3
