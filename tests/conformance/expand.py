"""Section 2 of the cases' README: what the written forms of inputs and expected values stand for."""

from __future__ import annotations

import base64
from typing import Any

__all__ = ["expand"]


def expand(value: Any) -> Any:
    """``value`` with every ``$repeat``, ``$concat``, ``$base64`` and ``$each`` in it carried out."""
    if isinstance(value, list):
        return [made for item in value for made in _items(item)]
    if not isinstance(value, dict):
        return value
    match value:
        case {"$repeat": [text, times], **rest} if not rest:
            return expand(text) * times
        case {"$concat": parts, **rest} if not rest:
            return _joined([expand(part) for part in parts])
        case {"$base64": text, **rest} if not rest:
            return base64.b64encode(expand(text).encode()).decode()
    return {key: expand(item) for key, item in value.items()}


def _items(item: Any) -> list[Any]:
    match item:
        case {"$each": [lo, hi], "item": pattern}:
            return [expand(_numbered(pattern, number)) for number in range(lo, hi + 1)]
    return [expand(item)]


def _joined(parts: list[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def _numbered(value: Any, number: int) -> Any:
    """``value`` with ``{i}`` in all its strings, those in keys too, replaced by the number."""
    if isinstance(value, str):
        return value.replace("{i}", str(number))
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {_numbered(key, number): _numbered(item, number) for key, item in value.items()}
    return value
