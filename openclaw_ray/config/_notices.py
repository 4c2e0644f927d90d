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
    REFUSING = "refusing"
    """A key that has sessions refused, as there is not yet what they need."""
    VARIABLE = "variable"
    """A variable that is not set, in a section that is not used."""
    UNMATCHED = "unmatched"
    """A group of tools that there is not: the entry means nothing."""


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
    "agents.defaults.model.fallbacks",
    "agents.defaults.sandbox.scope",
    "agents.defaults.sandbox.sessionToolsVisibility",
    "agents.defaults.sandbox.workspaceAccess",
    "agents.defaults.subagents.model.fallbacks",
    "agents.defaults.timeoutSeconds",
    "agents.entries.*.identity",
    "agents.entries.*.model.fallbacks",
    "agents.entries.*.name",
    "agents.entries.*.sandbox.scope",
    "agents.entries.*.sandbox.workspaceAccess",
    "agents.entries.*.subagents.model.fallbacks",
    "agents.entries.*.tools.byProvider",
    "agents.entries.*.tools.sandbox",
    "agents.entries.*.tools.toolsBySender",
    "agents.ownership",
    "messages",
    "ray.budgets",
    "ray.pool.parkSeconds",
    "session.dmScope",
    "session.identityLinks",
    "session.mainKey",
    "session.reset",
    "session.resetTriggers",
    "session.scope",
    "tools.byProvider",
    "tools.sandbox",
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
