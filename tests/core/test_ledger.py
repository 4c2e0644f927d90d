"""core.ledger: words, times and findings of the task ledger."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.ledger import LOST_KEPT, TASK_KEPT, audit, expired, kept_until, stale_after, task_row, task_word
from openclaw_ray.core.lifecycle import RunState

NOW = 10_000_000_000
HOUR = 3_600_000


def row(state: str = "succeeded", **more: Any) -> dict[str, Any]:
    times = {"createdAt": NOW - HOUR, "startedAt": NOW - HOUR}
    ended = {"endedAt": NOW - 1000} if RunState(state).terminal else {}
    named = {"runId": "r", "sessionKey": "agent:w:subagent:1", "requesterKey": "agent:main:main", "route": "spawn"}
    return {**named, "state": state, "deliveryStatus": "delivered", **times, **ended, **more}


def codes(*rows: dict[str, Any], sessions: Any = None, running: bool | None = True) -> list[str]:
    known = {"agent:w:subagent:1": {"status": "active"}, "agent:main:main": {"status": "passive"}}
    known |= sessions or {}
    return [finding.code for finding in audit(rows, known.get, NOW, running=running)]


@pytest.mark.parametrize(
    ("state", "word"), [(state.value, "running" if state == "paused" else state.value) for state in RunState]
)
def test_the_words_are_those_of_background_tasks(state: str, word: str) -> None:
    assert task_word(state) == word
    assert task_row(row(state))["status"] == word


def test_a_row_has_the_names_of_the_ledger() -> None:
    made = task_row(row("running", pid=7, label="L", waitingFor=None))
    assert (made["taskId"], made["childSessionKey"], made["requesterSessionKey"]) == (
        "r",
        "agent:w:subagent:1",
        "agent:main:main",
    )
    assert (made["notifyPolicy"], made["runtime"], "keptUntil" in made) == ("done_only", "subagent", False)
    assert task_row(row(deliveryStatus="not_required"))["notifyPolicy"] == "silent"


@pytest.mark.parametrize(("state", "kept"), [("succeeded", TASK_KEPT), ("failed", TASK_KEPT), ("lost", LOST_KEPT)])
def test_a_task_is_kept_for_its_time(state: str, kept: int) -> None:
    ended = NOW - 1000 * kept
    assert kept_until(row(state, endedAt=ended)) == NOW
    assert expired(row(state, endedAt=ended), NOW)
    assert not expired(row(state, endedAt=ended + 1), NOW)


def test_what_is_at_work_named_or_not_yet_told_is_kept() -> None:
    old = NOW - 1000 * TASK_KEPT
    assert not expired(row("running", createdAt=old), NOW)
    assert not expired(row(endedAt=old, mapId="nightly"), NOW)
    assert not expired(row(endedAt=old, deliveryStatus="pending"), NOW)


def test_a_run_is_live_for_two_hours_or_its_timeout_and_a_minute() -> None:
    assert stale_after(row("running")) == 7200
    assert stale_after(row("running", runTimeoutSeconds=7200)) == 7260


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (row(), []),
        (row("running", pid=7, startedAt=NOW - 9 * HOUR), []),
        (row("running"), ["no_process"]),
        (row("running", startedAt=NOW - 3 * HOUR), ["no_process", "stale_running"]),
        (row("paused", pauseReason="waiting"), ["no_process"]),
        (row("paused", pauseReason="yielded"), []),
        (row("queued"), []),
        (row("queued", createdAt=NOW - 3 * HOUR, startedAt=None), ["stale_queued"]),
        (row("lost"), ["lost"]),
        (row(startedAt=NOW, endedAt=NOW - 1), ["times"]),
        (row(deliveryStatus="failed"), ["delivery_failed"]),
        (row(deliveryStatus="suspended"), ["delivery_failed"]),
        (row(deliveryStatus="pending"), []),
        (row(deliveryStatus="pending", requesterKey="agent:x:main"), ["delivery_stranded"]),
        (row(deliveryStatus="pending", requesterKey="gone"), ["delivery_stranded"]),
        (row("running", sessionKey="agent:w:subagent:9"), ["orphaned"]),
    ],
)
def test_what_is_wrong_is_found(found: dict[str, Any], expected: list[str]) -> None:
    assert codes(found, sessions={"agent:x:main": {"status": "ended"}}) == expected


def test_without_its_runtime_nothing_that_is_un_ended_has_a_process() -> None:
    rows = [row("queued"), row("paused", pauseReason="yielded"), row()]
    assert codes(*rows, running=False) == ["no_process", "no_process"]


def test_a_journal_alone_does_not_tell_of_processes() -> None:
    assert codes(row("running"), row("lost"), running=None) == ["lost"]


def test_a_finding_names_the_way_out() -> None:
    [found] = audit([row(deliveryStatus="failed")], {"agent:w:subagent:1": {}}.get, NOW)
    assert found.to_json() == {
        "code": "delivery_failed",
        "severity": "error",
        "taskId": "r",
        "sessionKey": "agent:w:subagent:1",
        "detail": "succeeded, its announce is failed",
        "remedy": "openclaw-ray tasks retry r (or dismiss)",
    }
