"""Which cloudpickle takes agents, inputs and values: Ray's; in tests without a cluster, one that stands in for it.

Pickles that travel name the module that made them, so a real runtime always uses Ray's. A double of
`openclaw_ray.testing` has the same code without Ray, see `standing_in`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

__all__ = ["cloudpickle", "standing_in"]

_in_its_place: ContextVar[Any] = ContextVar("openclaw_cloudpickle", default=None)


def cloudpickle() -> Any:
    """The module to pickle with, or what stands in for it here.

    Raises:
        ImportError: Ray is not installed.
    """
    found = _in_its_place.get()
    if found is not None:
        return found
    from ray.cloudpickle import cloudpickle as rays

    return rays


@contextlib.contextmanager
def standing_in(double: Any) -> Iterator[None]:
    """Inside, in this thread and the tasks that it starts, ``double`` is used; `None` is Ray's own again."""
    token = _in_its_place.set(double)
    try:
        yield
    finally:
        _in_its_place.reset(token)
