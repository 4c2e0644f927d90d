"""Which part of an agent it is that cannot be pickled: cloudpickle names a type, people look for a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from openclaw_ray.agents.info import MARK
from openclaw_ray.agents.text import said

__all__ = ["why_not_picklable"]

_DEEP = 4


def why_not_picklable(agent: Any, error: Exception, dumps: Callable[[Any], bytes]) -> str:
    """``global LOCK in app.worker: TypeError: cannot pickle '_thread.lock' object``, as near as can be told.

    Args:
        error: what pickling the whole raised.
        dumps: tries a part.
    """
    where = _find(agent, dumps, set(), _DEEP)
    why = f"{type(error).__name__}: {said(error, 500)}"
    return why if where is None else f"{where}: {why}"


def _find(thing: Any, dumps: Callable[[Any], bytes], seen: set[int], deep: int) -> str | None:
    if deep == 0 or id(thing) in seen:
        return None
    seen.add(id(thing))
    for name, part in _parts(thing):
        try:
            dumps(part)
        except Exception:  # noqa: BLE001 - whatever it is: this is the part
            return _find(part, dumps, seen, deep - 1) or f"{name} in {thing.__module__}.{thing.__qualname__}"
    return None


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, type):
        for name, member in vars(thing).items():
            plain = getattr(member, "__func__", member)
            if inspect.isfunction(plain):
                yield from _parts(plain)
            elif not name.startswith("__"):
                yield f"attribute {name}", member
    elif isinstance(thing, FunctionType):
        for name in _global_names(thing.__code__):
            if name in thing.__globals__:
                yield f"global {name}", thing.__globals__[name]
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=False):
            try:
                yield f"closed-over {name}", cell.cell_contents
            except ValueError:
                continue  # never assigned
        for tool in getattr(getattr(thing, MARK, None), "tools", ()):
            yield f"tool {getattr(tool, '__name__', tool)}", tool
        for value in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()):
            yield "a default argument", value


def _global_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names
