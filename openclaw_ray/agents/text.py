"""Texts made from whatever an agent or a caller gives: bounded, valid Unicode, and never an exception."""

from __future__ import annotations

import json
import reprlib
from itertools import islice
from typing import Any

__all__ = ["bounded", "clean", "cut_utf8", "describe", "said", "short_repr", "utf8_size"]

REPR_LIMIT = 200
"""Characters of the text that stands for an input object (DESIGN.md 7)."""
VALUE_LIMIT = 2_000
"""Characters of the text that stands for a returned object."""


def clean(text: str) -> str:
    """``text`` as a plain `str` that UTF-8 can hold; lone surrogates become ``?``."""
    if type(text) is not str:
        text = str.__str__(text)
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def cut_utf8(text: str, limit: int) -> tuple[str, bool]:
    """`clean` text of at most ``limit`` bytes of UTF-8, cut between characters; and whether it was cut."""
    if len(text) > limit:  # a character has at least one byte: do not encode what is cut anyway
        data = text[: limit + 1].encode("utf-8", "replace")
    elif text.isascii():
        return clean(text), False
    else:
        data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8"), False
    return data[:limit].decode("utf-8", "ignore"), True


def utf8_size(text: str) -> int:
    """Bytes of UTF-8.

    Raises:
        UnicodeEncodeError: the text has lone surrogates.
    """
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def bounded(text: str, limit: int) -> str:
    """At most ``limit`` characters of `clean` text, with ``…`` at the end if it was cut."""
    return clean(text if len(text) <= limit else text[: limit - 1] + "…")


class _ShortRepr(reprlib.Repr):
    """Looks at the beginning of an object only: the repr of a million rows is not made to be thrown away."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxstring = self.maxother = self.maxlong = limit
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 40
        self.maxdict = 40

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        # the base class sorts all keys first
        if level <= 0 or len(x) <= self.maxdict:
            return super().repr_dict(x, level)
        return super().repr_dict(dict(islice(x.items(), self.maxdict + 1)), level)

    def repr_bytes(self, x: bytes, level: int) -> str:
        cut = x[: self.maxstring]
        return repr(cut) + ("…" if len(cut) < len(x) else "")

    repr_bytearray = repr_bytes


def short_repr(value: Any, limit: int = REPR_LIMIT) -> str:
    """A repr of at most ``limit`` characters; of an object whose repr raises, its type and why."""
    try:
        text = _ShortRepr(limit).repr(value)
    except Exception as exc:  # noqa: BLE001 - other people's __repr__
        text = f"<{type(value).__name__} object, whose repr raised {type(exc).__name__}>"
    return bounded(text, limit)


def describe(value: Any, size: int, limit: int = VALUE_LIMIT) -> str:
    """JSON of a returned object, else its repr, of at most ``limit`` characters.

    Args:
        size: bytes of its pickle; JSON of a large one would be made for nothing.
    """
    if size <= 8 * limit:
        try:
            return bounded(json.dumps(value, ensure_ascii=False), limit)
        except Exception:  # noqa: BLE001 - not JSON, for whatever reason the object has
            pass
    return short_repr(value, limit)


def said(value: object, limit: int) -> str:
    """``str(value)`` of anything, never empty; its type and why if even that raises."""
    try:
        return bounded(str(value), limit) or type(value).__name__
    except Exception as exc:  # noqa: BLE001 - other people's __str__
        return f"<{type(value).__name__}, whose str() raised {type(exc).__name__}>"
