"""Which sessions another session may see and use: the one rule of all session tools (SPEC.md A3, B2).

The rules in the order in which they decide:

1. A key that means no session is out of reach; so is a hidden (incognito) one, for everybody.
2. The own session is always in sight.
3. Visibility ``self`` ends here.
4. A sandboxed viewer is held to what was spawned from it, whatever the visibility, unless the sandbox says ``all``.
5. What was spawned from the viewer is in sight under ``tree`` and ``all``, of whichever agent it is; ``agent`` has no
   such exception.
6. Of the same agent: everything under ``agent`` and ``all``; under ``tree`` everything for the main session, else
   nothing.
7. Of another agent: under ``all`` only, and only if the agent-to-agent policy is on and has both agents on its list.

The list of agent-to-agent: not set or empty admits everybody; entries are trimmed, blank ones count for nothing, and a
list of nothing else admits nobody; ``*`` stands for any text, in any letter case; whole ids are compared as they are.

The operator (a client's root) is not asked this. What a denial says does not depend on whether there is such a session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from openclaw_ray.core import keys

__all__ = [
    "Denial",
    "DenialReason",
    "SessionRules",
    "ToolsVisibility",
    "Viewer",
    "Visibility",
    "check_access",
    "pair_allowed",
]


class Visibility(StrEnum):
    """Which sessions the session tools may see: ``tools.sessions.visibility``. Source: SPEC.md A3."""

    SELF = "self"
    """The own one."""
    TREE = "tree"
    """The own one and those spawned from it."""
    AGENT = "agent"
    """All of the same agent."""
    ALL = "all"
    """All."""


class ToolsVisibility(StrEnum):
    """Which sessions the session tools of a sandboxed session see: ``sandbox.sessionToolsVisibility``."""

    SPAWNED = "spawned"
    """Its own spawn subtree."""
    ALL = "all"
    """What ``tools.sessions.visibility`` says."""


class DenialReason(StrEnum):
    """Which rule said no."""

    MALFORMED = "malformed"
    """The key means no session."""
    INCOGNITO = "incognito"
    """The session is hidden."""
    VISIBILITY = "visibility"
    """``tools.sessions.visibility`` leaves it out."""
    SANDBOX = "sandbox"
    """The viewer is sandboxed and did not spawn it."""
    A2A_DISABLED = "a2a_disabled"
    """Agents may not use each other's sessions."""
    A2A_PAIR = "a2a_pair"
    """One of the two agents is not on the list."""


@dataclass(frozen=True, slots=True)
class SessionRules:
    """What the configuration says of sessions that use each other. Source: SPEC.md A3.

    Attributes:
        visibility: ``tools.sessions.visibility``.
        sandbox_sees: ``agents.defaults.sandbox.sessionToolsVisibility``.
        a2a_enabled: whether agents may use each other's sessions.
        a2a_allow: as it is written; `None` if it is not set.
        max_ping_pong_turns: turns of replies after a send, 0–5.
        enabled_path, allow_path, turns_path: where these three are, or would be, set.
    """

    visibility: Visibility = Visibility.TREE
    sandbox_sees: ToolsVisibility = ToolsVisibility.SPAWNED
    a2a_enabled: bool = True
    a2a_allow: tuple[str, ...] | None = None
    max_ping_pong_turns: int = 5
    enabled_path: str = "tools.agentToAgent.enabled"
    allow_path: str = "tools.agentToAgent.allow"
    turns_path: str = "tools.agentToAgent.maxPingPongTurns"


@dataclass(frozen=True, slots=True)
class Viewer:
    """The session that asks: its normalised key, and whether it runs in a sandbox."""

    key: str
    sandboxed: bool = False


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a session is out of reach: the rule, in words, and where it is set (empty: nowhere)."""

    reason: DenialReason
    error: str
    path: str = ""


_VISIBILITY_PATH = "tools.sessions.visibility"
_SANDBOX_PATH = "agents.defaults.sandbox.sessionToolsVisibility"


def check_access(rules: SessionRules, viewer: Viewer, target: str, *, spawned: bool) -> Denial | None:
    """Why ``viewer`` may not see or use the session ``target``; `None` if it may.

    Args:
        rules: those in force.
        viewer: who asks.
        target: the full key of a session, there or not, in any spelling.
        spawned: whether it was spawned from the viewer, at any depth.
    """
    seen = keys.inspect(target)
    if seen.shape is not keys.KeyShape.AGENT:  # (1)
        text = f"{target!r} is no session key; a key is agent:<agent id>:<name>"
        return Denial(DenialReason.MALFORMED, text)
    if seen.is_incognito:
        return Denial(DenialReason.INCOGNITO, f"session {seen.normalised} is hidden from all session tools")
    if seen.normalised == viewer.key:  # (2)
        return None
    if rules.visibility is Visibility.SELF:  # (3)
        return _out_of_sight(rules, viewer, seen, "the own session alone is in sight")
    if viewer.sandboxed and rules.sandbox_sees is ToolsVisibility.SPAWNED:  # (4)
        return None if spawned else _outside_sandbox(viewer, seen)
    if spawned and rules.visibility is not Visibility.AGENT:  # (5)
        return None
    own = keys.inspect(viewer.key)
    if seen.agent_id == own.agent_id:  # (6)
        if rules.visibility is not Visibility.TREE or own.kind is keys.KeyKind.MAIN:
            return None
        return _out_of_sight(rules, viewer, seen, "it was not spawned from there")
    if rules.visibility is not Visibility.ALL:  # (7)
        return _out_of_sight(rules, viewer, seen, "it is another agent's, which takes visibility all")
    if not rules.a2a_enabled:
        text = f"{viewer.key} may not use {seen.normalised}: agents may not use each other's sessions"
        return Denial(DenialReason.A2A_DISABLED, f"{text} ({rules.enabled_path} is false)", rules.enabled_path)
    if not pair_allowed(rules.a2a_allow, (own.agent_id or "", seen.agent_id or "")):
        text = f"{viewer.key} may not use {seen.normalised}: both agents must be on the list of {rules.allow_path}"
        return Denial(DenialReason.A2A_PAIR, text, rules.allow_path)
    return None


def pair_allowed(allow: tuple[str, ...] | None, agents: Iterable[str]) -> bool:
    """Whether an agent-to-agent list has all of ``agents`` on it."""
    if not allow:
        return True
    entries = [entry for entry in map(str.strip, allow) if entry]
    return all(any(_matches(entry, agent) for entry in entries) for agent in agents)


def _matches(entry: str, agent: str) -> bool:
    if "*" not in entry:
        return entry == agent
    pattern = ".*".join(re.escape(part) for part in entry.lower().split("*"))
    return re.fullmatch(pattern, agent.lower()) is not None


def _out_of_sight(rules: SessionRules, viewer: Viewer, seen: keys.KeyView, why: str) -> Denial:
    text = f"{viewer.key} may not use {seen.normalised}: {why} ({_VISIBILITY_PATH} is {rules.visibility.value})"
    return Denial(DenialReason.VISIBILITY, text, _VISIBILITY_PATH)


def _outside_sandbox(viewer: Viewer, seen: keys.KeyView) -> Denial:
    why = "it is sandboxed and sees only what was spawned from it"
    text = f"{viewer.key} may not use {seen.normalised}: {why} ({_SANDBOX_PATH} is {ToolsVisibility.SPAWNED.value})"
    return Denial(DenialReason.SANDBOX, text, _SANDBOX_PATH)
