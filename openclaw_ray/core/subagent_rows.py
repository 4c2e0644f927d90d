"""Rows of ``subagents list``: the children of a session as it is shown them (SPEC.md B4).

Status and figures come from the runtime; texts that an agent or a user wrote are data, quoted and cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openclaw_ray.core.announce_text import duration
from openclaw_ray.core.ledger import task_word
from openclaw_ray.core.lifecycle import PauseReason, ResultStatus, RunState, display_word, result_status
from openclaw_ray.core.results import camel_dict

__all__ = [
    "RECENT_DEFAULT",
    "RECENT_MAX",
    "ChildFacts",
    "KinFacts",
    "child_row",
    "display_status",
    "list_children",
    "shown",
    "shown_label",
]

RECENT_DEFAULT = 30
"""Minutes for which an ended child is recent."""
RECENT_MAX = 1440
"""The most minutes that may be asked for."""
_LABEL_MAX = 48
_TASK_MAX = 72
_OUTCOME = {
    ResultStatus.OK: "ok",
    ResultStatus.ERROR: "error",
    ResultStatus.TIMEOUT: "timeout",
    ResultStatus.CANCELLED: "error",
    ResultStatus.LOST: "unknown",
}
"""A killed run is an error by that record (SPEC.md G1)."""


@dataclass(frozen=True, slots=True)
class ChildFacts:
    """One child run as the registry knows it. Times are milliseconds since the epoch.

    Attributes:
        pending: un-ended runs below it.
        waiting_for: of a queued run, what it waits for, with the figures.
        children: session keys of its own children that live, or ended at most 30 minutes ago.
        total_tokens: of its subtree, `None` if nobody reported any.
        wake_armed: its requester will be called again for its end.
        replaces: the runs that were steered into it.
        model: that it was made to use, `None` if nothing was said of one.
        error: why it did not end well.
    """

    run_id: str
    session_key: str
    agent_id: str
    state: str
    task: str
    created_at: int
    delivery: str
    label: str | None = None
    task_name: str | None = None
    pause: str | None = None
    pending: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    waiting_for: str | None = None
    progress: str | None = None
    children: tuple[str, ...] = ()
    total_tokens: int | None = None
    wake_armed: bool = False
    replaces: tuple[str, ...] = ()
    model: str | None = None
    error: str | None = None

    @property
    def generation(self) -> int:
        """How often its task was steered before it (SPEC.md G4)."""
        return len(self.replaces)

    @property
    def active(self) -> bool:
        """It has not ended, or something below it has not."""
        return self.pending > 0 or not RunState(self.state).terminal


@dataclass(frozen=True, slots=True)
class KinFacts:
    """A run as a session that may not be its requester is told of it.

    Attributes:
        kinship: what its session is to the one that asks: ``below``, ``itself``, ``above`` or ``other``.
        facts: the run; of one that is not below, no more is to be told than that.
    """

    kinship: str
    facts: ChildFacts


def display_status(state: RunState, pause: PauseReason | None, pending: int) -> str:
    """The status words of a list (SPEC.md B4)."""
    if state is RunState.CANCELLED:
        return display_word(state)
    if pending > 0:
        return f"waiting on {pending} {'child' if pending == 1 else 'children'}"
    if state is RunState.PAUSED:
        waits = pause in (PauseReason.YIELDED, PauseReason.MESSAGE)
        return "waiting for external continuation" if waits else "running"
    return display_word(state)


def shown_label(facts: ChildFacts) -> str:
    """What a child is called in lists: its label, else its task name, else its task."""
    return _cut(facts.label or facts.task_name or facts.task, _LABEL_MAX)


def child_row(facts: ChildFacts, index: int, now: int) -> dict[str, Any]:
    """One row; ``index`` is 1-based, ``now`` in milliseconds since the epoch."""
    pause = None if facts.pause is None else PauseReason(facts.pause)
    runtime = None
    if facts.started_at is not None:
        runtime = max(0, (facts.ended_at or now) - facts.started_at)
    row = camel_dict(
        {
            "index": index,
            "run_id": facts.run_id,
            "session_key": facts.session_key,
            "agent_id": facts.agent_id,
            "task_name": facts.task_name,
            "label": shown_label(facts),
            "task": _cut(facts.task, _TASK_MAX),
            "status": display_status(RunState(facts.state), pause, facts.pending),
            "pending_descendants": facts.pending,
            "runtime": duration(runtime),
            "runtime_ms": runtime,
            "model": facts.model,
            "total_tokens": facts.total_tokens,
            "started_at": facts.started_at,
            "ended_at": facts.ended_at,
            "delivery_status": facts.delivery,
            "generation": facts.generation or None,
            "execution": _execution(facts, runtime),
        }
    )
    row["childSessions"] = list(facts.children)
    return row


def _execution(facts: ChildFacts, runtime: int | None) -> dict[str, Any]:
    """How the run stands, by the words of the record of a run (SPEC.md H1), with our own state beside them."""
    state = RunState(facts.state)
    outcome = None
    if state.terminal:
        outcome = camel_dict({"status": _OUTCOME[result_status(state)], "error": facts.error, "elapsed_ms": runtime})
    return camel_dict(
        {
            "status": "terminal" if state.terminal else "queued" if state is RunState.QUEUED else "running",
            "state": facts.state,
            "started_at": facts.started_at,
            "ended_at": facts.ended_at,
            "outcome": outcome,
            "waiting_for": facts.waiting_for,
            "progress": facts.progress,
        }
    )


def shown(children: Iterable[ChildFacts], now: int, recent_minutes: int) -> tuple[list[ChildFacts], list[ChildFacts]]:
    """The active children and those that ended lately, newest start first: the order that a list's numbers go by."""
    ordered = sorted(children, key=lambda facts: (facts.started_at or facts.created_at, facts.run_id), reverse=True)
    since = now - recent_minutes * 60_000
    active = [facts for facts in ordered if facts.active]
    return active, [facts for facts in ordered if not facts.active and (facts.ended_at or now) >= since]


def list_children(children: Iterable[ChildFacts], now: int, recent_minutes: int) -> dict[str, Any]:
    """``total``, ``active``, ``recent``, ``tasks`` and ``text`` of a list: newest start first, numbered through.

    Args:
        now: milliseconds since the epoch.
        recent_minutes: how long an ended child is shown.
    """
    active, recent = shown(children, now, recent_minutes)
    tasks = [_task(facts) for facts in (*active, *recent)]
    rows = [child_row(facts, index, now) for index, facts in enumerate((*active, *recent), 1)]
    at_work, ended = rows[: len(active)], rows[len(active) :]
    text = "\n".join(
        [
            "active subagents:",
            *(_lines(at_work)),
            f"recent (last {recent_minutes} minutes):",
            *(_lines(ended)),
        ]
    )
    return {"total": len(rows), "active": at_work, "recent": ended, "tasks": tasks, "text": text}


def _task(facts: ChildFacts) -> dict[str, Any]:
    """A child as a row of the task ledger (SPEC.md H2)."""
    return camel_dict(
        {
            "task_id": facts.run_id,
            "run_id": facts.run_id,
            "child_session_key": facts.session_key,
            "status": task_word(facts.state),
            "label": shown_label(facts),
            "delivery_status": facts.delivery,
        }
    )


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['index']}. {json.dumps(row['label'], ensure_ascii=False)} ({row['status']}, {row['runtime']}) "
        f"{row['sessionKey']}"
        for row in rows
    ] or ["(none)"]


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
