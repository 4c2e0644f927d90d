"""``sessions_yield``: end the turn and be called again when the children have settled (SPEC.md B3, PROTOCOL.md 5.4).

``yielded`` is the end of the turn, so no caller sees it as a result: `TurnYielded` is raised, and the result is a row
of the transcript, where the resumed turn finds its private message. A batch takes in what is pending of earlier turns,
too. A turn that has no child of its own to wait for is told of theirs (``already_pending``), and goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.text import clean
from openclaw_ray.agents.tools.subagents_stop import PAGE
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import TurnYielded
from openclaw_ray.core.lifecycle import DeliveryState, RunState
from openclaw_ray.core.results import camel_dict
from openclaw_ray.core.subagent_rows import ChildFacts
from openclaw_ray.core.tool_params import Kind, Parameter
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SESSIONS_YIELD"]

_NAME = "sessions_yield"
_DEFAULT = "Turn yielded."


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = SESSIONS_YIELD.read(given)
    if "waitFor" in values:
        return _error("waitFor: not yet in effect (sessions take no messages from each other); leave it out")
    if values.get("acknowledgment", "").strip():
        return _error("acknowledgment: not yet in effect (there is no channel to say it on); leave it out")
    pending = caller.children()
    if not pending:
        children = yield caller.port.look("children", PAGE)
        earlier = [_row(child) for child in children if child.active and child.delivery != DeliveryState.NOT_REQUIRED]
        if earlier:
            return ToolResult(_NAME, {"status": "already_pending", "pendingChildren": earlier})
        return _error("nothing pending: there is no child to wait for; spawn first, or end the turn with an answer")
    message = values.get("message", "").strip() or _DEFAULT
    result = {"tool": _NAME, "status": "yielded", "message": message, "pending": len(pending)}
    caller.port.append("tool", clean(json.dumps(result, ensure_ascii=False)))
    raise TurnYielded(None)


def _row(child: ChildFacts) -> dict[str, Any]:
    state = "paused" if child.state == RunState.PAUSED else "running"
    return camel_dict(
        {
            "run_id": child.run_id,
            "child_session_key": child.session_key,
            "label": child.label,
            "started_at": child.started_at,
            "state": "completing" if RunState(child.state).terminal else state,
        }
    )


def _error(text: str) -> ToolResult:
    return ToolResult(_NAME, {"status": "error", "error": text})


SESSIONS_YIELD = Tool(
    _NAME,
    "End your turn here and wait: you are called again, once, when all your children have settled.",
    (
        Parameter("message", Kind.TEXT, "A note to yourself for when you are called again."),
        Parameter("acknowledgment", Kind.TEXT, offered=False),
        Parameter("waitFor", Kind.TEXT, words=("message",), offered=False),
    ),
    _steps,
)
"""The tool."""
