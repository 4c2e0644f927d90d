"""``sessions_yield``: end the turn and be called again when the children have settled (SPEC.md B3, PROTOCOL.md 5.4).

1. ``yielded`` is the end of the turn, so no caller sees it as a result: `TurnYielded` is raised, and the result is a
   row of the transcript, where the resumed turn finds its private message.
2. The batch is that of the children of this turn (`openclaw_ray.core.protocol.yielding`). A turn that has none of its
   own to wait for is told of those of earlier turns (``already_pending``, with whether a wake will tell of them), and
   goes on.
3. ``waitFor: "message"`` needs no children: a sub-agent is called again with the next message to it, or when its batch
   is complete, whichever comes first. It is refused in a top-level session, whose messages are runs of their own.
4. ``acknowledgment``: there is no channel to say it on. It is in the row, and in the event of the pause, for whoever
   watches; nobody is told it as a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.text import bounded, clean
from openclaw_ray.agents.tools.subagents_stop import PAGE
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import CannotWait, TurnYielded
from openclaw_ray.core.lifecycle import DeliveryState, RunState
from openclaw_ray.core.protocol.batch import ACKNOWLEDGMENT_LIMIT, MESSAGE
from openclaw_ray.core.results import camel_dict
from openclaw_ray.core.subagent_rows import ChildFacts
from openclaw_ray.core.tool_params import Kind, Parameter
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SESSIONS_YIELD"]

_NAME = "sessions_yield"
_DEFAULT = "Turn yielded."


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = SESSIONS_YIELD.read(given)
    wait_for = values.get("waitFor", "")
    if wait_for and caller.session.depth == 0:
        return _error(str(CannotWait(caller.session.key)))
    pending = caller.children()
    if not pending and not wait_for:
        children = yield caller.port.look("children", PAGE)
        earlier = [_row(child) for child in children if child.active and child.delivery != DeliveryState.NOT_REQUIRED]
        if earlier:
            return ToolResult(_NAME, {"status": "already_pending", "pendingChildren": earlier})
        return _error("nothing pending: there is no child to wait for; spawn first, or end the turn with an answer")
    message = values.get("message", "").strip() or _DEFAULT
    acknowledgment = bounded(values.get("acknowledgment", "").strip(), ACKNOWLEDGMENT_LIMIT)
    result = {
        "tool": _NAME,
        "status": "yielded",
        "message": message,
        "pending": len(pending),
        **({"waitFor": wait_for} if wait_for else {}),
        **({"acknowledgment": acknowledgment} if acknowledgment else {}),
    }
    caller.port.append("tool", clean(json.dumps(result, ensure_ascii=False)))
    raise TurnYielded(None, wait_for, acknowledgment)


def _row(child: ChildFacts) -> dict[str, Any]:
    state = "paused" if child.state == RunState.PAUSED else "running"
    return camel_dict(
        {
            "run_id": child.run_id,
            "child_session_key": child.session_key,
            "label": child.label,
            "started_at": child.started_at,
            "state": "completing" if RunState(child.state).terminal else state,
            "wake_armed": child.wake_armed,
        }
    )


def _error(text: str) -> ToolResult:
    return ToolResult(_NAME, {"status": "error", "error": text})


SESSIONS_YIELD = Tool(
    _NAME,
    "End your turn here and wait: you are called again, once, when all your children of this turn have settled.",
    (
        Parameter("message", Kind.TEXT, "A note to yourself for when you are called again."),
        Parameter("acknowledgment", Kind.TEXT, "A word for whoever watches, while you wait."),
        Parameter(
            "waitFor",
            Kind.TEXT,
            "message: be called again with the next message to you, too; a sub-agent alone may, without children, too.",
            words=(MESSAGE,),
        ),
    ),
    _steps,
)
"""The tool."""
