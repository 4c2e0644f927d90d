"""The words that keys, depth and role are spoken of in. Import them from `openclaw_ray.core.keys`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "ChatType",
    "ControlScope",
    "DmScope",
    "KeyKind",
    "KeyShape",
    "KeyView",
    "Role",
    "RoleName",
]


class KeyShape(StrEnum):
    """What a text is, taken as a session key. Source: SPEC.md D2."""

    MISSING = "missing"
    """Nothing, or only white space."""
    AGENT = "agent"
    """A whole key: ``agent:<id>:<rest>``."""
    MALFORMED_AGENT = "malformed_agent"
    """Begins like a key but has no id or no rest; refused, never taken for main."""
    LEGACY_OR_ALIAS = "legacy_or_alias"
    """Anything else, such as ``main`` or ``subagent:<uuid>``: read with the default agent."""


class KeyKind(StrEnum):
    """What a whole key's rest says of its session."""

    MAIN = "main"
    """The main session of the agent."""
    SUBAGENT = "subagent"
    """A spawned child, at any depth."""
    ACP = "acp"
    """A child in an external harness."""
    CRON = "cron"
    """A scheduled job."""
    OTHER = "other"
    """A channel, a dashboard or driver session, or a name of one's own."""


class ChatType(StrEnum):
    """What sort of conversation a key stands for, as far as the key tells."""

    DIRECT = "direct"
    """One person."""
    GROUP = "group"
    """A group."""
    CHANNEL = "channel"
    """A room."""
    UNKNOWN = "unknown"
    """The key does not say."""


class DmScope(StrEnum):
    """Which direct messages share a session: ``session.dmScope``. Source: SPEC.md A3."""

    MAIN = "main"
    """All of them share the agent's main session."""
    PER_PEER = "per-peer"
    """One for each person, over all channels."""
    PER_CHANNEL_PEER = "per-channel-peer"
    """One for each person and channel."""
    PER_ACCOUNT_CHANNEL_PEER = "per-account-channel-peer"
    """One for each person, channel and account of ours."""


class RoleName(StrEnum):
    """A session's place in its tree. Source: SPEC.md E1."""

    MAIN = "main"
    """A root."""
    ORCHESTRATOR = "orchestrator"
    """A child that may spawn."""
    LEAF = "leaf"
    """A child at the depth cap."""


class ControlScope(StrEnum):
    """Whom a session may steer and stop. Source: SPEC.md E1."""

    CHILDREN = "children"
    """What it spawned."""
    NONE = "none"
    """Nobody."""


@dataclass(frozen=True, slots=True)
class KeyView:
    """What a session key says.

    Attributes:
        shape: what the text is; for all shapes but ``agent``, `agent_id`, `rest` and `kind` are `None`.
        agent_id: the agent's id, lower-case.
        rest: what follows it, normalised.
        kind: what the rest says.
        is_subagent: the rest (of a bare key: the key) begins with ``subagent:``.
        is_cron, is_acp: the same for scheduled jobs (whole keys only) and external harnesses.
        is_incognito: hidden from all cross-session tools.
        key_depth: number of ``subagent:`` segments; the last resort for a depth.
        thread_id: what follows the last ``:thread:``, or `None`.
        base_key: the key without that tail.
        normalised: the canonical spelling.
        chat_type: what sort of conversation it is.
    """

    shape: KeyShape
    agent_id: str | None
    rest: str | None
    kind: KeyKind | None
    is_subagent: bool
    is_cron: bool
    is_acp: bool
    is_incognito: bool
    key_depth: int
    thread_id: str | None
    base_key: str
    normalised: str
    chat_type: ChatType


@dataclass(frozen=True, slots=True)
class Role:
    """A session's role with what follows from it; recomputed from the present cap (SPEC.md E1)."""

    role: RoleName
    control_scope: ControlScope
    can_spawn: bool
