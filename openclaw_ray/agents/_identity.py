"""When two pieces of code count as the same agent (DESIGN.md 7)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from openclaw_ray.agents._origin import origin_of
from openclaw_ray.agents.info import agent_info
from openclaw_ray.agents.pickling import dumps

__all__ = ["identity"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def identity(agent: Any, data: bytes) -> str:
    """A hash of the module's source and the qualified name; of the pickle ``data`` where there is no source.

    A function made by another one counts with what it has closed over: the same source and the same name, and
    yet each of them another agent. So does one with its tools.
    """
    origin = origin_of(agent)
    digest = hashlib.sha256()
    if origin.source is None:
        digest.update(data)
    else:
        for part in _parts(agent, set()):
            digest.update(part + b"\0")
        for tool in agent_info(agent).tools:
            for part in _parts(tool, set()):
                digest.update(part + b"\0")
    return digest.hexdigest()


def _parts(thing: Any, seen: set[int]) -> Iterator[bytes]:
    """What makes ``thing`` what it is, the same in every process where that is possible."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, FunctionType | type):
        origin = origin_of(thing)
        yield f"{origin.module}:{origin.qualname}:{origin.source}".encode()
        for cell in getattr(thing, "__closure__", None) or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # never assigned
            yield from _parts(content, seen)
    elif isinstance(thing, ModuleType):
        yield thing.__name__.encode()
    elif isinstance(thing, _PLAIN):
        yield repr(thing).encode("utf-8", "surrogatepass")
    else:
        yield hashlib.sha256(dumps(thing)).digest()
