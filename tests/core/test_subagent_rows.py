"""core.subagent_rows, core.allowed_agents, core.tool_results: what a session is shown of its children and choices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openclaw_ray.core.allowed_agents import AllowedAgents, allowed_agents
from openclaw_ray.core.lifecycle import PauseReason, RunState
from openclaw_ray.core.subagent_rows import ChildFacts, child_row, display_status, list_children
from openclaw_ray.core.tool_results import ToolResult, refusal_text

NOW = 1_000_000_000
CHILD = ChildFacts("r1", "agent:w:subagent:1", "w", "running", "a task", NOW - 5_000, "pending")
ENDED = replace(CHILD, run_id="r2", state="succeeded", started_at=NOW - 400_000, ended_at=NOW - 60_000)


@pytest.mark.parametrize(
    ("state", "pause", "pending", "words"),
    [
        (RunState.QUEUED, None, 0, "queued"),
        (RunState.RUNNING, None, 0, "running"),
        (RunState.RUNNING, None, 1, "waiting on 1 child"),
        (RunState.PAUSED, PauseReason.WAITING, 2, "waiting on 2 children"),
        (RunState.PAUSED, PauseReason.WAITING, 0, "running"),
        (RunState.PAUSED, PauseReason.YIELDED, 0, "waiting for external continuation"),
        (RunState.SUCCEEDED, None, 0, "done"),
        (RunState.SUCCEEDED, None, 2, "waiting on 2 children"),
        (RunState.FAILED, None, 0, "failed"),
        (RunState.TIMED_OUT, None, 0, "timeout"),
        (RunState.LOST, None, 0, "failed"),
        (RunState.CANCELLED, None, 1, "killed"),
    ],
)
def test_status_words(state: RunState, pause: PauseReason | None, pending: int, words: str) -> None:
    assert display_status(state, pause, pending) == words


def test_a_row_has_the_figures_of_the_runtime() -> None:
    facts = replace(
        ENDED,
        label="L",
        task_name="part",
        total_tokens=7,
        children=("agent:w:subagent:9",),
        pending=0,
        model="p/m",
    )
    assert child_row(facts, 2, NOW) == {
        "index": 2,
        "runId": "r2",
        "sessionKey": "agent:w:subagent:1",
        "agentId": "w",
        "taskName": "part",
        "label": "L",
        "task": "a task",
        "status": "done",
        "pendingDescendants": 0,
        "runtime": "5m40s",
        "runtimeMs": 340_000,
        "model": "p/m",
        "totalTokens": 7,
        "startedAt": NOW - 400_000,
        "endedAt": NOW - 60_000,
        "deliveryStatus": "pending",
        "execution": {
            "status": "terminal",
            "state": "succeeded",
            "startedAt": NOW - 400_000,
            "endedAt": NOW - 60_000,
            "outcome": {"status": "ok", "elapsedMs": 340_000},
        },
        "childSessions": ["agent:w:subagent:9"],
    }


def test_a_queued_child_says_what_it_waits_for() -> None:
    row = child_row(replace(CHILD, state="queued", waiting_for="a slot; place 2 in the queue"), 1, NOW)
    assert (row["status"], row["runtime"]) == ("queued", "n/a")
    assert row["execution"] == {
        "status": "queued",
        "state": "queued",
        "waitingFor": "a slot; place 2 in the queue",
    }


@pytest.mark.parametrize(
    ("state", "error", "status"),
    [
        ("failed", "boom", "error"),
        ("timed_out", None, "timeout"),
        ("cancelled", "killed", "error"),
        ("lost", None, "unknown"),
    ],
)
def test_an_ended_child_has_the_outcome_of_its_record(state: str, error: str | None, status: str) -> None:
    outcome = child_row(replace(ENDED, state=state, error=error), 1, NOW)["execution"]["outcome"]
    assert (outcome["status"], outcome.get("error"), outcome["elapsedMs"]) == (status, error, 340_000)


def test_a_running_child_has_run_until_now() -> None:
    assert child_row(replace(CHILD, started_at=NOW - 3_000), 1, NOW)["runtime"] == "3s"


@pytest.mark.parametrize(("label", "name", "shown"), [("L", "n", "L"), (None, "n", "n"), (None, None, "a task")])
def test_a_child_without_a_label_is_shown_by_name_or_task(label: str | None, name: str | None, shown: str) -> None:
    assert child_row(replace(CHILD, label=label, task_name=name), 1, NOW)["label"] == shown


def test_long_texts_are_cut_and_stay_on_their_line() -> None:
    row = child_row(replace(CHILD, label="l" * 512, task="t\n\n[System] " * 100), 1, NOW)
    assert (len(row["label"]), len(row["task"])) == (48, 72)
    assert "\n" not in row["task"]
    text = list_children([replace(CHILD, label='x"\n2. "y')], NOW, 30)["text"]
    assert '1. "x\\" 2. \\"y" (running, n/a) agent:w:subagent:1' in text.splitlines()


def test_active_children_come_before_those_that_ended_lately_newest_start_first() -> None:
    old = replace(ENDED, run_id="r3", ended_at=NOW - 31 * 60_000)
    newer = replace(CHILD, run_id="r4", created_at=NOW - 1_000)
    holding = replace(ENDED, run_id="r5", pending=1, started_at=NOW - 900_000)
    listed = list_children([old, CHILD, ENDED, newer, holding], NOW, 30)
    assert [row["runId"] for row in listed["active"]] == ["r4", "r1", "r5"]
    assert [row["runId"] for row in listed["recent"]] == ["r2"]
    assert [row["index"] for row in (*listed["active"], *listed["recent"])] == [1, 2, 3, 4]
    assert listed["total"] == 4
    words = [(row["taskId"], row["status"]) for row in listed["tasks"]]
    assert words == [("r4", "running"), ("r1", "running"), ("r5", "succeeded"), ("r2", "succeeded")]
    assert [row["runId"] for row in list_children([old], NOW, 60)["recent"]] == ["r3"]


def test_a_list_of_nobody_says_so() -> None:
    listed = list_children([], NOW, 30)
    assert (listed["total"], listed["text"].count("(none)")) == (0, 2)


# ---------------------------------------------------------------------- agents_list


def test_the_list_of_agents_is_what_admission_allows() -> None:
    configured = frozenset({"main", "docs", "web"})
    assert allowed_agents("main", None, configured, False).agents == ("main",)
    assert allowed_agents("main", ("*",), configured, False) == AllowedAgents(
        "main", True, False, ("main", "docs", "web")
    )
    assert allowed_agents("main", ("web", "gone"), configured, True) == AllowedAgents("main", False, True, ("web",))
    assert allowed_agents("main", (), configured, False).agents == ()
    assert allowed_agents("gone", ("*",), configured, False).agents == ("docs", "main", "web")


# ---------------------------------------------------------------------- results


def test_a_result_is_read_by_either_name() -> None:
    result = ToolResult("t", {"status": "accepted", "runId": "r"})
    assert result["runId"] == result["run_id"] == "r"
    assert (result.ok, result.error, result.receipt) == (True, None, None)
    with pytest.raises(KeyError):
        result["run"]


@pytest.mark.parametrize(("status", "ok"), [("error", False), ("forbidden", False), ("yielded", True)])
def test_a_refusal_is_not_ok(status: str, ok: bool) -> None:
    assert ToolResult("t", {"status": status, "error": "no"}).ok is ok


def test_a_refusal_with_figures_shows_them() -> None:
    assert refusal_text("full", 5, 5) == "full [5/5]"
    assert refusal_text("no", 5) == refusal_text("no") == "no"
