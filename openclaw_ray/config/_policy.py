"""The tool rules that the actors get of a configuration: plain records with the path of each list (SPEC.md A4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from openclaw_ray.config._fields import plain
from openclaw_ray.config._model import Section
from openclaw_ray.config._model_tools import Tools
from openclaw_ray.config._notices import Notice, NoticeKind
from openclaw_ray.core.policy.names import GROUPS, PLUGINS
from openclaw_ray.core.policy.rules import Names, ProviderRules, ToolLists, ToolRules, ToolSettings

if TYPE_CHECKING:
    from openclaw_ray.config._config import Config

__all__ = ["agent_tools", "tool_rules", "unmatched_groups"]

_Look = Callable[..., tuple[Any, str]]
"""Gives the value of a field, by the attribute names that lead to it, and the path of ``tools``."""


def tool_rules(tools: Tools) -> ToolRules | None:
    """What ``tools`` says for all agents; `None` if it says nothing."""
    rules = ToolRules(_settings(_in(tools)), _lists(tools.subagents.tools, "tools.subagents.tools"))
    return None if rules == ToolRules() else rules


def agent_tools(config: Config, agent_id: str) -> ToolSettings | None:
    """What the ``tools`` of one agent say; `None` if there are none. Each key may be of another place."""

    def look(*names: str) -> tuple[Any, str]:
        value, path = config.own(agent_id, "tools", *names)
        return value, f"{path}.tools"

    settings = _settings(look)
    return None if settings == ToolSettings() else settings


def unmatched_groups(config: Config) -> Iterator[Notice]:
    """Groups in lists of tools that there are not: a ``deny`` that means nothing is worth to be told."""
    rules = tool_rules(config.root.tools) or ToolRules()
    found = [*_names(rules.settings), *_names(ToolSettings(lists=rules.subagents))]
    for agent_id in config.named_agents:
        found += _names(agent_tools(config, agent_id) or ToolSettings())
    for names in found:
        for entry in names.entries:
            if entry.startswith("group:") and entry not in GROUPS and entry != PLUGINS:
                known = [group.removeprefix("group:") for group in (*GROUPS, PLUGINS)]
                near = get_close_matches(entry.removeprefix("group:"), known, 1)
                hint = f"; did you mean group:{near[0]}?" if near else ""
                yield Notice(names.path, NoticeKind.UNMATCHED, f"there is no {entry}{hint}")


def _names(settings: ToolSettings) -> Iterator[Names]:
    """Every list of one place."""
    places = [settings.lists, settings.sandbox, *(rules.lists for rules in settings.by_provider)]
    for lists in (*places, *(said for _, said in settings.by_sender)):
        yield from (names for names in (lists.allow, lists.also_allow, lists.deny) if names is not None)


def _in(tools: Tools) -> _Look:
    def look(*names: str) -> tuple[Any, str]:
        value: Any = tools
        for name in names:
            if name not in value.model_fields_set:
                return None, "tools"
            value = getattr(value, name)
        return value, "tools"

    return look


def _settings(look: _Look) -> ToolSettings:
    profile, profile_at = look("profile")
    providers, providers_at = look("by_provider")
    senders, senders_at = look("tools_by_sender")
    return ToolSettings(
        profile=None if profile is None else plain(profile),
        profile_path="" if profile is None else f"{profile_at}.profile",
        lists=_lists_of(look, (), ""),
        by_provider=_providers(providers or {}, f"{providers_at}.byProvider"),
        by_sender=_senders(senders or {}, f"{senders_at}.toolsBySender"),
        sandbox=_lists_of(look, ("sandbox", "tools"), ".sandbox.tools"),
    )


def _senders(said: Mapping[str, Any], path: str) -> tuple[tuple[str, ToolLists], ...]:
    return tuple((_sender_key(key), _lists(one, f"{path}.{key}")) for key, one in said.items())


def _sender_key(key: str) -> str:
    """Letter case does not count, nor the ``@`` before a user name."""
    word, colon, value = key.strip().lower().partition(":")
    return f"{word}:{value.strip().removeprefix('@') if word == 'username' else value.strip()}" if colon else word


def _providers(said: Mapping[str, Any], path: str) -> tuple[ProviderRules, ...]:
    rules = []
    for key, one in said.items():
        at = f"{path}.{key}"
        profile = None if one.profile is None else plain(one.profile)
        rules.append(ProviderRules(key.strip().lower(), profile, f"{at}.profile" if profile else "", _lists(one, at)))
    return tuple(rules)


def _lists_of(look: _Look, below: tuple[str, ...], path: str) -> ToolLists:
    found: list[Names | None] = []
    for name, key in _LISTS.items():
        entries, at = look(*below, name)
        found.append(None if entries is None else Names.of(plain(entries), f"{at}{path}.{key}"))
    return ToolLists(*found)


def _lists(said: Section, path: str) -> ToolLists:
    return _lists_of(lambda name: (getattr(said, name), path), (), "")


_LISTS = {"allow": "allow", "also_allow": "alsoAllow", "deny": "deny"}
