"""``sessions_history``: a page of a transcript in sight, with credentials masked (SPEC.md B6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.session_steps import read_history
from openclaw_ray.agents.tools.session_tables import HISTORY
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["SESSIONS_HISTORY"]

_NAME = "sessions_history"


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    return ToolResult(_NAME, (yield from read_history(caller.port, _NAME, SESSIONS_HISTORY.read(given))))


SESSIONS_HISTORY = Tool(
    _NAME,
    "Read a page of a session's transcript, newest rows first to be shown; credentials are masked, long texts cut.",
    HISTORY,
    _steps,
)
"""The tool."""
