"""Classes that travel by value, made anew for each activation.

cloudpickle gives each such class an id, and in every process remembers which class that is: so one that
comes back is the one that went out, and ``isinstance`` holds for the requester of a result. In a session
process it also means that loading an agent a second time finds the first one's classes, with whatever a
session has put on them. So those that a load has made are forgotten before the next one; their ids stay, and
results still find their way home.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from openclaw_ray.agents._cloudpickle import cloudpickle

__all__ = ["ClassMemory"]


class ClassMemory:
    """The ids of the classes that one loader has made; classes of anybody else are left alone."""

    def __init__(self) -> None:
        self._made: set[str] = set()

    @contextlib.contextmanager
    def made_anew(self) -> Iterator[None]:
        """Inside, unpickling makes the loader's classes again."""
        # a field of cloudpickle's own: without it (another version) classes are shared, and nothing is worse
        table = getattr(cloudpickle(), "_DYNAMIC_CLASS_TRACKER_BY_ID", None)
        if table is None:
            yield
            return
        for known in self._made:
            table.pop(known, None)
        before = _keys(table)
        try:
            yield
        finally:
            self._made = _keys(table) - before


def _keys(table: Any) -> set[str]:
    """The keys of a table of weak references, to which other threads add while they unpickle."""
    while True:
        try:
            return set(table.keys())
        except RuntimeError:  # it has just changed its size
            continue
