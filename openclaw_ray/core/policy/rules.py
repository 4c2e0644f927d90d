"""The tool rules of a configuration, as plain records: what registry and sessions get to see of it (SPEC.md A4).

`openclaw_ray.config.Config` makes them. A list that is not set is `None`; one that is set and empty says nothing
either, but for `ToolLists.allow` of a sandbox, where it takes the place of the built-in list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from openclaw_ray.core.compact import compact
from openclaw_ray.core.policy.names import folded

__all__ = ["Names", "ProviderRules", "Sender", "ToolLists", "ToolRules", "ToolSettings"]


@compact
@dataclass(frozen=True, slots=True)
class Names:
    """One list of tools.

    Attributes:
        entries: names, patterns and groups, as `folded` gives them.
        path: the key that sets it; empty for one that is built in.
    """

    entries: tuple[str, ...]
    path: str = ""

    @classmethod
    def of(cls, entries: Iterable[str], path: str = "") -> Names:
        """The list of these entries, as they were written."""
        return cls(folded(entries), path)


@compact
@dataclass(frozen=True, slots=True)
class ToolLists:
    """``allow``, ``alsoAllow`` and ``deny`` of one place."""

    allow: Names | None = None
    also_allow: Names | None = None
    deny: Names | None = None


@compact
@dataclass(frozen=True, slots=True)
class ProviderRules:
    """Lists that begin with a profile, for one ``provider`` or ``provider/model``.

    Attributes:
        key: that name, lower-case.
        profile: name of the profile, or `None`.
        path: where the profile is set.
        lists: the lists.
    """

    key: str
    profile: str | None = None
    path: str = ""
    lists: ToolLists = ToolLists()


@compact
@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What ``tools``, or one agent's ``tools``, says.

    Attributes:
        profile: name of the profile, or `None`.
        profile_path: where that is set.
        lists: the lists.
        by_provider: narrower rules for providers and models.
        by_sender: (key, lists) for senders; keys lower-case.
        sandbox: lists for sandboxed sessions.
    """

    profile: str | None = None
    profile_path: str = ""
    lists: ToolLists = ToolLists()
    by_provider: tuple[ProviderRules, ...] = ()
    by_sender: tuple[tuple[str, ToolLists], ...] = ()
    sandbox: ToolLists = ToolLists()


@compact
@dataclass(frozen=True, slots=True)
class ToolRules:
    """What the configuration says of tools for all agents.

    Attributes:
        settings: ``tools``.
        subagents: ``tools.subagents.tools``.
    """

    settings: ToolSettings = ToolSettings()
    subagents: ToolLists = ToolLists()


@compact
@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote the message that a turn answers; what is not known is `None`."""

    channel: str | None = None
    id: str | None = None
    e164: str | None = None
    username: str | None = None
    name: str | None = None

    def matches(self) -> tuple[str, ...]:
        """The keys of ``toolsBySender`` that mean this sender, the most exact first."""
        at = f"{self.channel}:{self.id}" if self.channel and self.id else None
        user = self.username.strip().removeprefix("@") if self.username else None
        named = (("channel", at), ("id", self.id), ("e164", self.e164), ("username", user), ("name", self.name))
        return (*(f"{word}:{value.strip().lower()}" for word, value in named if value), "*")
