"""Group ``spawn_params``: the steps of `openclaw_ray.core.spawn_rules` in their order, with admission between.

The cases ask what a call means to a host that has channels, sandboxes and dashboards; nothing is started. So they end
before the last step, `not_in_effect`, in which this runtime refuses what it does not do itself; that step has tests of
its own (``tests/core/test_spawn_params_rules.py``). Thread bindings are those of the configuration as it is loaded.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from openclaw_ray import config
from openclaw_ray.core import admission, attachments, keys, spawn_params, spawn_rules
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.thread_rules import Bindings
from openclaw_ray.core.tool_results import refusal_text

__all__ = ["spawn_case"]

Output = dict[str, Any]


def spawn_case(case: dict[str, Any]) -> Output:
    """One call of ``sessions_spawn``."""
    try:
        params = spawn_params.parse_spawn(case["args"])
    except ToolInputError as error:
        return {"status": "input_error", "error": str(error)}
    requester = case["requester"]
    loaded = config.load(case["config"], env={})
    agent = keys.inspect(requester["key"]).agent_id or loaded.default_agent
    target = keys.normalise_agent_id(params.agent_id or "") or agent
    scene = spawn_rules.SpawnScene(
        agent,
        bindings=_bindings(loaded, case["channel"]),
        channel=case["channel"]["id"] if case["channel"] else "",
        sandboxed=requester["sandboxed"],
        child_sandboxed=_sandboxed(case["config"], target),
        child_workspace=requester["workspace"] if target == agent else loaded.agent_limits(target).workspace,
        transcript=requester["transcript"],
        inherited_policy=bool(requester.get("inherited")),
    )
    plan = spawn_rules.decide(params, scene)
    if isinstance(plan, admission.Refusal):
        return _refused(plan)
    refusal = _admission(loaded, agent, requester, plan) or spawn_rules.check_child(plan, scene)
    if refusal is not None:
        return _refused(refusal)
    limits = loaded.runtime_limits(cpus=1)
    files = attachments.read_files(params.attachments, limits.attachments)
    if isinstance(files, admission.Refusal):
        return _refused(files)
    receipt = attachments.attached(files, "")
    configured = limits.run_timeout_seconds
    timeout = params.run_timeout_seconds
    return {
        "status": "accepted",
        "mode": plan.mode,
        "cleanup": plan.cleanup,
        "context": plan.context,
        "expects_completion": params.expects_completion,
        "run_timeout_seconds": configured if timeout is None else timeout,
        "agent_id": target,
        "task_name": params.task_name,
        "label": params.label,
        "completion_target": params.completion_target,
        "workdir": params.cwd or scene.child_workspace,
        "attachments": {
            "count": len(files),
            "total_bytes": receipt.total_bytes,
            "files": [dataclasses.asdict(file) for file in receipt.files],
        },
    }


def _refused(refusal: admission.Refusal) -> Output:
    return {
        "status": refusal.status,
        "error": refusal_text(refusal.error, refusal.value, refusal.maximum),
    }


def _admission(
    loaded: config.Config, agent: str, requester: dict[str, Any], plan: spawn_rules.SpawnPlan
) -> admission.Refusal | None:
    own, limits = loaded.agent_limits(agent), loaded.runtime_limits(cpus=1)
    facts = admission.SpawnFacts(
        requester_key=requester["key"],
        requester_agent=agent,
        depth=requester["depth"],
        active_children=requester["active_children"],
        operator=False,
        agent_id=plan.agent_id,
        stopping=False,
    )
    bounds = admission.SpawnLimits(
        max_spawn_depth=limits.max_spawn_depth,
        max_children=limits.max_children,
        require_agent_id=own.require_agent_id,
        allow_agents=own.allow_agents,
        configured=frozenset(loaded.agent_ids),
        allow_path=own.allow_path,
        require_path=own.require_path,
    )
    return admission.check_spawn(facts, bounds)


def _bindings(loaded: config.Config, channel: dict[str, Any] | None) -> Bindings | None:
    """What is in force on the requester's channel; `None` where there is none that could bind."""
    if not channel or not channel["can_bind"]:
        return None
    return loaded.runtime_limits(cpus=1).threads.of(channel["id"])


def _sandboxed(written: dict[str, Any], agent: str) -> bool:
    """From the file itself. A child's key is never the main one."""
    agents = written.get("agents", {})
    own = agents.get("entries", {}).get(agent, {}).get("sandbox", {})
    mode = own.get("mode", agents.get("defaults", {}).get("sandbox", {}).get("mode", "off"))
    return mode in ("all", "non-main")
