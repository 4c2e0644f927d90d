"""``session_status``: where a session stands, as a card of text (SPEC.md B7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.session_steps import session_status
from openclaw_ray.agents.tools.session_tables import STATUS
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SESSION_STATUS"]

_NAME = "session_status"


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = {"sessionKey": caller.session.key, **SESSION_STATUS.read(given)}
    return ToolResult(_NAME, (yield from session_status(caller.port, _NAME, values)))


SESSION_STATUS = Tool(
    _NAME,
    "Show where a session stands: its run, model, tokens, children; stateVersion differs when any of it does.",
    STATUS,
    _steps,
)
"""The tool."""
