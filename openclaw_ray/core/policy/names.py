"""Names of tools: how they are spelt, which groups and profiles there are, what an entry of a list means (SPEC.md E4).

1. Letter case and blanks around a name do not count. A few names have a second one: ``bash`` is ``exec``.
2. An entry of a list is a name, a pattern with ``*``, or a group. A group is looked up once; groups do not nest.
3. A tool that OpenClaw does not know is somebody's own: it is in ``group:plugins``, and only there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["CORE_TOOLS", "GROUPS", "PLUGINS", "PROFILES", "entry_for", "folded", "names_in", "tool_name"]

_ALIASES: Final = {"bash": "exec", "cron": "automations"}

PLUGINS: Final = "group:plugins"
"""The group of all tools that are not OpenClaw's own."""
_SESSIONS: Final = (
    "sessions",
    "sessions_list",
    "sessions_history",
    "sessions_search",
    "conversations_list",
    "conversations_send",
    "conversations_turn",
    "sessions_send",
    "sessions_spawn",
    "sessions_yield",
    "subagents",
    "session_status",
)
_BY_SUBJECT: Final = {
    "group:fs": ("read", "write", "edit", "apply_patch"),
    "group:runtime": ("exec", "process", "code_execution"),
    "group:web": ("web_search", "web_fetch", "x_search"),
    "group:memory": ("memory_search", "memory_get"),
    "group:sessions": (*_SESSIONS, "suggest_task", "dismiss_task"),
    "group:messaging": ("message",),
    "group:ui": ("browser", "screen", "theme", "dashboard", "terminal", "portal", "canvas", "show_widget"),
    "group:automation": ("heartbeat_respond", "automations", "gateway", "plugins", "openclaw"),
    "group:nodes": ("nodes", "computer", "mobile_ui"),
    "group:agents": (
        "agents_list",
        "get_goal",
        "create_goal",
        "update_goal",
        "progress_card",
        "ask_user",
        "skill_workshop",
    ),
    "group:media": ("view_image", "image_generate", "music_generate", "video_generate", "tts", "pdf"),
}
CORE_TOOLS: Final = frozenset(name for names in _BY_SUBJECT.values() for name in names) | {"ls"}
"""OpenClaw's own tools, those that there are not here included: what is not among them is a plugin's."""
_NO_OPENCLAW: Final = {"read", "write", "edit", "apply_patch", "ls", "exec", "process", "canvas"}
GROUPS: Final = {
    **{group: frozenset(names) for group, names in _BY_SUBJECT.items()},
    "group:openclaw": CORE_TOOLS - _NO_OPENCLAW,
}
"""Group -> its members; `PLUGINS` is besides."""

PROFILES: Final = {
    "minimal": ("session_status", "gateway"),
    "messaging": (*_SESSIONS, "message", "ask_user", "gateway"),
    "coding": (
        "group:sessions",
        "group:fs",
        "group:runtime",
        "group:web",
        "group:memory",
        "automations",
        "get_goal",
        "create_goal",
        "update_goal",
        "progress_card",
        "ask_user",
        "skill_workshop",
        "view_image",
        "image_generate",
        "music_generate",
        "video_generate",
        "gateway",
    ),
    "full": (),
}
"""Profile -> the entries that it keeps; empty is everything."""


def tool_name(name: str) -> str:
    """The spelling under which a tool is known to the rules (1)."""
    text = name.strip().lower()
    return _ALIASES.get(text, text)


def folded(entries: Iterable[str]) -> tuple[str, ...]:
    """A list as it counts: entries by `tool_name`, each once, blank ones left out."""
    return tuple(dict.fromkeys(name for name in map(tool_name, entries) if name))


def entry_for(tool: str, entries: Iterable[str]) -> str | None:
    """The first of the ``entries`` that means ``tool``, or `None`; both as `tool_name` spells them."""
    for entry in entries:
        if entry.startswith("group:"):
            if tool in GROUPS.get(entry, ()) or (entry == PLUGINS and tool not in CORE_TOOLS):
                return entry
        elif entry == tool or ("*" in entry and _pattern(entry).fullmatch(tool)):
            return entry
    return None


def names_in(entries: Iterable[str]) -> frozenset[str]:
    """The names of OpenClaw's own tools that the ``entries`` mean, and those that they write out."""
    given = tuple(entries)
    plain = {entry for entry in given if "*" not in entry and not entry.startswith("group:")}
    return frozenset(plain | {name for name in CORE_TOOLS if entry_for(name, given) is not None})


@lru_cache(maxsize=512)
def _pattern(entry: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\*+", entry))), re.S)
