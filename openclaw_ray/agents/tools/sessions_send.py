"""``sessions_send``: a message to another session; the answer is a status object, a refusal too (SPEC.md B2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.sending import SEND_SECONDS, send_request, send_steps
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.message import MessageMode
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.tool_params import Kind, Parameter
from openclaw_ray.core.tool_results import ToolResult, refusal_text

__all__ = ["SESSIONS_SEND"]

_NAME = "sessions_send"
_LABEL_MOST = 512


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = SESSIONS_SEND.read(given)
    label = values.get("label")
    if label is not None and not 1 <= len(label) <= _LABEL_MOST:
        raise ToolInputError(_NAME, "label", f"it has 1 to {_LABEL_MOST} characters")
    seconds = _seconds(values.get("timeoutSeconds", SEND_SECONDS))
    try:
        request = send_request(
            values.get("sessionKey"),
            values["message"],
            label=label,
            agent_id=values.get("agentId"),
            timeout_seconds=seconds,
            mode=values.get("mode"),
        )
    except ValueError as error:
        return ToolResult(_NAME, {"status": "error", "error": str(error)})
    sent = yield from send_steps(caller.port, request)
    if isinstance(sent, Receipt):
        text = refusal_text(sent.error or "the message was refused", sent.value, sent.maximum)
        fields = {"status": sent.status, "error": text}
        return ToolResult(_NAME, fields, sent)
    return ToolResult(_NAME, sent.to_json(), sent.receipt)


def _seconds(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise ToolInputError(_NAME, "timeoutSeconds", f"it is a number of 0 or more, not {given!r}")
    return float(given)


SESSIONS_SEND = Tool(
    _NAME,
    "Send a message to another session. Waits for its reply; what comes later is told you with your next turn.",
    (
        Parameter("message", Kind.TEXT, "What to say.", required=True),
        Parameter("sessionKey", Kind.TEXT, "Key or id of the session.", also=("session_key", "key")),
        Parameter("label", Kind.TEXT, "Label of the session, instead of its key."),
        Parameter("agentId", Kind.TEXT, "With a label, whose session; alone, that agent's main session."),
        Parameter("timeoutSeconds", Kind.ANY, "Seconds to wait for the reply, 30 if not given; 0 does not wait."),
        Parameter(
            "mode",
            Kind.TEXT,
            "notify tells its next turn and starts none; steer reaches the turn that runs, if that can take it; "
            "otherwise it gets a turn of its own.",
            words=tuple(mode.value for mode in MessageMode),
        ),
    ),
    _steps,
    {"watch": "not in effect: how a message ends is told you anyway"},
)
"""The tool."""
