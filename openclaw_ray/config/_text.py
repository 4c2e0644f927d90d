"""From the text of a configuration to plain objects, with the lines of its keys.

Plain JSON goes through the standard parser, which is fast; what that refuses is rewritten first (`_json5`), and
what even then it refuses goes through the json5 package, which is slow and says what is wrong. All of them let
the later of two equal keys win in silence, so that pairs are counted on the way. Where keys stand is looked up
only when there is a fault to report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from openclaw_ray.config._json5 import TOKEN, as_json, text_of
from openclaw_ray.core.errors import ConfigError, ConfigFault

__all__ = ["Positions", "join", "parse", "positions"]

_PLACE = re.compile(r"^<string>:(\d+) (.*)$", re.DOTALL)


def join(path: str, step: str | int) -> str:
    """The dotted path of a key or list position below ``path``."""
    return f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}" if path else step


def parse(text: str) -> tuple[Any, bool]:
    """What a JSON or JSON5 text says, and whether an object in it has one key two times.

    Raises:
        ConfigError: the text is neither (kind ``syntax``).
    """
    doubled = False

    def pairs(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal doubled
        listed = list(items)
        made = dict(listed)
        doubled = doubled or len(made) != len(listed)
        return made

    plain = text.removeprefix("\ufeff")
    for rewritten in (False, True):
        try:
            return json.loads(as_json(plain) if rewritten else plain, object_pairs_hook=pairs), doubled
        except (ValueError, RecursionError):
            doubled = False
    import json5  # slow to import, and rarely needed

    try:
        return json5.loads(plain, object_pairs_hook=pairs), doubled
    except RecursionError:
        raise ConfigError((ConfigFault("", "syntax", "is nested too deeply"),)) from None
    except ValueError as error:
        found = _PLACE.match(str(error))
        line, what = (int(found[1]), found[2]) if found else (None, str(error))
        raise ConfigError((ConfigFault("", "syntax", f"is not JSON5: {what}", line=line),)) from None


@dataclass(slots=True)
class Positions:
    """Where things stand in a text.

    Attributes:
        lines: path -> line of its key, or of its beginning in a list; counted from 1.
        doubled: (path, line) of each key that its object had already.
    """

    lines: dict[str, int] = field(default_factory=dict)
    doubled: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """An object or list that is being read."""

    path: str
    is_list: bool
    index: int = 0
    keys: set[str] = field(default_factory=set)
    key: str | None = None  # of an object: the key whose value comes next


def positions(text: str) -> Positions:
    """Where the keys of a text stand that `parse` has accepted."""
    found = Positions()
    stack: list[_Open] = []
    line = 1
    for token in TOKEN.finditer(text.removeprefix("\ufeff")):
        kind, what = token.lastgroup, token.group()
        top = stack[-1] if stack else None
        if kind in ("text", "word"):
            _value_or_key(found, top, what, line)
        elif what in ("{", "["):
            stack.append(_Open(_here(found, top, line), what == "["))
        elif what in ("}", "]") and stack:
            stack.pop()
        elif what == "," and top is not None:
            top.index, top.key = top.index + 1, None
        line += what.count("\n")
    return found


def _here(found: Positions, top: _Open | None, line: int) -> str:
    """The path of the value that begins here."""
    if top is None:
        return ""
    if not top.is_list:
        return join(top.path, top.key or "")
    path = join(top.path, top.index)
    found.lines.setdefault(path, line)
    return path


def _value_or_key(found: Positions, top: _Open | None, what: str, line: int) -> None:
    if top is None or top.is_list or top.key is not None:
        _here(found, top, line)
        return
    top.key = _spelt(what)
    path = join(top.path, top.key)
    found.lines[path] = line
    if top.key in top.keys:
        found.doubled.append((path, line))
    top.keys.add(top.key)


def _spelt(token: str) -> str:
    """The key that a token stands for."""
    if token[0] in "\"'":
        return text_of(token)
    if "\\" not in token:
        return token
    import json5

    return str(next(iter(json5.loads(f"{{{token}:0}}"))))
