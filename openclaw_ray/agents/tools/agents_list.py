"""``agents_list``: whom this session may name as ``agentId`` of a child (SPEC.md B7, C)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.allowed_agents import AllowedAgents
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["AGENTS_LIST"]

_NAME = "agents_list"
_RUNTIME = {"id": "ray", "source": "implicit"}


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    AGENTS_LIST.read(given)
    [allowed] = yield caller.port.look("agents")
    return ToolResult(_NAME, _fields(allowed))


def _fields(allowed: AllowedAgents) -> dict[str, Any]:
    return {
        "requester": allowed.requester,
        "allowAny": allowed.allow_any,
        "requireAgentId": allowed.require_agent_id,
        "agents": [{"id": agent, "configured": True, "agentRuntime": dict(_RUNTIME)} for agent in allowed.agents],
    }


AGENTS_LIST = Tool(_NAME, "List the agents that you may name as agentId in sessions_spawn.", (), _steps)
"""The tool."""
