"""What one agent's sessions are given: the plain record that the registry settles their facts by (SPEC.md A1, A2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from openclaw_ray.config._fields import plain
from openclaw_ray.config._model import AgentDefaults, Model
from openclaw_ray.core.limits import AgentSettings

__all__ = ["agent_settings"]

Own: TypeAlias = Callable[..., tuple[Any, str]]
"""An agent's own value of a field and the path of its entry; (`None`, ``""``) if it is not set."""


def agent_settings(defaults: AgentDefaults, own: Own, agent_id: str) -> AgentSettings | None:
    """The settings of an agent, `None` if the configuration says nothing of them."""
    workspace, workspace_at = own(agent_id, "workspace")
    sandbox, sandbox_at = own(agent_id, "sandbox", "mode")
    child_model, child_model_at = own(agent_id, "subagents", "model")
    child_thinking, child_thinking_at = own(agent_id, "subagents", "thinking")
    children = defaults.subagents
    made = AgentSettings(
        workspace=plain(workspace or defaults.workspace),
        workspace_path=f"{workspace_at}.workspace" if workspace else "agents.defaults.workspace",
        sandbox=str((sandbox or defaults.sandbox.mode).value),
        sandbox_path=f"{sandbox_at}.sandbox.mode" if sandbox else "agents.defaults.sandbox.mode",
        model=_name(own(agent_id, "model")[0]) or _name(defaults.model),
        thinking=plain(own(agent_id, "thinking_default")[0] or defaults.thinking_default),
        child_model=_name(child_model) or _name(children.model),
        child_model_path=(
            f"{child_model_at}.subagents.model" if _name(child_model) else "agents.defaults.subagents.model"
        ),
        child_thinking=plain(child_thinking),
        child_thinking_path=f"{child_thinking_at}.subagents.thinking" if child_thinking else "",
        default_thinking=plain(children.thinking),
        delegation=plain(own(agent_id, "subagents", "delegation_mode")[0] or children.delegation_mode),
    )
    return None if made == AgentSettings() else made


def _name(model: Any) -> str | None:
    """A model as text: of an object the first one, fallbacks are another matter."""
    found = model.primary if isinstance(model, Model) else model
    return None if found is None else str(plain(found))
