"""``subagents``: what one's own children are at (SPEC.md B4). Of its actions ``list`` is in effect."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.subagent_rows import RECENT_DEFAULT, RECENT_MAX, list_children
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SUBAGENTS"]

_NAME = "subagents"
_LATER = {
    "wait": "sessions_yield ends the turn until all children have settled",
    "cancel": "a running child ends at its runTimeoutSeconds, or when an operator stops it",
    "kill": "a running child ends at its runTimeoutSeconds, or when an operator stops it",
    "steer": "a child takes no further instruction; spawn another",
}
"""Actions that are known and not in effect, with what works in their place."""
_ACTION = Parameter("action", Kind.TEXT, "list: show your children.", words=("list",))
_ANY_ACTION = Parameter("action", Kind.TEXT, words=("list", *_LATER), offered=False)
_PAGE = 200  # ended children that are looked at


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    asked = read_params(_NAME, (_ANY_ACTION,), {"action": given.get("action")})
    action = asked.get("action", "list")
    if action in _LATER:
        error = f"action {action}: not yet in effect (what works: list; {_LATER[action]})"
        return ToolResult(_NAME, {"status": "error", "error": error})
    values = SUBAGENTS.read(given)
    minutes = min(values.get("recentMinutes", RECENT_DEFAULT), RECENT_MAX)
    children = yield caller.port.look("children", _PAGE)
    session = caller.session
    return ToolResult(
        _NAME,
        {
            "status": "ok",
            "requesterSessionKey": session.key,
            "callerSessionKey": session.key,
            "callerIsSubagent": session.depth > 0,
            **list_children(children, round(time.time() * 1000), minutes),
        },
    )


SUBAGENTS = Tool(
    _NAME,
    "Show your own children: those at work, and those that ended lately.",
    (
        _ACTION,
        Parameter(
            "recentMinutes", Kind.WHOLE, f"How long an ended child is shown; {RECENT_DEFAULT} if left out.", least=1
        ),
    ),
    _steps,
)
"""The tool."""
