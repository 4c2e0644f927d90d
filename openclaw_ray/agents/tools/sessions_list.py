"""``sessions_list``: the sessions in sight, newest first (SPEC.md B5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.session_steps import list_sessions
from openclaw_ray.agents.tools.session_tables import LISTED
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.keys import normalise_agent_id, normalise_key
from openclaw_ray.core.session_rows import KINDS
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SESSIONS_LIST", "list_filters"]

_NAME = "sessions_list"


def list_filters(tool: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a list is asked for, with what the table of parameters cannot say checked, too.

    Raises:
        ToolInputError: a value is none that there is.
    """
    given = dict(values)
    if not all(kind in KINDS for kind in given.get("kinds", ())):
        raise ToolInputError(tool, "kinds", f"it is a list of {', '.join(KINDS)}, not {given['kinds']!r}")
    if given.get("archived", False) not in (True, False, "all"):
        raise ToolInputError(tool, "archived", f'it is true, false or "all", not {given["archived"]!r}')
    if "agentId" in given:
        agent = normalise_agent_id(given["agentId"])
        if agent is None:
            raise ToolInputError(tool, "agentId", f"{given['agentId']!r} is no agent id")
        given["agentId"] = agent
    if "spawnedBy" in given:
        given["spawnedBy"] = normalise_key(given["spawnedBy"])
    return given


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = list_filters(_NAME, SESSIONS_LIST.read(given))
    return ToolResult(_NAME, (yield from list_sessions(caller.port, values)))


SESSIONS_LIST = Tool(
    _NAME,
    "List the sessions that you may see: who, where each stands, whose child it is; its last messages if asked for.",
    LISTED,
    _steps,
)
"""The tool."""
