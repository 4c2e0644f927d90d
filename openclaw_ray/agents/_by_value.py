"""Having cloudpickle take whole modules by value, for a while and from several threads."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["by_value"]

_lock = threading.Lock()
_inside: Counter[str] = Counter()
_of_the_host: set[str] = set()


@contextlib.contextmanager
def by_value(modules: Iterable[str]) -> Iterator[None]:
    """Inside, functions and classes of these modules are pickled by value.

    The registry is one per process: what other threads pickle meanwhile goes by value too, and loads as well.
    What the host itself has registered stays registered.
    """
    names = [name for name in modules if name in sys.modules]
    if not names:
        yield
        return
    from ray import cloudpickle as untyped

    cloudpickle: Any = untyped
    with _lock:
        for name in names:
            if not _inside[name] and name in cloudpickle.list_registry_pickle_by_value():
                _of_the_host.add(name)
            _inside[name] += 1
            cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        yield
    finally:
        with _lock:
            for name in names:
                _inside[name] -= 1
                if not _inside[name] and name not in _of_the_host:
                    cloudpickle.unregister_pickle_by_value(sys.modules[name])
                if not _inside[name]:
                    _of_the_host.discard(name)
