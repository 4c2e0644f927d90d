"""Group ``model_thinking``: what `openclaw_ray.core.model_choice` makes of a configuration, a call and a caller."""

from __future__ import annotations

from typing import Any

from openclaw_ray import config
from openclaw_ray.core import admission
from openclaw_ray.core.limits import AgentSettings
from openclaw_ray.core.model_choice import choose

__all__ = ["model_case"]


def model_case(case: dict[str, Any]) -> dict[str, Any]:
    """Model and level of one child."""
    loaded = config.load(case["config"], env={})

    def settings(agent: str) -> AgentSettings:
        return loaded.agent_limits(agent).settings or AgentSettings()

    chosen = choose(
        settings(case["requester"]),
        settings(case["target"]),
        same_agent=case["requester"] == case["target"],
        model=case["call"].get("model"),
        thinking=case["call"].get("thinking"),
        caller_model=case["caller"].get("model"),
        caller_thinking=case["caller"].get("thinking"),
    )
    if isinstance(chosen, admission.Refusal):
        return {"status": chosen.status}
    return {"status": "ok", "model": chosen.model, "thinking": chosen.thinking}
