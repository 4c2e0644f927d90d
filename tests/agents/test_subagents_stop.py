"""``subagents`` cancel, kill and wait, over a port without a runtime (SPEC.md B4, G1, G2; SCENARIOS.md 28)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from fake_port import FakePort
from turn_drive import Drive

from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.lifecycle import ResultStatus, RunState
from openclaw_ray.core.results import StopReport, StopRow
from openclaw_ray.core.subagent_rows import ChildFacts, KinFacts

NOW = round(time.time() * 1000)
ONE = ChildFacts("run-1", "agent:w:subagent:1", "w", "running", "count", NOW, "pending", "counter", "first_part")
TWO = replace(ONE, run_id="run-2", session_key="agent:w:subagent:2", label="other", task_name="second_part")
OVER = replace(ONE, run_id="done-3", session_key="agent:w:subagent:3", label="past", task_name=None)
OVER = replace(OVER, state="succeeded", ended_at=NOW)
DEEP = replace(ONE, run_id="deep-4", session_key="agent:w:subagent:4")


def report(*rows: tuple[str, str], finished: int = 0) -> StopReport:
    """What a stop reports: (run, outcome) for each run."""
    words = [word for _, word in rows]
    made = tuple(StopRow(f"agent:w:subagent:{run[-1]}", run, word) for run, word in rows)
    stopped = words.count("stopped") + words.count("forced")
    return StopReport(
        "k",
        stopped,
        words.count("forced"),
        finished + words.count("finished"),
        words.count("failed"),
        made,
    )


@pytest.fixture
def at_work(port: FakePort) -> FakePort:
    """Two children at work, one that has ended, and one further below."""
    port.views = {
        "children": [TWO, ONE, OVER],
        "kin": [
            KinFacts("below", DEEP),
            KinFacts("itself", replace(ONE, run_id="run-0", session_key="agent:worker:subagent:0")),
            KinFacts("above", replace(ONE, run_id="top", session_key="agent:main:main")),
            KinFacts("other", replace(ONE, run_id="sib", session_key="agent:w:subagent:sibling")),
        ],
    }
    port.reports = {
        "run-1": report(("run-1", "stopped"), ("deep-4", "forced")),
        "run-2": report(("run-2", "stopped")),
        "done-3": report(finished=1),
        "deep-4": report(("deep-4", "stopped")),
    }
    return port


@pytest.mark.parametrize("target", ["run-1", "counter", "COUNT", "first_part", "agent:w:subagent:1", "2"])
def test_a_child_is_cancelled_by_any_of_its_names(drive: Drive, at_work: FakePort, target: str) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="cancel", target=target)
        assert (result.status, result["taskId"], result["runId"]) == ("cancelled", "run-1", "run-1")
        assert (result["killed"], result["cascadeKilled"], result["forced"]) == (1, 1, 1)
        assert [row["outcome"] for row in result["sessions"]] == ["stopped", "forced"]

    drive.ok(body, at_work)
    assert at_work.stopped == ["run-1"]


@pytest.mark.parametrize("name", ["taskId", "runId", "task_id", "run_id"])
def test_a_task_and_a_run_are_the_same(drive: Drive, at_work: FakePort, name: str) -> None:
    async def body(turn: Any) -> None:
        assert (await turn.call("subagents", action="kill", **{name: "run-2"})).to_json()["labels"] == ["other"]

    drive.ok(body, at_work)


@pytest.mark.parametrize("word", ["all", "*", "ALL"])
def test_all_that_is_active_is_killed_side_by_side(drive: Drive, at_work: FakePort, word: str) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="kill", target=word)
        assert (result.status, result["killed"], sorted(result["labels"])) == ("ok", 2, ["counter", "other"])
        assert (result["cascadeKilled"], result["failed"]) == (1, 0)

    drive.ok(body, at_work)
    assert sorted(at_work.stopped) == ["run-1", "run-2"]
    assert at_work.log[0] == "look children"


def test_a_leaf_kills_nobody(drive: Drive, port: FakePort) -> None:
    port.views = {"children": [], "kin": []}

    async def body(turn: Any) -> None:
        killed = await turn.call("subagents", action="kill", target="all")
        assert (killed.status, killed["killed"]) == ("ok", 0)
        for target in ("last", "1", "nobody", "agent:w:subagent:1"):
            assert (await turn.call("subagents", action="kill", target=target)).status == "error"

    drive.ok(body, port)
    assert port.stopped == []


@pytest.mark.parametrize("action", ["cancel", "kill"])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("run-0", "this session itself"),
        ("agent:worker:subagent:0", "this session itself"),
        ("agent:main:main", "that this one works for"),
        ("agent:w:subagent:SIBLING", "not below"),
        ("sib", "not below"),
    ],
)
def test_what_is_not_below_is_forbidden(drive: Drive, at_work: FakePort, action: str, target: str, words: str) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action=action, target=target)
        assert result.status == "forbidden"
        assert words in result.error

    drive.ok(body, at_work)
    assert at_work.stopped == []


def test_what_is_further_below_may_be_stopped_by_its_key_or_run_id(drive: Drive, at_work: FakePort) -> None:
    async def body(turn: Any) -> None:
        for target in ("deep-4", "agent:w:subagent:4"):
            assert (await turn.call("subagents", action="cancel", target=target))["runId"] == "deep-4"

    drive.ok(body, at_work)


def test_what_has_ended_is_done_and_its_descendants_are_still_stopped(drive: Drive, at_work: FakePort) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="kill", target="past")
        assert (result.status, result["killed"], result["cascadeKilled"]) == ("done", 0, 0)
        cancelled = await turn.call("subagents", action="cancel", target="past")
        assert (cancelled.status, cancelled.error) == ("error", "nothing to cancel: done-3 (succeeded)")
        at_work.reports["done-3"] = report(("deep-4", "stopped"), finished=1)
        result = await turn.call("subagents", action="kill", target="past")
        assert (result.status, result["killed"], result["cascadeKilled"]) == ("done", 0, 1)
        assert (await turn.call("subagents", action="cancel", target="past")).status == "cancelled"

    drive.ok(body, at_work)


def test_what_the_journal_says_counts_not_what_was_seen_before(drive: Drive, at_work: FakePort) -> None:
    at_work.reports["run-1"] = report(finished=1)  # it ended by itself before the mark was written

    async def body(turn: Any) -> None:
        assert (await turn.call("subagents", action="kill", target="counter")).status == "done"

    drive.ok(body, at_work)


def test_a_part_that_cannot_be_stopped_is_never_a_clean_kill(drive: Drive, at_work: FakePort) -> None:
    at_work.reports["run-1"] = report(("run-1", "stopped"), ("deep-4", "failed"))

    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="kill", target="all")
        assert (result.status, result["killed"], result["failed"]) == ("error", 2, 1)
        assert result["errors"] == ["deep-4 could not be confirmed as ended"]

    drive.ok(body, at_work)


def test_a_stop_of_the_caller_ends_its_wait_for_a_kill(drive: Drive, at_work: FakePort) -> None:
    at_work.reports.clear()
    at_work.stop_settles = False

    async def body(turn: Any) -> None:
        at_work.thread(at_work.cancel)
        await turn.call("subagents", action="kill", target="all")

    assert drive(body, at_work).outcome.state is RunState.CANCELLED


def test_a_call_that_says_too_little_or_too_much(drive: Drive, at_work: FakePort) -> None:
    async def body(turn: Any) -> None:
        nothing = await turn.call("subagents", action="kill")
        assert (nothing.status, nothing["reason"]) == ("error", "missing")
        with pytest.raises(ToolInputError, match="one of them"):
            await turn.call("subagents", action="kill", target="1", taskId="run-1")
        with pytest.raises(ToolInputError, match="timeoutSeconds"):
            await turn.call("subagents", action="kill", timeoutSeconds=3)
        with pytest.raises(ToolInputError, match="taskIds"):
            await turn.call("subagents", action="wait", taskIds=[])
        with pytest.raises(ToolInputError, match="timeoutSeconds"):
            await turn.call("subagents", action="wait", timeoutSeconds=61)

    drive.ok(body, at_work)
    assert at_work.stopped == []


# ---------------------------------------------------------------------- wait


def test_a_wait_ends_with_the_last_of_them_and_consumes_nothing(drive: Drive, at_work: FakePort) -> None:
    def ends() -> None:
        at_work.views["children"] = [replace(f, state="succeeded", ended_at=NOW) for f in (TWO, ONE, OVER)]
        at_work.settle("run-1")

    at_work.on_pause = [ends]

    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="wait")
        assert result["reason"] == "completed"
        assert sorted(row["runId"] for row in result["tasks"]) == ["run-1", "run-2"]

    drive.ok(body, at_work)
    assert (at_work.consumed, at_work.stopped, at_work.pauses, at_work.resumes) == ([], [], 1, 1)


def test_one_that_did_not_end_well_wants_attention_at_once(drive: Drive, at_work: FakePort) -> None:
    def fails() -> None:
        at_work.views["children"] = [TWO, replace(ONE, state="failed", ended_at=NOW), OVER]
        at_work.settle("run-1", status=ResultStatus.ERROR)

    at_work.on_pause = [fails]

    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="wait", runIds=["run-1", "run-2"], timeoutSeconds=60)
        assert result["reason"] == "attention"

    drive.ok(body, at_work)


def test_a_wait_for_what_is_no_child_is_told_so_at_once(drive: Drive, at_work: FakePort) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="wait", taskIds=["run-1", "sib"], timeoutSeconds=60)
        assert (result["reason"], [row["runId"] for row in result["tasks"]]) == ("unavailable", ["run-1"])
        assert "sib" in result["error"]

    drive.ok(body, at_work)
    assert at_work.pauses == 0


def test_a_wait_without_time_tells_how_they_stand(drive: Drive, at_work: FakePort) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="wait", taskIds=["run-1"], timeoutSeconds=0)
        assert (result["reason"], result["tasks"][0]["status"]) == ("timeout", "running")
        past = await turn.call("subagents", action="wait", taskIds=["done-3"])
        assert past["reason"] == "completed"

    drive.ok(body, at_work)
