"""What is worth to be told of a configuration that is in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["NOT_YET", "Notice", "NoticeKind", "not_yet"]


class NoticeKind(StrEnum):
    """What a notice is about."""

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
    "ray.pingPongWithSubagents",
    "ray.pool.parkSeconds",
    "session.agentToAgent",
    "session.dmScope",
    "session.identityLinks",
    "session.mainKey",
    "session.reset",
    "session.resetTriggers",
    "session.scope",
    "session.threadBindings",
    "tools",
)
"""Keys that are accepted and do not act yet, with all below them. A key that takes effect leaves this list."""


def not_yet(steps: tuple[str | int, ...]) -> bool:
    """Whether the key at these steps is one of `NOT_YET`."""
    spelt = ["*" if isinstance(step, int) else step for step in steps]
    if spelt[:2] == ["agents", "list"]:
        spelt[1] = "entries"
    if spelt[:2] == ["agents", "entries"] and len(spelt) > 2:
        spelt[2] = "*"
    path = ".".join(spelt)
    return any(path == one or path.startswith(f"{one}.") for one in NOT_YET)
