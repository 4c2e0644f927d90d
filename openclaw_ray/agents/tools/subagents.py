"""``subagents``: what one's own children are at, waiting for them, stopping and steering them (SPEC.md B4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from openclaw_ray.agents.tools.subagents_steer import MESSAGE_LIMIT, steer
from openclaw_ray.agents.tools.subagents_stop import PAGE, cancel, kill
from openclaw_ray.agents.tools.subagents_wait import wait
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.subagent_rows import RECENT_DEFAULT, RECENT_MAX, list_children
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SUBAGENTS"]

_NAME = "subagents"


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
    "steer": steer,
}
_ACTION = Parameter(
    "action",
    Kind.TEXT,
    "list: show your children. wait: wait a while for them. cancel, kill: stop one, with all that is below it. "
    "steer: interrupt one, and have it go on with your message.",
    words=tuple(_ACTIONS),
)
_RECENT = Parameter(
    "recentMinutes", Kind.WHOLE, f"list: how long an ended child is shown; {RECENT_DEFAULT} if left out.", least=1
)
_TASK = Parameter("taskId", Kind.TEXT, "cancel, kill, steer: the run id of a child.", also=("runId", "run_id"))
_TARGET = Parameter(
    "target",
    Kind.TEXT,
    "cancel, kill, steer: a number of the list, label, task name, session key, or last; all, but not to steer.",
)
_MESSAGE = Parameter(
    "message",
    Kind.TEXT,
    f"steer: what it is to do instead, or besides; up to {MESSAGE_LIMIT} characters.",
    required=True,
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
    "steer": (_ACTION, _TASK, _TARGET, _MESSAGE),
}
"""What each action takes."""


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    action = read_params(_NAME, (_ACTION,), {"action": given.get("action")}).get("action", "list")
    return (yield from _ACTIONS[action](caller, read_params(_NAME, _TABLES[action], given)))


SUBAGENTS = Tool(
    _NAME,
    "Show your own children, those at work and those that ended lately; wait for them; stop or steer them.",
    (_ACTION, _RECENT, _TASK, _TARGET, _TASKS, _SECONDS, replace(_MESSAGE, required=False)),
    _steps,
)
"""The tool."""
