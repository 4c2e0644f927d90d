"""``subagents``: what one's own children are at, waiting for them, and stopping them (SPEC.md B4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from openclaw_ray.agents.tools.subagents_stop import PAGE, cancel, kill
from openclaw_ray.agents.tools.subagents_wait import wait
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.subagent_rows import RECENT_DEFAULT, RECENT_MAX, list_children
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SUBAGENTS"]

_NAME = "subagents"
_LATER = {"steer": "a child takes no further instruction; kill it and spawn another"}
"""Actions that are known and not in effect, with what works in their place."""


def _list(caller: Caller, values: Mapping[str, Any]) -> Steps:
    minutes = min(values.get("recentMinutes", RECENT_DEFAULT), RECENT_MAX)
    children = yield caller.port.look("children", PAGE)
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


_ACTIONS: Mapping[str, Callable[[Caller, Mapping[str, Any]], Steps]] = {
    "list": _list,
    "wait": wait,
    "cancel": cancel,
    "kill": kill,
}
_ACTION = Parameter(
    "action",
    Kind.TEXT,
    "list: show your children. wait: wait a while for them. cancel, kill: stop one, with all that is below it.",
    words=tuple(_ACTIONS),
)
_ANY_ACTION = Parameter("action", Kind.TEXT, words=(*_ACTIONS, *_LATER), offered=False)
_RECENT = Parameter(
    "recentMinutes", Kind.WHOLE, f"list: how long an ended child is shown; {RECENT_DEFAULT} if left out.", least=1
)
_TASK = Parameter("taskId", Kind.TEXT, "cancel, kill: the run id of a child.", also=("runId", "run_id"))
_TARGET = Parameter(
    "target", Kind.TEXT, "cancel, kill: a number of the list, label, task name, session key, last, or all."
)
_TASKS = Parameter(
    "taskIds", Kind.LIST, "wait: run ids, 1 to 32; all active children if left out.", also=("runIds", "run_ids")
)
_SECONDS = Parameter("timeoutSeconds", Kind.WHOLE, "wait: at most so long; 30 if left out.", least=0, most=60)
_TABLES = {
    "list": (_ACTION, _RECENT),
    "wait": (_ACTION, _TASKS, _SECONDS),
    "cancel": (_ACTION, _TASK, _TARGET),
    "kill": (_ACTION, _TASK, _TARGET),
}
"""What each action takes."""


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    asked = read_params(_NAME, (_ANY_ACTION,), {"action": given.get("action")})
    action = asked.get("action", "list")
    if action in _LATER:
        error = f"action {action}: not yet in effect (what works: {', '.join(_ACTIONS)}; {_LATER[action]})"
        return ToolResult(_NAME, {"status": "error", "error": error})
    return (yield from _ACTIONS[action](caller, read_params(_NAME, _TABLES[action], given)))


SUBAGENTS = Tool(
    _NAME,
    "Show your own children, those at work and those that ended lately; wait for them; stop them.",
    (_ACTION, _RECENT, _TASK, _TARGET, _TASKS, _SECONDS),
    _steps,
)
"""The tool."""
