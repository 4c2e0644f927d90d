"""Transcript rows as lines of JSON, and what makes two rows the same one.

A line is ``{"activation": 1, "seq": 0, "role": "user", "text": "…", "at": 1750000000.5}``, with ``key`` and
``meta`` where there are any; it ends with a line feed and holds no other. The session is the file's name.
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

from openclaw_ray.core.protocol.messages import Row

__all__ = ["WrittenRows", "line_of", "row_of"]


def line_of(row: Row) -> bytes:
    """The row as one line. What has no JSON form in ``meta`` is written as its text."""
    fields: dict[str, Any] = {
        "activation": row.activation,
        "seq": row.seq,
        "role": row.role,
        "text": row.text,
        "at": row.at,
    }
    if row.key is not None:
        fields["key"] = row.key
    if row.meta is not None:
        fields["meta"] = row.meta
    try:
        return _readable.encode(fields).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, as undecodable file names have them
        return _escaped.encode(fields).encode() + b"\n"


_readable = json.JSONEncoder(ensure_ascii=False, default=str)
_escaped = json.JSONEncoder(default=str)


def row_of(session_id: str, line: bytes) -> Row | None:
    """The row of a line, or `None` if the line is damaged."""
    try:
        fields = json.loads(line)
        return Row(
            session_id,
            fields["activation"],
            fields["seq"],
            fields["role"],
            fields["text"],
            fields["at"],
            fields.get("key"),
            fields.get("meta"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class WrittenRows:
    """Which rows of one transcript are written, as small as its rules allow (PROTOCOL.md 7.4).

    Rows are told apart by their key; without one by their seq in their activation, of which only the highest
    counts, as rows of a lower one are refused; without either by what they say and when. A row that has only
    a key was written by the registry, and says nothing of activations.
    """

    __slots__ = ("_keys", "_later", "_next", "highest")

    def __init__(self) -> None:
        self.highest = 0
        """The highest activation that wrote a row."""
        self._next = 0  # rows of the highest activation below this seq are all written
        self._later: set[int] = set()  # and these beyond a gap
        self._keys: set[str] = set()

    def __len__(self) -> int:
        """How many things are remembered."""
        return len(self._keys) + len(self._later)

    def add(self, row: Row) -> bool:
        """Note the row as written; False if it was already."""
        if row.activation > self.highest and (row.key is None or row.seq >= 0):
            self.highest, self._next = row.activation, 0
            self._later.clear()
        if row.key is not None or row.seq < 0:
            key = _name(row)
            if key in self._keys:
                return False
            self._keys.add(key)
            return True
        if row.seq < self._next or row.seq in self._later:
            return False
        self._later.add(row.seq)
        while self._next in self._later:
            self._later.remove(self._next)
            self._next += 1
        return True


def _name(row: Row) -> str:
    return row.key if row.key is not None else f"\0{row.activation}:{row.at!r}:{crc32(line_of(row))}"
