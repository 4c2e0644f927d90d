"""``subagents steer``: interrupt a child and have it go on with a message (SPEC.md B4, G4).

1. The target is looked for as that of ``cancel`` is; one alone is steered.
2. The registry decides and reserves (`openclaw_ray.core.protocol.steering`): ``accepted`` names the new run, which
   starts when the old one has ended. What waits for the child by its old run id waits for the new one.
3. What has ended is ``done``: nothing is begun. Twice within two seconds is ``rate_limited``, with when to try again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.tools.subagents_stop import targets
from openclaw_ray.agents.tools.tool import Caller, Steps
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.results import Receipt, camel_dict
from openclaw_ray.core.subagent_rows import ChildFacts, shown_label
from openclaw_ray.core.tool_results import ToolResult, refusal_text

__all__ = ["MESSAGE_LIMIT", "steer"]

MESSAGE_LIMIT = 4_000
"""Characters of a message."""
_NAME = "subagents"


def steer(caller: Caller, values: Mapping[str, Any]) -> Steps:
    """``accepted``, ``done``, ``rate_limited``, ``forbidden`` or ``error``."""
    message = str(values["message"])
    if not message.strip():
        raise ToolInputError(_NAME, "message", "it is empty")
    if len(message) > MESSAGE_LIMIT:
        text = f"message: at most {MESSAGE_LIMIT} characters"
        return _failed("error", refusal_text(text, len(message), MESSAGE_LIMIT))
    found = yield from targets(caller, "steer", values, all_words=False)
    if isinstance(found, ToolResult):
        return found
    [facts] = found
    receipt: Receipt = yield caller.port.steer(facts.run_id, message)
    return ToolResult(_NAME, _fields(facts, receipt), receipt if receipt.accepted else None)


def _fields(facts: ChildFacts, receipt: Receipt) -> dict[str, Any]:
    label = shown_label(facts)
    if receipt.accepted:
        fields: dict[str, Any] = {
            "status": "accepted",
            "run_id": receipt.run_id,
            "session_key": facts.session_key,
            "mode": "restart",
            "label": label,
            "text": f"steered {label}: it begins anew with your message once its run of now has ended",
        }
    elif receipt.status == "done":
        fields = {
            "status": "done",
            "run_id": receipt.run_id,
            "session_key": facts.session_key,
            "text": f"{label}: it has ended",
        }
    else:
        fields = {
            "status": receipt.status,
            "error": receipt.error or "the steer was refused",
            "run_id": facts.run_id,
            "session_key": facts.session_key,
            "retry_after_ms": None if receipt.retry_after is None else round(receipt.retry_after * 1000),
        }
    return camel_dict(fields)


def _failed(status: str, text: str) -> ToolResult:
    return ToolResult(_NAME, {"status": status, "error": text})
