"""Section 2 of the cases' README: whether an output fits what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["misfit"]


def misfit(expected: Any, got: Any, unordered: Collection[str] = (), path: str = "") -> str | None:
    """The first place where ``got`` does not fit ``expected``, or `None` if it fits.

    Args:
        expected: a pattern, already expanded.
        got: the output.
        unordered: names whose lists may come in any order.
        path: where we are.
    """
    if isinstance(expected, dict):
        if any(key.startswith("$") for key in expected):
            return _tests(expected, got, unordered, path)
        return _object(expected, got, unordered, path)
    if isinstance(expected, list):
        return _list(expected, got, unordered, path)
    return None if _equal(expected, got) else _says(path, expected, got)


def _says(path: str, expected: Any, got: Any) -> str:
    return f"{path or 'output'}: expected {expected!r}, got {got!r}"


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return bool(expected == got)


def _object(expected: dict[str, Any], got: Any, unordered: Collection[str], path: str) -> str | None:
    if not isinstance(got, dict):
        return _says(path, expected, got)
    for key, pattern in expected.items():
        below = f"{path}/{key}" if path else key
        if (miss := misfit(pattern, got.get(key), unordered, below)) is not None:
            return miss
    return None


def _list(expected: list[Any], got: Any, unordered: Collection[str], path: str) -> str | None:
    if not isinstance(got, list | tuple) or len(got) != len(expected):
        return _says(path, expected, got)
    if path.rpartition("/")[2] in unordered:
        return None if _any_order(expected, list(got), unordered, path) else _says(path, expected, got)
    for index, (pattern, item) in enumerate(zip(expected, got, strict=True)):
        if (miss := misfit(pattern, item, unordered, f"{path}/{index}")) is not None:
            return miss
    return None


def _any_order(patterns: list[Any], items: list[Any], unordered: Collection[str], path: str) -> bool:
    if not patterns:
        return True
    return any(
        misfit(patterns[0], item, unordered, path) is None
        and _any_order(patterns[1:], items[:at] + items[at + 1 :], unordered, path)
        for at, item in enumerate(items)
    )


_TYPES: dict[str, Callable[[Any], bool]] = {
    "number": lambda got: isinstance(got, int | float) and not isinstance(got, bool),
    "string": lambda got: isinstance(got, str),
    "list": lambda got: isinstance(got, list | tuple),
    "object": lambda got: isinstance(got, dict),
}


def _tests(tests: dict[str, Any], got: Any, unordered: Collection[str], path: str) -> str | None:
    for test, wanted in tests.items():
        if not _holds(test, wanted, got, unordered, path):
            return _says(path, {test: wanted}, got)
    return None


def _holds(test: str, wanted: Any, got: Any, unordered: Collection[str], path: str) -> bool:
    def fits(pattern: Any, item: Any) -> bool:
        return misfit(pattern, item, unordered, path) is None

    match test:
        case "$absent":
            return (got is None) is wanted
        case "$present":
            return (got is not None) is wanted
        case "$contains":
            return isinstance(got, str) and all(part in got for part in wanted)
        case "$not_contains":
            return isinstance(got, str) and not any(part in got for part in wanted)
        case "$starts":
            return isinstance(got, str) and got.startswith(wanted)
        case "$regex":
            return isinstance(got, str) and re.search(wanted, got) is not None
        case "$len":
            return hasattr(got, "__len__") and len(got) == wanted
        case "$len_min":
            return hasattr(got, "__len__") and len(got) >= wanted
        case "$len_max":
            return hasattr(got, "__len__") and len(got) <= wanted
        case "$range":
            return _TYPES["number"](got) and wanted[0] <= got <= wanted[1]
        case "$first":
            return bool(_TYPES["list"](got) and got) and fits(wanted, got[0])
        case "$last":
            return bool(_TYPES["list"](got) and got) and fits(wanted, got[-1])
        case "$any_of":
            return any(fits(pattern, got) for pattern in wanted)
        case "$type":
            return _TYPES[wanted](got)
    raise ValueError(f"unknown test {test!r} at {path}")
