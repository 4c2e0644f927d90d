"""``sessions``: change a session that is there: its label, or begin it anew, or delete it (SPEC.md G3).

A session changes what is below it, and its own label. With ``sessionId`` and ``lifecycleRevision``, as a list showed
them, it is that very session which is changed, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from openclaw_ray.agents.tools.session_steps import change_session
from openclaw_ray.agents.tools.session_tables import CHANGED, LINEAGE
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SESSIONS"]

_NAME = "sessions"
_ACTION = Parameter(
    "action",
    Kind.TEXT,
    "patch: change its label. reset: stop it and begin it anew. delete: stop and delete it.",
    words=tuple(CHANGED),
    required=True,
)


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    action = read_params(_NAME, (_ACTION,), {"action": given.get("action")})["action"]
    refused = LINEAGE if action == "patch" else {}
    values = read_params(_NAME, (_ACTION, *CHANGED[action]), given, refused)
    return ToolResult(_NAME, (yield from change_session(caller.port, action, values)))


_OFFERED = (*CHANGED["reset"], replace(CHANGED["patch"][-1], required=False))
SESSIONS = Tool(_NAME, "Change a session below you, or your own label.", (_ACTION, *_OFFERED), _steps)
"""The tool."""
