"""A spawn that says more than a task and a target: its parameters by the rules of ``sessions_spawn`` (SPEC.md B1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.attachments import AttachmentLimits, read_files
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.session_facts import ChildAsk
from openclaw_ray.core.spawn_params import SpawnMode, parse_spawn, program_names
from openclaw_ray.core.spawn_rules import SpawnPlan, SpawnScene, planned
from openclaw_ray.core.thread_rules import Bindings

__all__ = ["planned_request", "with_plan"]

_NOTHING: Final = ChildAsk()
_STAND_IN = "task"  # the task text of a program has rules of its own: an input may stand for it
_OWN = ("agent_id", "label", "task_name")


def planned_request(
    request: SpawnRequest,
    options: Mapping[str, Any],
    *,
    caller: str,
    transcript: bool,
    limits: AttachmentLimits | None,
    bindings: Bindings | None = None,
) -> SpawnRequest | Receipt:
    """The request with all that ``options`` say, by snake_case names; or the receipt of its refusal.

    Args:
        caller: agent id of the requester.
        transcript: it has a transcript that could be branched.
        limits: of attachments, `None` where they are not enabled.
        bindings: thread bindings in force for it, `None` where there is no channel for any.

    Raises:
        TypeError: there is no such parameter.
        ToolInputError: one is of another type.
    """
    label = options.get("label")
    given = {
        **_known({name: value for name, value in options.items() if name not in _OWN}),
        "task": _STAND_IN,
        "agent_id": options.get("agent_id"),
        "label": None if label is None else str(label),
        "task_name": options.get("task_name"),
        "expects_completion_message": request.expects,
    }
    scene = SpawnScene(caller, bindings=bindings, transcript=transcript)
    plan = planned(parse_spawn(given, "spawn", program=True), scene)
    made = plan if isinstance(plan, Refusal) else with_plan(request, plan, limits)
    return _receipt_of(made) if isinstance(made, Refusal) else made


def with_plan(request: SpawnRequest, plan: SpawnPlan, limits: AttachmentLimits | None) -> SpawnRequest | Refusal:
    """The request with all that its parameters say, or why it cannot be: a folder or a file that is not as it must be.

    Args:
        limits: of attachments, `None` where they are not enabled.
    """
    params = plan.params
    files = read_files(params.attachments, limits)
    if isinstance(files, Refusal):
        return files
    if params.cwd is not None and (refusal := _no_folder(params.cwd)) is not None:
        return refusal
    ask = ChildAsk(
        cwd=params.cwd,
        model=params.model,
        thinking=params.thinking,
        sandbox_required=params.sandbox_required,
        context=plan.context.value,
        light_context=params.light_context,
        tools=params.tools,
        thread=params.thread,
        mode=plan.mode.value,
    )
    return replace(
        request,
        label=params.label,
        task_name=params.task_name,
        cleanup=plan.cleanup.value,
        expects=request.expects and plan.mode is not SpawnMode.SESSION,  # it answers in its thread, and nowhere else
        ask=None if ask == _NOTHING else ask,
        files=files,
        mount_path=params.attach_as,
    )


def _no_folder(path: str) -> Refusal | None:
    if os.path.isdir(path):
        return None
    what = "it is no folder" if os.path.exists(path) else "there is no such folder"
    return Refusal("error", f"cwd {path!r}: {what}", "cwd")


def _known(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``params``, if ``sessions_spawn`` has them all."""
    names = program_names()
    for name in params:
        if name not in names:
            raise TypeError(f"spawn() has no parameter {name!r} (parameters: {', '.join(sorted(names))})")
    return params


def _receipt_of(refusal: Refusal) -> Receipt:
    return Receipt(
        refusal.status,
        error=refusal.error,
        limit=refusal.limit,
        value=refusal.value,
        maximum=refusal.maximum,
        path=refusal.path,
    )
