"""Conversations of sessions as rows (SPEC.md B8, `/agents`)."""

from __future__ import annotations

from typing import Any

from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import ThreadState
from openclaw_ray.core.results import camel_dict

__all__ = ["thread_rows"]


def thread_rows(s: State) -> list[dict[str, Any]]:
    """What is being bound, is bound, or is still to be unbound, oldest first; times in milliseconds since the epoch."""
    rows = []
    for thread in s.threads.values():
        if thread.state is ThreadState.OVER:
            continue
        session = find_session(s, thread.session)
        rows.append(
            camel_dict(
                {
                    "session_key": thread.session,
                    "agent_id": thread.agent,
                    "label": None if session is None else session.label,
                    "channel": thread.channel,
                    "account": thread.account or None,
                    "conversation": thread.conversation or None,
                    "mode": thread.kind.value,
                    "state": thread.state.value,
                    "bound_at": round(thread.created * 1000),
                    "used_at": round(thread.used * 1000),
                    "reason": thread.why or None,
                    "bound_by": thread.binder or None,
                    "idle_hours": thread.idle_hours,
                    "max_age_hours": thread.max_age_hours,
                }
            )
        )
    return rows
