"""The real keys of OpenClaw: all of them, so that what we do not implement can be told from what is misspelt.

``known_keys.json.gz`` holds the key paths of the schema that OpenClaw 2026.9.6 prints, and those that it has
retired, as two trees of nested objects; it is read when a file has the first key that the model has not.
``tests/config/known_keys.py`` makes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

__all__ = ["Node", "node_at", "retired_at", "step_into", "successor", "within"]

Node = dict[str, Any]
"""Names below a place; ``*`` is any name, ``[]`` any list element, ``!`` marks a place that takes further names."""
_ANY: Final = "*"
_ELEMENT: Final = "[]"
_MARK: Final = "!"


@cache
def _data() -> dict[str, Any]:
    import gzip  # only a file with keys of others needs it

    file = resources.files("openclaw_ray.config") / "known_keys.json.gz"
    data: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return data


def _spelt(steps: Sequence[str | int]) -> list[str]:
    """The steps as the trees have them; the older roster is looked up as the newer one."""
    named = [_ELEMENT if isinstance(step, int) else str(step) for step in steps]
    if named[:3] == ["agents", "list", _ELEMENT]:
        named[:3] = ["agents", "entries", _ANY]
    return named


def node_at(steps: Sequence[str | int]) -> Node | None:
    """What is known below a place; `None` if there is no such place."""
    node: Node = _data()["keys"]
    for step in _spelt(steps):
        below = step_into(node, step)
        if below is None:
            return None
        node = below
    return node


def step_into(node: Node, step: str) -> Node | None:
    """One step down. Places of which nothing more is known, and open ones, take everything."""
    if step != _MARK and step in node:
        return _as_node(node[step])
    if step != _ELEMENT and _ANY in node:
        return _as_node(node[_ANY])
    return {} if not node or _MARK in node else None


def _as_node(value: Any) -> Node:
    return value if isinstance(value, dict) else {}


def within(node: Node) -> list[str]:
    """The names that are known at a place."""
    return [name for name in node if name not in (_ANY, _ELEMENT, _MARK)]


def retired_at(steps: Sequence[str | int]) -> Node | None:
    """What is known of a place in older files; `None` if there was no such place either."""
    places: list[Node] = [_data()["retired"]]
    for step in _spelt(steps):
        places = [_as_node(place[name]) for place in places for name in _ways(place, step)]
    return next((place for place in places if _MARK in place), places[0] if places else None)


def successor(node: Node) -> str | None:
    """What took the place of a retired key, ``""`` if nothing did; `None` if only keys below it are retired."""
    found = node.get(_MARK)
    return None if found is None else str(found)


def _ways(place: Node, step: str) -> Iterator[str]:
    if step in place and step != _MARK:
        yield step
    if step != _ELEMENT and step != _ANY and _ANY in place:
        yield _ANY
