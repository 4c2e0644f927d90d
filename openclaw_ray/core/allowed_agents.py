"""Whom a session may name as the agent of a child, as ``agents_list`` shows it (SPEC.md B7, C)."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.admission import listed

__all__ = ["AllowedAgents", "allowed_agents"]


@dataclass(frozen=True, slots=True)
class AllowedAgents:
    """The answer of ``agents_list``.

    Attributes:
        requester: agent id of who asks.
        allow_any: every configured agent may be named.
        require_agent_id: one must be named.
        agents: ids that may be named, the requester first, the rest sorted; all of them configured.
    """

    requester: str
    allow_any: bool
    require_agent_id: bool
    agents: tuple[str, ...]


def allowed_agents(
    requester: str, allow_agents: tuple[str, ...] | None, configured: frozenset[str], require_agent_id: bool
) -> AllowedAgents:
    """The same rule as admission's, so that list and spawn agree; ids that are configured no more are left out.

    Args:
        allow_agents: normalised targets, `None` if no list is set.
        configured: normalised ids of all agents that there are.
    """
    ids = tuple(agent for agent in listed(requester, allow_agents, configured) if agent in configured)
    return AllowedAgents(requester, "*" in (allow_agents or ()), require_agent_id, ids)
