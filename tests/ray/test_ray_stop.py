"""Stop: it cannot miss, it counts truly, and it reaches nobody else (PROTOCOL.md 6; SCENARIOS.md C)."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from support.runtimes import GRACE

import openclaw_ray as oc
from openclaw_ray.core.errors import RunCancelled
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

    from openclaw_ray.testing.leaks import ProcessMark

pytestmark = pytest.mark.ray

FORCED_WITHIN = GRACE + 2.0
"""Seconds (DESIGN.md 14); doubled in the tests, as the machine may be busy."""


def outcomes(report: oc.StopReport) -> list[str]:
    return sorted(row.outcome for row in report.rows)


@pytest.mark.parametrize("agent", ["hold", "async_hold"])
def test_a_cooperative_session_stops_by_itself(rt: oc.Runtime, gate: Gate, agent: str) -> None:
    receipt = rt.spawn("wait", agent, input=gate.place)
    gate.wait_for(1)
    report = rt.stop(receipt.session_key)
    assert (report.stopped, report.forced, report.finished, report.failed) == (1, 0, 0, 0)
    assert outcomes(report) == ["stopped"]
    result = rt.result(receipt)
    assert result.status is oc.ResultStatus.CANCELLED
    assert result.error is not None
    assert result.error.cause == "stopped"
    with pytest.raises(RunCancelled, match="stopped"):
        result.raise_for_status()


@pytest.mark.parametrize("agent", ["deaf", "stubborn"])
def test_one_that_does_not_listen_is_ended_after_its_grace(rt: oc.Runtime, gate: Gate, agent: str) -> None:
    receipt = rt.spawn("sleep", agent, input=gate.place)
    gate.wait_for(1)
    began = time.monotonic()
    report = rt.stop(receipt.session_key)
    assert GRACE <= time.monotonic() - began < 2 * FORCED_WITHIN
    assert (report.stopped, report.forced) == (1, 1)
    assert outcomes(report) == ["forced"]
    result = rt.result(receipt)
    assert result.status is oc.ResultStatus.CANCELLED
    assert result.error is not None
    assert "did not end by itself" in result.error.message


def test_the_processes_of_its_tools_end_with_it(rt: oc.Runtime, gate: Gate, mark: ProcessMark) -> None:
    receipt = rt.spawn("work", "with_tools", input=gate.place)
    gate.wait_for(1)
    eventually(lambda: len(mark.alive(tools_only=True)) >= 2, what="the shell and what it starts")
    report = rt.stop(receipt.session_key)
    assert report.stopped == 1
    mark.assert_none(tools_only=True)


def test_a_tree_is_counted_and_its_deaf_one_is_forced(rt: oc.Runtime, gate: Gate, mark: ProcessMark) -> None:
    receipt = rt.spawn("go", "holding_tree", input=(gate.place, 2, 3, ["deaf", "with_tools"]))
    gate.wait_for(1 + 3 + 9)
    report = rt.stop(receipt.session_key)
    assert (report.total, report.stopped, report.forced, report.failed) == (13, 13, 1, 0)
    assert len({row.run_id for row in report.rows}) == 13
    assert {row["state"] for row in rt.runs(limit=13)} == {"cancelled"}
    assert rt.result(receipt).status is oc.ResultStatus.CANCELLED
    mark.assert_none(tools_only=True)


def test_nothing_starts_after_the_answer(rt: oc.Runtime, gate: Gate) -> None:
    receipts = [rt.spawn("wait", "hold", input=gate.place) for _ in range(4)]
    for receipt in receipts:
        rt.stop(receipt.session_key)
    entered = gate.entered
    assert {rt.result(receipt).status for receipt in receipts} == {oc.ResultStatus.CANCELLED}
    rt.map("echo", [str(number) for number in range(20)])  # whatever was on its way has had its time
    assert gate.entered == entered


def test_queued_runs_are_cancelled_without_a_start(rt: oc.Runtime, gate: Gate) -> None:
    stream = rt.imap("hold", [gate.place] * 4, width=1)
    runner = threading.Thread(target=lambda: list(stream))
    runner.start()
    gate.wait_for(1)
    queued = eventually(lambda: rt.runs(agent="hold", state="queued"))
    report = rt.stop(queued[0]["sessionKey"])
    assert (report.stopped, report.forced) == (1, 0)
    gate.open()
    runner.join(30)
    assert not runner.is_alive()
    assert queued[0]["runId"] not in gate.entered
    [row] = [row for row in rt.runs(limit=10) if row["runId"] == queued[0]["runId"]]
    assert (row["state"], row.get("startedAt")) == ("cancelled", None)


def test_what_had_ended_before_is_counted_as_finished(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("go", "half_done", input=gate.place)
    gate.wait_for(2)
    report = rt.stop(receipt.session_key)
    assert (report.stopped, report.finished, report.failed, report.total) == (2, 1, 0, 3)


def test_a_middle_session_that_has_ended_is_passed_through(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("go", "relay", input=gate.place)
    gate.wait_for(2)
    [middle] = rt.runs(requester=receipt.session_key)
    eventually(lambda: rt.runs(requester=receipt.session_key)[0]["state"] == "paused")
    report = rt.stop(receipt.session_key)
    assert (report.total, report.stopped) == (4, 4)
    assert {row["state"] for row in rt.runs(requester=middle["sessionKey"])} == {"cancelled"}


def test_a_stop_does_not_reach_siblings(rt: oc.Runtime, gate: Gate) -> None:
    first, second = (rt.spawn("wait", "hold", input=gate.place) for _ in range(2))
    gate.wait_for(2)
    rt.stop(first.session_key)
    gate.open()
    assert rt.result(first).status is oc.ResultStatus.CANCELLED
    assert rt.result(second).text == "through"


def test_the_stop_of_an_unknown_key_reports_nothing(rt: oc.Runtime) -> None:
    report = rt.stop("agent:echo:subagent:00000000-0000-0000-0000-000000000000", timeout=10)
    assert (report.total, report.rows) == (0, ())


def test_a_stop_that_comes_twice_finds_it_finished(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)
    assert rt.stop(receipt.session_key).stopped == 1
    again = rt.stop(receipt.session_key, timeout=10)
    assert (again.stopped, again.finished) == (0, 1)
    assert rt.result(receipt).status is oc.ResultStatus.CANCELLED


def test_two_stops_of_one_session_at_once_are_both_answered(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "deaf", input=gate.place)
    gate.wait_for(1)
    reports: list[oc.StopReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(rt.stop(receipt.session_key, timeout=20))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [report.total for report in reports] == [1, 1]


def test_a_later_run_under_the_same_top_level_key_is_not_bound(rt: oc.Runtime, gate: Gate) -> None:
    ended: list[object] = []

    def ask() -> None:
        try:
            rt.ask("asked_hold", str(gate.place))
        except RunCancelled as error:
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    gate.wait_for(1)
    assert rt.stop("agent:asked_hold:main").stopped == 1
    thread.join(30)
    assert len(ended) == 1
    gate.open()
    assert rt.ask("asked_hold", str(gate.place), timeout=30).text == "through"


def test_stopping_the_root_stops_all_that_hangs_under_it_and_nothing_later(rt: oc.Runtime, gate: Gate) -> None:
    receipts = [rt.spawn("wait", "hold", input=gate.place) for _ in range(3)]
    gate.wait_for(3)
    assert rt.stop(rt.root_key).stopped == 3
    assert {rt.result(receipt).status for receipt in receipts} == {oc.ResultStatus.CANCELLED}
    assert rt.map("echo", ["later"])[0].text == "later"


def test_check_raises_the_reason_and_the_turn_may_tidy_up(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "checking", input=gate.place)
    gate.wait_for(1)
    rt.stop(receipt.session_key)
    assert gate.lines("raised") == ["Cancelled stopped"]
    assert rt.result(receipt).status is oc.ResultStatus.CANCELLED


def test_a_stopped_child_does_not_announce(rt: oc.Runtime, gate: Gate) -> None:
    parent = rt.spawn("go", "no_join", input=gate.place)
    one, _ = gate.wait_for(2)
    [child] = [row for row in rt.runs(requester=parent.session_key) if row["runId"] == one]
    rt.stop(child["sessionKey"])
    gate.open()
    assert rt.result(parent).text == "returned"
    eventually(lambda: sum(r.get("type") == "task_completion" for r in rt.history(parent.session_key)) == 1)
    states = {row["runId"]: row["deliveryStatus"] for row in rt.runs(requester=parent.session_key)}
    assert states[one] == "not_required"
