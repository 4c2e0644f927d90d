"""Waiting in a loop for what threads bring: one callback per future however often it is waited for.

1. `Awaiting.outcome` waits for a `concurrent.futures.Future`. Giving up (a cancelled task, `asyncio.timeout`) leaves
   the future to others and takes the waiter off it; nothing grows if that happens for ever.
2. What has no future goes to a few threads of one client (`Awaiting.in_thread`); a wait that is given up before its
   turn came is taken back.
3. Opening and closing have a thread each, which ends with them (`in_own_thread`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Awaiting", "Bell", "in_own_thread"]

T = TypeVar("T")

_THREADS = 4


class Bell:
    """Wakes one waiting coroutine, from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake it, now or when it next waits."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, seconds: float | None) -> None:
        """Wait for a ring, up to so many seconds; `None` is for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()


class Awaiting:
    """The waits of one client's coroutines, in whatever loops they run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bells: weakref.WeakKeyDictionary[Future[Any], set[Bell]] = weakref.WeakKeyDictionary()
        self._threads = ThreadPoolExecutor(_THREADS, "openclaw-async")

    async def outcome(self, future: Future[T], timeout: float | None = None) -> T:
        """What the future gives (1).

        Raises:
            TimeoutError: not within so many seconds; the future goes on.
        """
        if not future.done():
            bell = Bell()
            self._hang(future, bell)
            try:
                await bell.wait(timeout)
            finally:
                with self._lock:
                    self._bells.get(future, set()).discard(bell)
        return future.result(0)

    async def in_thread(self, call: Callable[..., T], *args: Any) -> T:
        """What a call that blocks gives (2)."""
        future = self._threads.submit(call, *args)
        try:
            return await self.outcome(future)
        except asyncio.CancelledError:
            future.cancel()
            raise

    def close(self) -> None:
        """End the threads, each after the call that it is in."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _hang(self, future: Future[Any], bell: Bell) -> None:
        with self._lock:
            bells = self._bells.get(future)
            first = bells is None
            if bells is None:
                bells = self._bells[future] = set()
            bells.add(bell)
        if first:
            future.add_done_callback(self._done)
        elif future.done():  # its callback may have come before this bell was there
            bell.ring()

    def _done(self, future: Future[Any]) -> None:
        with self._lock:
            bells = list(self._bells.get(future, ()))
        for bell in bells:
            bell.ring()


def in_own_thread(call: Callable[[], T], name: str) -> Future[T]:
    """Have a thread of its own do it; a daemon, so that a program may end meanwhile."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it belongs to who waits
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
