"""``sessions_spawn``: ask for a child; the answer is a status object, a refusal too (SPEC.md B1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents._asking import isolated
from openclaw_ray.agents._planning import with_plan
from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core import spawn_params
from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.branching import fork_note, too_large
from openclaw_ray.core.results import Receipt, camel_dict
from openclaw_ray.core.spawn_params import SpawnMode
from openclaw_ray.core.spawn_rules import SpawnPlan, SpawnScene, planned
from openclaw_ray.core.tool_results import ToolResult, refusal_text

__all__ = ["SESSIONS_SPAWN"]

_NAME = spawn_params.TOOL
_NOTE = "The child's end comes to you by itself as an event: go on, or call sessions_yield. Do not poll for it."
_QUIET_NOTE = "Nobody is told of this child's end; subagents list shows how it stands."

_THREAD_NOTE = "The child answers the user in its own conversation, and goes on there; you are not told of its answers."


def _steps(caller: Caller, given: Mapping[str, Any]) -> Steps:
    params = spawn_params.parse_spawn(given)
    scene = SpawnScene(caller.session.agent_id, bindings=caller.bindings, transcript=caller.keeps_transcript)
    plan = planned(params, scene)
    if isinstance(plan, Refusal):
        return ToolResult(_NAME, _refused(plan.status, plan.error, plan.value, plan.maximum))
    asked = SpawnRequest(
        params.task,
        agent_id=plan.agent_id,
        timeout=params.run_timeout_seconds,
        expects=params.expects_completion,
    )
    request = with_plan(asked, plan, caller.attachments)
    if isinstance(request, Refusal):
        return ToolResult(_NAME, _refused(request.status, request.error, request.value, request.maximum))
    note = _THREAD_NOTE if plan.mode is SpawnMode.SESSION else _NOTE if request.expects else _QUIET_NOTE
    if request.forks:
        size: int = yield caller.port.transcript_bytes()
        if too_large(size):
            request, note = isolated(request), f"{note} {fork_note(size)}"
    receipt: Receipt = yield caller.port.spawn([request])[0]
    if not receipt.accepted:
        error = receipt.error or "the spawn was refused"
        return ToolResult(_NAME, _refused(receipt.status, error, receipt.value, receipt.maximum), receipt)
    if not request.expects:
        caller.unheard(receipt.run_id)
    return ToolResult(_NAME, _accepted(plan, receipt, note, request.expects), receipt)


def _refused(status: str, error: str, value: int | None, maximum: int | None) -> dict[str, Any]:
    return {"status": status, "error": refusal_text(error, value, maximum)}


def _accepted(plan: SpawnPlan, receipt: Receipt, note: str, expects: bool) -> dict[str, Any]:
    params = plan.params
    return camel_dict(
        {
            "status": receipt.status,
            "run_id": receipt.run_id,
            "child_session_key": receipt.session_key,
            "mode": plan.mode.value,
            "context": receipt.context or "isolated",
            "expects_completion_message": expects,
            "completion_target": params.completion_target,
            "task_name": params.task_name,
            "note": note,
            "resolved_model": receipt.model,
            "resolved_provider": receipt.provider,
            "model_applied": True if receipt.model is not None else None,
            "attachments": None if receipt.attachments is None else receipt.attachments.to_json(),
        }
    )


SESSIONS_SPAWN = Tool(
    _NAME,
    "Start a child session for a task. Returns at once; its end comes to you as an event.",
    spawn_params.PARAMETERS,
    _steps,
    spawn_params.REFUSED,
)
"""The tool."""
