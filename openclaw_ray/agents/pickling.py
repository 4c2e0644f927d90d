"""Pickles of what agents return: one per value, counted before anything is copied."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from openclaw_ray.agents._by_value import by_value
from openclaw_ray.agents._cloudpickle import cloudpickle
from openclaw_ray.agents.text import said
from openclaw_ray.core.protocol.messages import VALUE_LIMIT

__all__ = ["Pickled", "Unpicklable", "dumps", "pickle_value"]

_PLAIN = frozenset({bool, int, float, complex, bytes, str})


class Unpicklable(Exception):
    """The value cannot travel; the text names its type and why."""


@dataclass(frozen=True, slots=True)
class Pickled:
    """A value that can travel.

    Attributes:
        data: the whole pickle if it has at most `VALUE_LIMIT` bytes, else `None`.
        size: bytes of the whole pickle; a lower bound for large texts.
    """

    data: bytes | None
    size: int


def dumps(value: Any, buffers: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    """Pickle with Ray's cloudpickle, which takes classes and functions that other processes cannot import.

    Without Ray, the standard one. Protocol 5; ``buffers`` as in `pickle.dumps`.
    """
    try:
        made = cloudpickle().dumps
    except ImportError:
        return pickle.dumps(value, protocol=5, buffer_callback=buffers)
    return bytes(made(value, protocol=5, buffer_callback=buffers))


def pickle_value(value: Any, limit: int = VALUE_LIMIT, modules: Iterable[str] = ()) -> Pickled:
    """Pickle a returned value, or an input, keeping the bytes only if they are few.

    Large arrays are counted where they lie (buffers out of band), so that a value of a gigabyte is not copied
    to learn that it is large.

    Args:
        limit: bytes up to which they are kept.
        modules: modules whose classes go by value (``Bundle.modules``, for inputs that a driver sends).

    Raises:
        Unpicklable: with the type and the reason.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        if type(value) in _PLAIN:  # there is no class of anybody's in it: the fast way gives the same pickle
            if isinstance(value, bytes | str) and len(value) > limit:
                return Pickled(None, len(value))
            data = pickle.dumps(value, protocol=5)
            return Pickled(data if len(data) <= limit else None, len(data))
        with by_value(modules):
            data = dumps(value, buffers.append)
            size = len(data) + sum(buffer.raw().nbytes for buffer in buffers)
            if size > limit:
                return Pickled(None, size)
            if buffers:
                data = dumps(value)
    except Exception as exc:
        kind = type(value)
        raise Unpicklable(
            f"a value of type {kind.__module__}.{kind.__qualname__} cannot be pickled: {said(exc, 1_000)}"
        ) from exc
    return Pickled(data, len(data))
