"""Having cloudpickle take whole modules by value, for a while and from several threads."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator

from openclaw_ray.agents._cloudpickle import cloudpickle

__all__ = ["by_value"]

_lock = threading.Lock()
_inside: Counter[tuple[str, str]] = Counter()  # by cloudpickle (a double may stand in) and module
_of_the_host: set[tuple[str, str]] = set()


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
    pickles = cloudpickle()
    places = [(pickles.__name__, name) for name in names]
    with _lock:
        for place in places:
            if not _inside[place] and place[1] in pickles.list_registry_pickle_by_value():
                _of_the_host.add(place)
            _inside[place] += 1
            pickles.register_pickle_by_value(sys.modules[place[1]])
    try:
        yield
    finally:
        with _lock:
            for place in places:
                _inside[place] -= 1
                if not _inside[place] and place not in _of_the_host:
                    pickles.unregister_pickle_by_value(sys.modules[place[1]])
                if not _inside[place]:
                    _of_the_host.discard(place)
