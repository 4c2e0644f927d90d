"""The tool rules of a configuration, as plain records: what registry and sessions get to see of it (SPEC.md A4).

`openclaw_ray.config.Config` makes them. A list that is not set is `None`; one that is set and empty says nothing
either, but for `ToolLists.allow` of a sandbox, where it takes the place of the built-in list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from openclaw_ray.core.compact import compact
from openclaw_ray.core.policy.names import folded

__all__ = ["Names", "ProviderRules", "Sender", "Senders", "ToolLists", "ToolRules", "ToolSettings"]

_WHO: Final = ("channel", "id", "e164", "username", "name")
_LONGEST: Final = 256


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
    """Who wrote the message that a turn answers, as the program that took it from a channel vouches (SPEC.md A4, E6).

    What is not known is `None`.

    Attributes:
        channel: where it came in, as ``telegram``.
        id: the sender's id there.
        e164: telephone number.
        username, name: as the channel has them.
        owner: it is the owner of the runtime: the turn may see the owner's memory (SPEC.md I3).
    """

    channel: str | None = None
    id: str | None = None
    e164: str | None = None
    username: str | None = None
    name: str | None = None
    owner: bool = False

    @classmethod
    def of(cls, given: Sender | Mapping[str, Any]) -> Sender:
        """A sender as a program names it.

        Raises:
            ValueError: a field is unknown or not of its type, or nothing says who it is.
        """
        if not isinstance(given, Sender):
            if not isinstance(given, Mapping):
                raise ValueError(f"sender: a Sender, or a mapping of its fields, not {type(given).__name__}")
            known = [each.name for each in fields(cls)]
            unknown = next((name for name in given if name not in known), None)
            if unknown is not None:
                raise ValueError(f"sender: there is no field {unknown!r}; there are {', '.join(known)}")
            given = cls(**given)
        for name in _WHO:
            value = getattr(given, name)
            if value is not None and (not isinstance(value, str) or not value.strip() or len(value) > _LONGEST):
                raise ValueError(f"sender.{name}: a text of 1 to {_LONGEST} characters, not {value!r:.80}")
        if not isinstance(given.owner, bool):
            raise ValueError(f"sender.owner: True or False, not {given.owner!r:.80}")
        if not any(getattr(given, name) for name in _WHO[1:]):
            raise ValueError(f"sender: at least one of {', '.join(_WHO[1:])} says who it is")
        return given

    @classmethod
    def read(cls, key: str) -> Sender:
        """The sender that a key of ``toolsBySender`` means: ``channel:telegram:42``, ``id:42``, ``username:ada``.

        Raises:
            ValueError: it means nobody.
        """
        word, _, value = key.strip().partition(":")
        if word.lower() == "channel":
            channel, _, value = value.partition(":")
            if channel.strip() and value.strip():
                return cls.of({"channel": channel.strip(), "id": value.strip()})
        elif word.lower() in _WHO and value.strip():
            return cls.of({word.lower(): value.strip()})
        keys = ("channel:<channel>:<id>", *(f"{one}:<{one}>" for one in _WHO[1:]))
        raise ValueError(f"sender: {key!r} means nobody; write {', '.join(keys)}")

    def to_json(self) -> dict[str, Any]:
        """JSON form: what is known."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}

    def identity(self) -> str:
        """The most exact of its keys: what tells it from others."""
        return self.matches()[0]

    def matches(self) -> tuple[str, ...]:
        """The keys of ``toolsBySender`` that mean this sender, the most exact first."""
        at = f"{self.channel}:{self.id}" if self.channel and self.id else None
        user = self.username.strip().removeprefix("@") if self.username else None
        named = (("channel", at), ("id", self.id), ("e164", self.e164), ("username", user), ("name", self.name))
        return (*(f"{word}:{value.strip().lower()}" for word, value in named if value), "*")


@compact
@dataclass(frozen=True, slots=True)
class Senders:
    """The senders behind a run.

    Attributes:
        who: one each; of several messages that one turn answers, several.
        turn: number of the run's turn that answers them and nobody else, 0 for none. The run's other turns, a wake for
            one, go by the session's snapshot and by what is said of its senders: by no more than either allows.
    """

    who: tuple[Sender, ...]
    turn: int = 0

    def at(self, turn: int) -> tuple[Sender | None, tuple[Sender, ...]]:
        """Whom the run's turn ``turn`` answers, if it answers senders alone, and who else is behind it."""
        return (self.who[0], self.who[1:]) if self.who and turn == self.turn else (None, self.who)
