"""A map under a client's root, as an async iterator: the steps of `root_map`, waited for in a loop.

1. The steps run in the loop; they never block, but items of a plain iterable are pulled there, too: one that blocks
   belongs into an async iterable, which is pulled by a task.
2. Leaving early stops what is un-ended: a `break`, an exception, a cancelled task, `aclose`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Iterable
from typing import Any

from openclaw_ray.core.mapping import NotYet
from openclaw_ray.core.results import Result
from openclaw_ray.runtime.awaiting import Bell
from openclaw_ray.runtime.root_map import RootMap

__all__ = ["AsyncMap", "feed_of"]

_AHEAD = 16

Steps = Generator[Result[Any] | None, None, None]
Begin = Callable[[], Awaitable[tuple[RootMap, Steps]]]


class AsyncMap:
    """The results of one map.

    Args:
        begin: makes the map; called when the first result is asked for.
        feed: where its items come from, if they are an async iterable.
    """

    def __init__(self, begin: Begin, feed: AsyncFeed | None = None) -> None:
        self._begin = begin
        self._feed = feed
        self._steps: Steps | None = None
        self._job: RootMap | None = None
        self._bell: Bell | None = None
        self._over = False

    def __aiter__(self) -> AsyncMap:
        return self

    async def __anext__(self) -> Result[Any]:
        if self._over:
            raise StopAsyncIteration
        try:
            while (result := await self._step()) is None:
                await self._wait()
        except _Over:
            self._end()
            raise StopAsyncIteration from None
        except BaseException:
            self._end()
            raise
        return result

    async def aclose(self) -> None:
        """Leave (2); harmless twice, and after the end."""
        self._end()

    async def _step(self) -> Result[Any] | None:
        if self._steps is None:
            self._bell = Bell()
            self._job, self._steps = await self._begin()
            self._job.ring = self._bell.ring
        try:
            return next(self._steps)
        except StopIteration:
            raise _Over from None

    async def _wait(self) -> None:
        assert self._job is not None
        assert self._bell is not None
        await self._bell.wait(self._job.patience)
        self._job.take()

    def _end(self) -> None:
        self._over = True
        if self._steps is not None:
            self._steps.close()
        if self._feed is not None:
            self._feed.close()


class _Over(Exception):
    """The steps have ended (`StopIteration` does not leave a coroutine)."""


class AsyncFeed:
    """An async iterable as the items of a map: it raises `NotYet` when it has nothing, and says when it has."""

    def __init__(self, source: AsyncIterable[Any]) -> None:
        self._source = source
        self._items: deque[Any] = deque()
        self._room = asyncio.Semaphore(_AHEAD)
        self._over = False
        self._error: BaseException | None = None
        self._call: Callable[[], None] = _nothing
        self._task: asyncio.Task[None] | None = None

    def wake(self, call: Callable[[], None]) -> None:
        """Begin to pull; ``call`` is called for each item and at the end."""
        self._call = call
        self._task = asyncio.get_running_loop().create_task(self._pull(), name="openclaw-feed")

    def __iter__(self) -> AsyncFeed:
        return self

    def __next__(self) -> Any:
        if self._items:
            self._room.release()
            return self._items.popleft()
        if not self._over:
            raise NotYet
        if self._error is not None:
            raise self._error
        raise StopIteration

    def close(self) -> None:
        """Pull no more."""
        if self._task is not None:
            self._task.cancel()

    async def _pull(self) -> None:
        try:
            async for item in self._source:
                await self._room.acquire()
                self._items.append(item)
                self._call()
        except Exception as error:  # noqa: BLE001 - it belongs to who iterates over the map
            self._error = error
        finally:
            self._over = True
            self._call()


def feed_of(items: Iterable[Any] | AsyncIterable[Any]) -> tuple[Iterable[Any], AsyncFeed | None]:
    """Items as a map takes them, and the feed to close if there is one."""
    if isinstance(items, AsyncIterable):
        feed = AsyncFeed(items)
        return feed, feed
    return items, None


def _nothing() -> None:
    return
