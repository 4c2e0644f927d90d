"""What users command in a conversation, as words: read, and answered (SPEC.md B8).

1. ``/focus TARGET``: the conversation is to be that of a session there is; ``/unfocus``, or ``/session unbind``: that
   of none. ``/agents``: who is at work, and which conversation each has. ``/session idle`` and ``/session max-age``
   show after what time the binding ends, and with a time set it for this conversation alone.
2. A time is a number of hours, or numbers with units: ``90m``, ``1h30m``, ``2d``. ``off``, ``disable``, ``none`` and
   ``0`` are never.
3. What begins as a command and cannot be read as one is answered with its form. It is no message either: no session is
   told of a slip of the pen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from openclaw_ray.core.announce_text import duration

__all__ = ["HOURS_MOST", "AgentLine", "Command", "Verb", "agents_text", "command_of", "hours_of", "lasts_text"]

HOURS_MOST: Final = 24.0 * 366 * 10
"""Hours: the longest time that a binding is given by command, ten years."""
_OFF: Final = frozenset({"off", "disable", "none", "0"})
_UNITS: Final = {"w": 168.0, "d": 24.0, "h": 1.0, "m": 1 / 60, "s": 1 / 3600}
_NUMBER: Final = re.compile(r"\d{1,9}(?:\.\d{1,6})?", re.ASCII)
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([wdhms])", re.ASCII)


class Verb(StrEnum):
    """What is to be done."""

    FOCUS = "focus"
    """Have the conversation be that of the session that ``target`` means."""
    UNFOCUS = "unfocus"
    """Have it be nobody's."""
    AGENTS = "agents"
    """Say who is at work."""
    IDLE = "idle"
    """Show, or set, after how long a silence the binding ends."""
    MAX_AGE = "max-age"
    """Show, or set, at which age it does."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a user wants done.

    Attributes:
        verb: what.
        target: whom to focus.
        hours: the time to set, 0 for never; `None` to show it.
        error: why it cannot be read, with its form (3); nothing is to be done then.
    """

    verb: Verb
    target: str = ""
    hours: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One session in ``/agents``: what it is called, its key, how its run stands, and its conversations."""

    label: str
    session_key: str
    status: str
    conversations: tuple[str, ...] = ()


_FORMS: Final = {
    "/focus": "/focus <label|session key|session id>",
    "/unfocus": "/unfocus",
    "/agents": "/agents",
    "/session": "/session idle [time|off], /session max-age [time|off], or /session unbind",
}


def command_of(text: str) -> Command | None:
    """The command that a user's word is; `None` for a message."""
    word, *rest = text.split() or [""]
    match word.lower(), rest:
        case "/focus", [_, *_]:
            return Command(Verb.FOCUS, " ".join(rest))
        case "/focus", []:
            return _unread(Verb.FOCUS, "/focus", "says no target")
        case ("/unfocus" | "/agents") as name, _:
            verb = Verb.UNFOCUS if name == "/unfocus" else Verb.AGENTS
            return _unread(verb, name, "takes nothing more") if rest else Command(verb)
        case "/session", _:
            return _session([one.lower() for one in rest])
    return None


def _session(words: list[str]) -> Command:
    match words:
        case ["unbind"]:
            return Command(Verb.UNFOCUS)
        case [("idle" | "max-age") as name]:
            return Command(Verb(name))
        case [("idle" | "max-age") as name, time]:
            hours = hours_of(time)
            if hours is None:
                why = f"{time!r:.40} is no time, as 24, 90m or 1h30m are, and at most 10 years"
                return _unread(Verb(name), "/session", why)
            return Command(Verb(name), hours=hours)
    return _unread(Verb.IDLE, "/session", "says what it does not know" if words else "does not say what")


def _unread(verb: Verb, name: str, why: str) -> Command:
    return Command(verb, error=f"{name}: {why}; write {_FORMS[name]}")


def hours_of(text: str) -> float | None:
    """The hours that a time means, 0 for never (2); `None` if it means none."""
    word = text.strip().lower()
    if word in _OFF:
        return 0.0
    if _NUMBER.fullmatch(word):
        hours = float(word)
    else:
        parts = _PART.findall(word)
        if not parts or "".join(number + unit for number, unit in parts) != word:
            return None
        hours = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return hours if hours <= HOURS_MOST else None


def lasts_text(verb: Verb, hours: float, ends_in: float | None, *, set_now: bool) -> str:
    """What is said of a binding's time.

    Args:
        verb: `Verb.IDLE` or `Verb.MAX_AGE`.
        hours: what is in force; 0 is never.
        ends_in: hours until it is over by that, if nothing is said until then; `None` for never.
        set_now: it was set with this command.
    """
    what = "silence" if verb is Verb.IDLE else "age"
    head = f"{verb.value} {'is now' if set_now else 'is'}"
    if hours <= 0 or ends_in is None:
        return f"{head} off: this conversation stays bound whatever its {what}"
    left = "at once" if ends_in <= 0 else f"in {_spoken(ends_in)}"
    lasting = _spoken(hours)
    return f"{head} {lasting}: this conversation is unbound after {lasting} of {what}, {left} as it stands"


def _spoken(hours: float) -> str:
    return duration(hours * 3_600_000)


def agents_text(lines: Iterable[AgentLine], *, bindable: bool) -> str:
    """The answer to ``/agents``. ``bindable``: the channel can bind conversations, and may."""
    found = [
        f'{json.dumps(line.label, ensure_ascii=False)} ({line.status}) {line.session_key} {_bound(line, bindable)}'
        for line in lines
    ]
    return "\n".join(["agents:", *(found or ["(none)"])])


def _bound(line: AgentLine, bindable: bool) -> str:
    if line.conversations:
        return " ".join(f"binding:{one}" for one in line.conversations)
    return "unbound" if bindable else "bindings unavailable"
