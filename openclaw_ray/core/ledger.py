"""The task ledger: each run as a background task, what is wrong with some, and how long they are kept (SPEC.md H2, H4).

Pure: over the rows that `Runtime.runs` and `Runtime.sessions` give, whether a registry or a journal on disk gave them.

1. ``queued → running → succeeded | failed | timed_out | cancelled | lost``; a run that is paused is at work.
2. A task is kept for 7 days after its end, a lost one for 24 hours. An item of a named map is kept: a later try needs
   it.
3. A run counts as live for 2 hours, or its timeout and a minute, whichever is longer; beyond that only if a process is
   known to have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_ray.core.lifecycle import DeliveryState, PauseReason, RunState, SessionState
from openclaw_ray.core.results import camel_dict

__all__ = [
    "LOST_KEPT",
    "TASK_KEPT",
    "Finding",
    "audit",
    "expired",
    "kept_until",
    "stale_after",
    "task_row",
    "task_word",
]

TASK_KEPT = 7 * 24 * 3600
"""Seconds for which an ended task is kept."""
LOST_KEPT = 24 * 3600
"""Seconds for which a lost one is."""
_LIVE = 2 * 3600
_BESIDE_TIMEOUT = 60

Row = Mapping[str, Any]


def task_word(state: str) -> str:
    """The ledger's word for a run's state (1)."""
    return RunState.RUNNING.value if state == RunState.PAUSED else state


def kept_until(row: Row) -> int | None:
    """Until when an ended run's row is kept, in milliseconds since the epoch (2); `None` without an end."""
    ended = row.get("endedAt")
    if ended is None or not RunState(row["state"]).terminal or row.get("mapId") is not None:
        return None
    return int(ended) + 1000 * (LOST_KEPT if row["state"] == RunState.LOST else TASK_KEPT)


def expired(row: Row, now: int) -> bool:
    """Whether maintenance drops it; ``now`` in milliseconds since the epoch."""
    until = kept_until(row)
    pending = row.get("deliveryStatus") in (DeliveryState.PENDING, DeliveryState.SUSPENDED)
    return until is not None and until <= now and not pending


def task_row(row: Row) -> dict[str, Any]:
    """A run's row as the ledger shows it."""
    state = row["state"]
    return camel_dict(
        {
            "task_id": row["runId"],
            "run_id": row["runId"],
            "runtime": "subagent" if row.get("route") == "spawn" else row.get("route"),
            "status": task_word(state),
            "state": state,
            "pause_reason": row.get("pauseReason"),
            "child_session_key": row.get("sessionKey"),
            "requester_session_key": row.get("requesterKey"),
            "agent_id": row.get("agentId"),
            "label": row.get("label"),
            "task_name": row.get("taskName"),
            "task": row.get("task"),
            "created_at": row.get("createdAt"),
            "started_at": row.get("startedAt"),
            "ended_at": row.get("endedAt"),
            "runtime_ms": row.get("runtimeMs"),
            "run_timeout_seconds": row.get("runTimeoutSeconds"),
            "notify_policy": "silent" if row.get("deliveryStatus") == DeliveryState.NOT_REQUIRED else "done_only",
            "delivery_status": row.get("deliveryStatus"),
            "delivery_attempts": row.get("deliveryAttempts"),
            "delivery_error": row.get("deliveryError"),
            "suspended_at": row.get("suspendedAt"),
            "waiting_for": row.get("waitingFor"),
            "progress": row.get("progress"),
            "error": row.get("error"),
            "kept_until": kept_until(row),
        }
    )


# --------------------------------------------------------------------------- what is wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        code: ``no_process``, ``stale_running``, ``stale_queued``, ``orphaned``, ``lost``, ``delivery_failed``,
            ``delivery_stranded`` or ``times``.
        severity: ``error`` or ``warn``.
        text: what is seen, with the figures. ``remedy``: the command that mends it.
    """

    code: str
    severity: str
    task_id: str
    session_key: str
    text: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return camel_dict(
            {
                "code": self.code,
                "severity": self.severity,
                "task_id": self.task_id,
                "session_key": self.session_key,
                "detail": self.text,
                "remedy": self.remedy or None,
            }
        )


def stale_after(row: Row) -> int:
    """Seconds after which an un-ended run no longer counts as live by itself (3)."""
    return max(_LIVE, int(row.get("runTimeoutSeconds") or 0) + _BESIDE_TIMEOUT)


def audit(
    rows: Iterable[Row], session: Callable[[str], Row | None], now: int, *, running: bool | None = True
) -> Iterator[Finding]:
    """What is wrong with these runs.

    Args:
        session: gives a session's row by key.
        now: milliseconds since the epoch.
        running: whether their runtime runs; where it does not, nothing un-ended has a process. `None` if it does and
            the rows are from its journal, which does not tell of processes.
    """
    for row in rows:
        if RunState(row["state"]).terminal:
            yield from _ended(row, session)
        else:
            yield from _open(row, session, now, running)


def _open(row: Row, session: Callable[[str], Row | None], now: int, running: bool | None) -> Iterator[Finding]:
    task, key, state = row["runId"], row["sessionKey"], row["state"]
    cancel = f"openclaw-ray tasks cancel {task}"
    if session(key) is None:
        yield Finding("orphaned", "error", task, key, f"{state}, and its session is not known", cancel)
        return
    if running is None:
        return
    if not running:
        text = f"{state}, and its runtime does not run; the next start of that runtime closes it"
        yield Finding("no_process", "error", task, key, text)
        return
    needs_process = state == RunState.RUNNING or row.get("pauseReason") == PauseReason.WAITING
    alive = row.get("pid") is not None
    if needs_process and not alive:
        mend = "openclaw-ray tasks maintenance --apply"
        yield Finding("no_process", "error", task, key, f"{state}, and no process is known to have it", mend)
    age = (now - int(row.get("startedAt") or row["createdAt"])) // 1000
    if age > stale_after(row) and not alive:
        code = "stale_queued" if state == RunState.QUEUED else "stale_running"
        why = f"; it waits for {row['waitingFor']}" if row.get("waitingFor") else ""
        yield Finding(code, "warn", task, key, f"{state} for {age} s, without a process{why}", cancel)


def _ended(row: Row, session: Callable[[str], Row | None]) -> Iterator[Finding]:
    task, key, state, delivery = row["runId"], row["sessionKey"], row["state"], row.get("deliveryStatus")
    started, ended = row.get("startedAt"), row.get("endedAt")
    if ended is None or (started is not None and ended < started):
        yield Finding("times", "warn", task, key, f"{state}, started at {started}, ended at {ended}")
    if state == RunState.LOST:
        error = row.get("error") or {}
        yield Finding("lost", "warn", task, key, str(error.get("message") or "nobody knows its outcome"))
    retry = f"openclaw-ray tasks retry {task} (or dismiss)"
    if delivery in (DeliveryState.FAILED, DeliveryState.SUSPENDED):
        why = f": {row['deliveryError']}" if row.get("deliveryError") else ""
        yield Finding("delivery_failed", "error", task, key, f"{state}, its announce is {delivery}{why}", retry)
    elif delivery == DeliveryState.PENDING:
        requester = str(row.get("requesterKey") or "")
        of = session(requester)
        where = None if of is None else of.get("status")
        if where in (None, SessionState.ENDED, SessionState.ARCHIVED):
            text = f"{state}, its announce is pending, and its requester {requester} is {where or 'not known'}"
            yield Finding("delivery_stranded", "error", task, key, text, retry)
