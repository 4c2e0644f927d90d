"""What the parameters of ``sessions_spawn`` mean together (SPEC.md C, stages 0 and 1e-g).

The order in which one call is decided, each step with the answer of the first rule that is broken:

1. `parse_spawn`: is it well formed? (a tool-input error)
2. `decide`: can it mean anything, as it is asked for, in this place? (``error``)
3. `openclaw_ray.core.admission`: depth, children, target (in the registry, where it is reserved in the same step)
4. `check_child`: may a child be as this one would be: sandbox, folder, dashboard (``forbidden``), thinking (``error``)
5. `check_folder`: is the folder named so that it is the same one everywhere?
6. `not_in_effect`: does this runtime do it yet? What it does not do is refused, never left out in silence.

A session asks 5 and 6 before 3, so that nothing is reserved for what is refused anyway. What 4 needs to know, the
registry has (`openclaw_ray.core.protocol.child_facts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.bounds import TASK_MAX_BYTES
from openclaw_ray.core.keys import normalise_agent_id
from openclaw_ray.core.model_choice import THINKING_LEVELS, thinking_level
from openclaw_ray.core.sandbox_rules import check_sandbox
from openclaw_ray.core.spawn_params import (
    SWARM,
    VISIBLE_ONLY,
    SpawnCleanup,
    SpawnContext,
    SpawnMode,
    SpawnParams,
)
from openclaw_ray.core.thread_rules import Bindings, binding_refusal

__all__ = [
    "LABEL_MAX",
    "RESERVED_NAMES",
    "SpawnPlan",
    "SpawnScene",
    "check_child",
    "check_folder",
    "decide",
    "not_in_effect",
    "planned",
]

LABEL_MAX: Final = 512
"""Characters of a label."""
RESERVED_NAMES: Final = frozenset({"last", "all"})
"""Task names that mean something else where a target is named (SPEC.md B4)."""
_TASK_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_SHOWN = 64


@dataclass(frozen=True, slots=True)
class SpawnScene:
    """Who asks, from where.

    Attributes:
        agent_id: the requester's agent.
        bindings: thread bindings in force for it; `None` where no channel can bind a conversation to a session.
        channel: name of a channel that cannot.
        sandboxed, child_sandboxed: whether the requester is, and the child would be.
        child_workspace: folder of the child's agent, where known.
        transcript: the requester has one that could be branched.
        inherited_policy: the requester carries tool lists of its own requester.
    """

    agent_id: str
    bindings: Bindings | None = None
    channel: str = ""
    sandboxed: bool = False
    child_sandboxed: bool = False
    child_workspace: str | None = None
    transcript: bool = True
    inherited_policy: bool = False


@dataclass(frozen=True, slots=True)
class SpawnPlan:
    """A call that means something: its parameters with what follows from them."""

    params: SpawnParams
    agent_id: str | None
    mode: SpawnMode
    cleanup: SpawnCleanup
    context: SpawnContext


def decide(params: SpawnParams, scene: SpawnScene) -> SpawnPlan | Refusal:
    """What is to be done, or the first reason why the call cannot be done as it is (step 2)."""
    agent = scene.agent_id if params.agent_id is None else normalise_agent_id(params.agent_id)
    refusal = _task(params) or _task_name(params) or _label(params)
    if refusal is not None:
        return refusal
    if agent is None:
        return _error("agentId", f"not an agent id: {_quote(params.agent_id)} (letters, digits, _ and -, at most 64)")
    refusal = _combination(params, scene)
    if refusal is not None:
        return refusal
    mode = params.mode or (SpawnMode.SESSION if params.thread else SpawnMode.RUN)
    kept = params.visible or mode is SpawnMode.SESSION
    context = params.context or _unsaid_context(params, agent, scene)
    if context is SpawnContext.FORK and (refusal := _fork(agent, scene)) is not None:
        return refusal
    return SpawnPlan(
        params,
        params.agent_id,
        mode,
        SpawnCleanup.KEEP if kept else params.cleanup or SpawnCleanup.KEEP,
        context,
    )


def planned(params: SpawnParams, scene: SpawnScene) -> SpawnPlan | Refusal:
    """Steps 2, 5 and 6 in one: what a session is to ask the registry for, or why it does not."""
    plan = decide(params, scene)
    if isinstance(plan, Refusal):
        return plan
    return check_folder(params) or not_in_effect(plan) or plan


def check_child(plan: SpawnPlan, scene: SpawnScene) -> Refusal | None:
    """Whether a child may be as this one would be (step 4), as far as model and level are not concerned."""
    params = plan.params
    refusal = check_sandbox(
        caller=scene.sandboxed,
        child=scene.child_sandboxed,
        required=params.sandbox_required,
        cwd=params.cwd,
        workspace=scene.child_workspace,
    )
    if refusal is not None:
        return refusal
    if params.visible and scene.inherited_policy:
        return Refusal("forbidden", "a session under inherited tool lists may not open a visible one", "visible")
    if params.thinking is not None and thinking_level(params.thinking) is None:
        return _error("thinking", f"no such level: {_quote(params.thinking)} (levels: {', '.join(THINKING_LEVELS)})")
    return None


def check_folder(params: SpawnParams) -> Refusal | None:
    """Whether ``cwd`` names a folder in the same way from everywhere (step 5)."""
    if params.cwd is None or (params.cwd.startswith("/") and "\0" not in params.cwd):
        return None
    return _error("cwd", f"cwd is an absolute path, not {_quote(params.cwd)}")


def not_in_effect(plan: SpawnPlan) -> Refusal | None:
    """The first thing asked for that this runtime does not do yet (step 6)."""
    if plan.params.visible:
        return _error("visible", "visible: not yet in effect (there are no dashboard sessions; leave it out)")
    return None


# --------------------------------------------------------------------------- the rules of step 2


def _error(limit: str, text: str) -> Refusal:
    return Refusal("error", text, limit)


def _task(params: SpawnParams) -> Refusal | None:
    try:
        size = len(params.task.encode())
    except UnicodeEncodeError:
        return _error("task", "task is not valid Unicode")
    if size > TASK_MAX_BYTES:
        text = f"task text of {size} bytes is over the limit of {TASK_MAX_BYTES}; name a file with the data in it"
        return Refusal("error", text, "task", size, TASK_MAX_BYTES)
    return None


def _task_name(params: SpawnParams) -> Refusal | None:
    name = params.task_name
    if name is None:
        return None
    if name in RESERVED_NAMES:
        return _error("taskName", f"taskName {name!r} is reserved (reserved: all, last)")
    if _TASK_NAME.fullmatch(name) is None:
        rule = "a letter a-z, then at most 63 of a-z, 0-9, _ and -"
        return _error("taskName", f"not a taskName: {_quote(name)} ({rule})")
    return None


def _label(params: SpawnParams) -> Refusal | None:
    size = len(params.label or "")
    if size > LABEL_MAX:
        text = f"label has {size} characters; the limit is {LABEL_MAX}"
        return Refusal("error", text, "label", size, LABEL_MAX)
    return None


def _combination(params: SpawnParams, scene: SpawnScene) -> Refusal | None:
    swarm = [name for name in params.others if name in SWARM]
    if swarm:
        return _error(swarm[0], f"{swarm[0]}: there are no collector runs here; spawn children and yield instead")
    if params.acp:
        return _error("runtime", "runtime acp: there is no backend for external harnesses; say subagent")
    if params.mode is SpawnMode.SESSION and not params.thread:
        return _error("mode", "mode session needs thread: true; nobody could talk to the child otherwise")
    if params.thread and (refusal := binding_refusal(scene.bindings, scene.channel)) is not None:
        return refusal
    return _completion_target(params) or _visible(params)


def _completion_target(params: SpawnParams) -> Refusal | None:
    if params.completion_target is None:
        return None
    against = {
        "thread": params.thread,
        "visible": params.visible,
        "expectsCompletionMessage: false": not params.expects_completion,
    }
    for name, there in against.items():
        if there:
            why = "it is for hidden one-shot runs whose end is told"
            return _error("completionTarget", f"completionTarget parent does not go with {name}: {why}")
    return None


def _visible(params: SpawnParams) -> Refusal | None:
    if not params.visible:
        alone = [name for name in params.others if name in VISIBLE_ONLY]
        return _error(alone[0], f"{alone[0]} needs visible: true") if alone else None
    against = {
        "thread": params.thread,
        "mode": params.mode is SpawnMode.SESSION,
        "thinking": params.thinking is not None,
        "lightContext": params.light_context,
        "attachments": bool(params.attachments),
        "attachAs": params.attach_as is not None,
    }
    for name, there in against.items():
        if there:
            return _error("visible", f"visible does not go with {name}")
    return None


def _unsaid_context(params: SpawnParams, agent: str, scene: SpawnScene) -> SpawnContext:
    """The context of a call that does not say: a bound child's is configured, but is no branch where none can be."""
    if not params.thread or scene.bindings is None:
        return SpawnContext.ISOLATED
    usual = SpawnContext(scene.bindings.default_spawn_context)
    return SpawnContext.ISOLATED if usual is SpawnContext.FORK and _fork(agent, scene) is not None else usual


def _fork(agent: str, scene: SpawnScene) -> Refusal | None:
    if agent != scene.agent_id:
        return _error("context", f"context fork is for one's own agent ({scene.agent_id}), not for {agent}")
    if not scene.transcript:
        return _error("context", "context fork needs a transcript, and this session keeps none")
    return None


def _quote(text: str | None) -> str:
    shown = text or ""
    return repr(shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…")
