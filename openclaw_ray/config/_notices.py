"""What is worth to be told of a configuration that is in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["NOT_YET", "Notice", "NoticeKind", "list_notices", "not_yet"]


class NoticeKind(StrEnum):
    """What a notice is about."""

    LIST = "list"
    """A list that means more, or less, than it looks."""
    PENDING = "pending"
    """A key of ours that is checked but does not act yet."""
    RETIRED = "retired"
    """A key of older OpenClaw files, which has no effect."""
    VARIABLE = "variable"
    """A variable that is not set, in a section that is not used."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing worth to be told.

    Attributes:
        path: the key.
        kind: what it is about.
        text: in a few words.
    """

    path: str
    kind: NoticeKind
    text: str


NOT_YET: Final = (
    "agents.defaults.model",
    "agents.defaults.sandbox",
    "agents.defaults.subagents.delegationMode",
    "agents.defaults.subagents.model",
    "agents.defaults.subagents.thinking",
    "agents.defaults.thinkingDefault",
    "agents.defaults.timeoutSeconds",
    "agents.defaults.workspace",
    "agents.entries.*.agentDir",
    "agents.entries.*.identity",
    "agents.entries.*.model",
    "agents.entries.*.name",
    "agents.entries.*.ray.scheduling",
    "agents.entries.*.sandbox",
    "agents.entries.*.subagents.delegationMode",
    "agents.entries.*.subagents.model",
    "agents.entries.*.subagents.thinking",
    "agents.entries.*.thinkingDefault",
    "agents.entries.*.tools",
    "agents.entries.*.workspace",
    "agents.ownership",
    "auth",
    "channels",
    "messages",
    "ray.budgets",
    "ray.pool.parkSeconds",
    "session.dmScope",
    "session.identityLinks",
    "session.mainKey",
    "session.maintenance",
    "session.reset",
    "session.resetTriggers",
    "session.scope",
    "session.threadBindings",
    "tools.allow",
    "tools.alsoAllow",
    "tools.byProvider",
    "tools.deny",
    "tools.profile",
    "tools.sandbox",
    "tools.sessions_spawn",
    "tools.subagents",
    "tools.toolsBySender",
)
"""Keys that are accepted and do not act yet, with all below them. A key that takes effect leaves this list."""


def list_notices(allow: tuple[str, ...] | None, path: str) -> tuple[Notice, ...]:
    """What is to be told of an agent-to-agent list: an empty one admits all, one of blanks nobody (SPEC.md A3)."""
    if allow is None or any(entry.strip() for entry in allow):
        return ()
    text = "blank names alone admit nobody" if allow else "an empty list admits every agent; enabled: false admits none"
    return (Notice(path, NoticeKind.LIST, text),)


def not_yet(steps: tuple[str | int, ...]) -> bool:
    """Whether the key at these steps is one of `NOT_YET`."""
    spelt = ["*" if isinstance(step, int) else step for step in steps]
    if spelt[:2] == ["agents", "list"]:
        spelt[1] = "entries"
    if spelt[:2] == ["agents", "entries"] and len(spelt) > 2:
        spelt[2] = "*"
    path = ".".join(spelt)
    return any(path == one or path.startswith(f"{one}.") for one in NOT_YET)
