"""Group ``tool_policy``: the tools of one session, by `openclaw_ray.core.policy.effective_tools`."""

from __future__ import annotations

from typing import Any

from openclaw_ray import config
from openclaw_ray.core.policy import Inherited, Layer, Origin, Sender, effective_tools
from openclaw_ray.core.policy.names import folded

__all__ = ["policy_case"]


def policy_case(case: dict[str, Any]) -> dict[str, Any]:
    """What is left of a universe of tools."""
    loaded = config.load(case["config"], env={})
    limits, own = loaded.runtime_limits(cpus=1), loaded.agent_limits(case["agent_id"])
    view = effective_tools(
        limits.tools,
        own.tools,
        agent_id=own.agent_id,
        depth=case["depth"],
        max_spawn_depth=limits.max_spawn_depth,
        universe=case["universe"],
        sandboxed=case["sandboxed"],
        provider=case.get("provider"),
        model=case.get("model"),
        sender=Sender(**case["sender"]) if "sender" in case else None,
        inherited=_snapshot(case["inherited"]) if "inherited" in case else None,
    )
    return {"allowed": list(view.tools)}


def _snapshot(stored: dict[str, list[str]]) -> Inherited:
    lists = (folded(stored.get(word, ())) for word in ("allow", "deny"))
    return Inherited((Layer(Origin.SENDER, "agent:main:main", *lists),))
