"""The group *liveness*: live or stale, counts, restart and archive."""

from __future__ import annotations

from typing import Any

from openclaw_ray.core import archive_rules, liveness
from openclaw_ray.core.lifecycle import PauseReason, RunState
from openclaw_ray.core.subagent_rows import display_status

__all__ = ["liveness_case"]

_ENDED = {"ok": RunState.SUCCEEDED, "error": RunState.FAILED, "timeout": RunState.TIMED_OUT}


def liveness_case(case: dict[str, Any]) -> dict[str, Any]:
    """Section 3 of the README."""
    now = case["now"]
    match case["op"]:
        case "state":
            return {"state": liveness.liveness(_facts(case["run"], case.get("executor_live")), now).value}
        case "display_status":
            state, pause = _state(case["run"])
            return {"status": display_status(state, pause, case["pending_descendants"])}
        case "effective_end":
            run = _facts(case["run"])
            return {"ended_at": liveness.effective_end(run.started, run.timeout_ms, case["reported_end"])}
        case "active_count":
            runs = [_facts(run) for run in case["runs"]]
            return {"active": liveness.active_count(case["session_key"], runs, now)}
        case "pending_descendants":
            runs = [_facts(run) for run in case["runs"]]
            return {"pending": liveness.pending_descendants(case["session_key"], runs, now)}
        case "recovery":
            run = _facts(case["run"])
            action = liveness.recovery_action(
                interrupted=case["aborted_last_run"],
                stale=liveness.liveness(run, now) is liveness.Liveness.STALE,
                accepted_ago=case["accepted_resumes_ago"],
                tombstoned=case["tombstoned"],
            )
            return {"action": action.value}
        case "archive":
            due = archive_rules.archive_due(
                archive_after_minutes=case["archive_after_minutes"],
                cleanup=case["cleanup"],
                ended_ago=case["ended_ago"],
                announced=case["announced"],
                mode=case["mode"],
                bound=case["bound"],
            )
            return {"due": due}
    raise ValueError(case["op"])


def _facts(run: dict[str, Any], proven: bool | None = None) -> liveness.RunFacts:
    return liveness.RunFacts(
        run["createdAt"],
        run.get("startedAt"),
        run.get("endedAt"),
        round(1000 * run.get("runTimeoutSeconds", 0)),
        run.get("childSessionKey", ""),
        run.get("controllerSessionKey") or run.get("requesterSessionKey", ""),
        run.get("sessionStartedAt"),
        run.get("cleanupCompletedAt") is not None,
        bool(proven),
    )


def _state(run: dict[str, Any]) -> tuple[RunState, PauseReason | None]:
    """The run's state in our own words: one that has yielded is paused, whatever its last turn ended with."""
    if run.get("pauseReason") == "sessions_yield":
        return RunState.PAUSED, PauseReason.YIELDED
    if run.get("endedReason") == "subagent-killed":
        return RunState.CANCELLED, None
    if run.get("endedAt") is None:
        return (RunState.RUNNING if run.get("startedAt") else RunState.QUEUED), None
    return _ENDED[run["outcome"]["status"]], None
