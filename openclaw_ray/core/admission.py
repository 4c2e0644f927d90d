"""Whether a spawn is admitted: the checks of stage 1, in the order in which they decide (SPEC.md C).

1. task and agent id: can they mean anything at all? (`error`; whatever follows is `forbidden`)
2. depth: the requester is above the cap
3. children: the requester has room for one more
4. ``requireAgentId``: the target is named, if it must be
5. target: it is allowed for the requester, and configured
6. no ancestor of the child is being stopped

The first rule that is broken decides the answer. An operator (a client's root) is bound by 1, 2 and 6 and may
only spawn agents that exist. Nothing is built on the way of a spawn that passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from openclaw_ray.core.bounds import TASK_MAX_BYTES
from openclaw_ray.core.errors_base import name_list
from openclaw_ray.core.keys import normalise_agent_id

__all__ = [
    "Refusal",
    "SpawnFacts",
    "SpawnLimits",
    "allowed_targets",
    "check_spawn",
    "check_target",
    "listed",
    "normalise_allow",
    "target_agent",
]

_SHOWN = 64  # characters of a refused id that are quoted
_SUBAGENTS = "agents.defaults.subagents"


@dataclass(frozen=True, slots=True)
class SpawnFacts:
    """Who asks for what.

    Attributes:
        requester_key: session that asks.
        requester_agent: its agent's normalised id.
        depth: its depth; the child is one deeper.
        active_children: its un-ended children and reservations.
        operator: True for a client's root.
        agent_id: the target as it was asked for, `None` if it was left out.
        stopping: True if a stop mark lies on the requester or above it.
        task_bytes: size of the task text in UTF-8; `None` if there is none to check, 0 is refused.
    """

    requester_key: str
    requester_agent: str
    depth: int
    active_children: int
    operator: bool
    agent_id: str | None
    stopping: bool
    task_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SpawnLimits:
    """What holds for the requester; see `openclaw_ray.core.limits`.

    Attributes:
        max_spawn_depth: a session at this depth spawns nothing.
        max_children: active children of one session.
        require_agent_id: True if the target must be named.
        allow_agents: normalised targets (`normalise_allow`), `None` if no list is set.
        configured: normalised ids of all configured agents.
        allow_path, require_path, depth_path, children_path: where the limits are set.
        max_task_bytes: bytes of UTF-8 that a task may have.
    """

    max_spawn_depth: int
    max_children: int
    require_agent_id: bool
    allow_agents: tuple[str, ...] | None
    configured: frozenset[str]
    allow_path: str = f"{_SUBAGENTS}.allowAgents"
    require_path: str = f"{_SUBAGENTS}.requireAgentId"
    depth_path: str = f"{_SUBAGENTS}.maxSpawnDepth"
    children_path: str = f"{_SUBAGENTS}.maxChildrenPerAgent"
    max_task_bytes: int = TASK_MAX_BYTES


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a spawn was refused, in words and in parts; they go into the `Receipt`.

    Attributes:
        status: ``forbidden`` if a policy said no, ``error`` if the request cannot mean anything.
        error: the limit, the value seen, where it is set, the way out.
        limit: the setting's name, ``agentId``, ``task`` or ``stop``.
        value, maximum: the figures, where there are any.
        path: where the limit is set, where it is.
    """

    status: str
    error: str
    limit: str
    value: int | None = None
    maximum: int | None = None
    path: str | None = None


def check_spawn(facts: SpawnFacts, limits: SpawnLimits) -> Refusal | None:
    """The first rule that a spawn breaks, or `None` if it is admitted. Source: SPEC.md C, stage 1."""
    size = facts.task_bytes
    if size is not None and not 0 < size <= limits.max_task_bytes:
        return _bad_task(size, limits.max_task_bytes)
    target = facts.requester_agent
    if facts.agent_id is not None:
        named = normalise_agent_id(facts.agent_id)
        if named is None:
            return _bad_id(facts.agent_id)
        target = named
    if facts.depth >= limits.max_spawn_depth:
        return _too_deep(facts, limits)
    if not facts.operator:
        if facts.active_children >= limits.max_children:
            return _too_many(facts, limits)
        if facts.agent_id is None:
            if limits.require_agent_id:
                return _unnamed(facts, limits)
        elif not _may_name(target, facts.requester_agent, limits.allow_agents):
            return _not_allowed(target, facts, limits)
    if target not in limits.configured:
        return _unknown(target, facts, limits)
    if facts.stopping:
        text = f"{facts.requester_key} is being stopped; nothing new starts under it"
        return Refusal("forbidden", text, "stop")
    return None


def check_target(facts: SpawnFacts, limits: SpawnLimits) -> Refusal | None:
    """The rules about the target alone (1, 4 and 5), for those who only want to know whom they may name."""
    free = SpawnLimits(
        max_spawn_depth=facts.depth + 1,
        max_children=facts.active_children + 1,
        require_agent_id=limits.require_agent_id,
        allow_agents=limits.allow_agents,
        configured=limits.configured,
        allow_path=limits.allow_path,
        require_path=limits.require_path,
    )
    refusal = check_spawn(facts, free)
    return None if refusal is not None and refusal.limit == "stop" else refusal


def target_agent(facts: SpawnFacts) -> str:
    """The agent that an admitted spawn starts."""
    return normalise_agent_id(facts.agent_id) or facts.requester_agent


# --------------------------------------------------------------------------- the allowlist


def normalise_allow(entries: Iterable[str]) -> tuple[str, ...]:
    """An ``allowAgents`` list as the checks want it: trimmed, lower-case, blanks and repetitions dropped.

    A list of blanks stays a list: one with nothing on it, which is not the same as none.
    """
    return tuple(dict.fromkeys(entry for entry in (raw.strip().lower() for raw in entries) if entry))


def allowed_targets(
    requester: str, allow_agents: tuple[str, ...] | None, configured: frozenset[str]
) -> frozenset[str]:
    """The ids that a requester may name (SPEC.md C).

    Without a list: itself. With ``*`` on it: every configured agent and itself. Else: what is on it and
        configured.
    Leaving the id out is always allowed and not looked at here.
    """
    if allow_agents is None:
        return frozenset((requester,))
    if "*" in allow_agents:
        return configured | {requester}
    return configured.intersection(allow_agents)


def listed(
    requester: str, allow_agents: tuple[str, ...] | None, configured: frozenset[str]
) -> tuple[str, ...]:
    """`allowed_targets` in the order of ``agents_list``: the requester first if it may, the rest sorted."""
    targets = allowed_targets(requester, allow_agents, configured)
    return tuple(sorted(targets, key=lambda agent: (agent != requester, agent)))


def _may_name(target: str, requester: str, allow_agents: tuple[str, ...] | None) -> bool:
    if allow_agents is None:
        return target == requester
    return target in allow_agents or "*" in allow_agents


# --------------------------------------------------------------------------- the answers


def _bad_task(size: int, maximum: int) -> Refusal:
    if size == 0:
        return Refusal("error", "task is empty", "task", 0)
    text = f"task text of {size} bytes is over the limit of {maximum}; pass the data as input"
    return Refusal("error", text, "task", size, maximum)


def _bad_id(raw: str) -> Refusal:
    shown = raw if len(raw) <= _SHOWN else raw[: _SHOWN - 1] + "…"
    rule = "1 to 64 letters, digits, _ or -, beginning with a letter or digit"
    return Refusal("error", f"not an agent id: {shown!r} ({rule})", "agentId")


def _too_deep(facts: SpawnFacts, limits: SpawnLimits) -> Refusal:
    at, most = facts.depth, limits.max_spawn_depth
    text = (
        f"maxSpawnDepth reached: {facts.requester_key} is at depth {at} of {most} "
        f"({limits.depth_path}; raise it there, or spawn less deep)"
    )
    return Refusal("forbidden", text, "maxSpawnDepth", at, most, limits.depth_path)


def _too_many(facts: SpawnFacts, limits: SpawnLimits) -> Refusal:
    active, most, path = facts.active_children, limits.max_children, limits.children_path
    text = (
        f"maxChildrenPerAgent reached: {active} of {most} active under {facts.requester_key} "
        f"({path}; join children first, or raise it there)"
    )
    return Refusal("forbidden", text, "maxChildrenPerAgent", active, most, path)


def _unnamed(facts: SpawnFacts, limits: SpawnLimits) -> Refusal:
    text = f"agentId is required: name one of {_choice(facts, limits)}, or unset {limits.require_path}"
    return Refusal("forbidden", text, "requireAgentId", path=limits.require_path)


def _not_allowed(target: str, facts: SpawnFacts, limits: SpawnLimits) -> Refusal:
    text = (
        f"agentId {target!r} is not allowed for agent {facts.requester_agent} "
        f'(allowed: {_choice(facts, limits)}; {limits.allow_path}; add it there, or "*" for all)'
    )
    return Refusal("forbidden", text, "allowAgents", path=limits.allow_path)


def _unknown(target: str, facts: SpawnFacts, limits: SpawnLimits) -> Refusal:
    known = name_list(tuple(sorted(limits.configured))) if facts.operator else _choice(facts, limits)
    word = "configured" if facts.operator else "allowed"
    text = (
        f"agentId {target!r} is not a configured agent ({word}: {known}; "
        "pass it in agents=[…], or add it to agents.entries)"
    )
    return Refusal("forbidden", text, "agentId", path="agents.entries")


def _choice(facts: SpawnFacts, limits: SpawnLimits) -> str:
    return name_list(listed(facts.requester_agent, limits.allow_agents, limits.configured))
