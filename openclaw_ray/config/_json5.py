"""JSON5 made fast: a text is rewritten token by token as JSON, which the standard parser then reads.

The json5 package needs about a second for 100 KB; a megabyte must load in a moment (DESIGN.md 11). It stays the
judge: whatever this rewriting, or the standard parser after it, does not take goes to json5, which accepts it or
says what is wrong with it and where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["TOKEN", "Puzzled", "as_json", "text_of"]

TOKEN: Final = re.compile(
    r"""
      (?P<space> \s+ | //[^\n\r\u2028\u2029]* | /\*.*?\*/ )
    | (?P<text> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<mark> [{}\[\],:] )
    | (?P<word> [^\s{}\[\],:"']+? (?= $ | [\s{}\[\],:"'] | // | /\* ) | . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""One token of a JSON5 text; kinds ``space`` (comments too), ``text``, ``mark`` and ``word``."""

_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]+)")
_DECIMAL = re.compile(r"([+-]?)((?:0|[1-9]\d*)?)(?:\.(\d*))?([eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true", "false", "null", "Infinity", "-Infinity", "NaN"}  # the standard parser knows the last three, too


class Puzzled(ValueError):
    """A token that this module leaves to json5."""


def as_json(text: str) -> str:
    """The same in JSON, as long as it is JSON5.

    Raises:
        Puzzled: it may be JSON5 all the same, or not.
    """
    out: list[str] = []
    tokens = [(token.lastgroup or "", token.group()) for token in TOKEN.finditer(text)]
    marks = [pair for pair in tokens if pair[0] != "space"]
    for at, (kind, what) in enumerate(marks):
        after = marks[at + 1][1] if at + 1 < len(marks) else ""
        if kind == "mark":
            if what == "," and after in ("}", "]") and marks[at - 1][1] not in ("{", "[", ","):
                continue
            out.append(what)
        elif kind == "text":
            out.append(_quoted(what))
        elif after == ":":
            out.append(_quoted_name(what))
        else:
            out.append(_number(what))
    return "".join(_spaced(out))


def _spaced(parts: list[str]) -> Iterator[str]:
    """Two values beside each other must not melt into one."""
    for part in parts:
        yield part
        yield " "


def text_of(token: str) -> str:
    """What a quoted token stands for.

    Raises:
        ValueError: it is not one.
    """
    if "\\" not in token:
        if "\n" in token or "\r" in token:
            raise Puzzled("a line break in a text")
        return token[1:-1]
    if token[0] == '"':
        try:
            return str(json.loads(token))
        except ValueError:
            pass
    import json5  # slow to import, and rarely needed

    return str(json5.loads(token))


def _quoted(token: str) -> str:
    if token[0] == '"' and "\\" not in token and token.isprintable():
        return token
    return json.dumps(text_of(token))


def _quoted_name(word: str) -> str:
    if not _NAME.fullmatch(word):
        raise Puzzled(word)
    return json.dumps(word)


def _number(word: str) -> str:
    if word in _WORDS:
        return word
    if word in ("+Infinity", "+NaN", "-NaN"):
        return word.lstrip("+-")
    if found := _HEX.fullmatch(word):
        return ("-" if found[1] == "-" else "") + str(int(found[2], 16))
    found = _DECIMAL.fullmatch(word)
    if found is None or not (found[2] or found[3]):
        raise Puzzled(word)
    sign = "-" if found[1] == "-" else ""
    point = "" if found[3] is None else f".{found[3] or '0'}"
    return f"{sign}{found[2] or '0'}{point}{found[4] or ''}"
