"""Items that come when they come: a slow standard input must not hold up the results of what was read before.

A thread of its own pulls from the source, a few items ahead; the map takes what is there and is woken when more comes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from openclaw_ray.core.mapping import NotYet

__all__ = ["Feed"]

T = TypeVar("T")

_AHEAD = 64


class Feed(Generic[T]):
    """An iterator that, once `wake` was called, never blocks: it raises `NotYet` when it has nothing.

    Args:
        source: pulled in a thread; what it raises is raised by `__next__`, after the items before it.
        stopping: from the moment when this is true there are no more items, pulled ones included.

    Attributes:
        cut: it was stopped before its source was at its end, as far as that is known.
    """

    def __init__(self, source: Iterator[T], stopping: Callable[[], bool]) -> None:
        self.cut = False
        self._stopping = stopping
        self._source = source
        self._items: deque[T] = deque()
        self._room = threading.Semaphore(_AHEAD)
        self._over = False
        self._error: BaseException | None = None
        self._call: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._pull, name="openclaw-feed", daemon=True)

    def wake(self, call: Callable[[], None]) -> None:
        """Begin to pull; ``call`` is called, from the thread, for each item and at the end."""
        self._call = call
        self._thread.start()

    def __iter__(self) -> Feed[T]:
        return self

    def __next__(self) -> T:
        if self._call is None:
            try:
                return next(self._source)
            except StopIteration:
                self.cut |= self._stopping()
                raise
        if self._stopping():
            self.cut |= bool(self._items) or not self._over
            raise StopIteration
        over = self._over  # looked at first: what came before the end is in the queue by then
        if self._items:
            self._room.release()
            return self._items.popleft()
        if not over:
            raise NotYet
        if self._error is not None:
            raise self._error
        raise StopIteration

    def _pull(self) -> None:
        assert self._call is not None
        try:
            for item in self._source:
                self._room.acquire()
                self._items.append(item)
                self._call()
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that asks for items
            self._error = error
        self.cut |= self._stopping()
        self._over = True
        self._call()
