"""How turn code waits: other threads put small calls into a wait, the turn runs them where it waits.

1. A wait belongs to one call of one turn (a join, a map, a spawn). Whatever may end it puts a call into it: a
   future's callback on the courier's thread, or the turn's cancel.
2. The waiting side is woken, runs what has gathered, looks at its own condition, and waits on if it must. So
   what the calls touch is touched by one thread only, and nothing polls.
3. `Watch` has the waits of one turn: it wakes them all on a cancel, and tells them of children's ends, with
   one callback per child however often it is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from openclaw_ray.agents.port import TurnPort

__all__ = ["AsyncWait", "Call", "Deadline", "SyncWait", "Wait", "Watch", "nothing"]

Call = Callable[[], None]


def nothing(*_: Any) -> None:
    """A call that only wakes."""


class Wait(Protocol):
    """What both kinds of wait can do."""

    def put(self, call: Call) -> None:
        """Have ``call`` run by the waiting side; from any thread, also when nobody waits any more."""

    def drain(self) -> bool:
        """Run what is there; True if there was anything. Only the waiting side does this."""


class Deadline:
    """A moment a number of seconds ahead; `None` is never.

    Raises:
        ValueError: the number is negative or none.
    """

    __slots__ = ("_at", "seconds")

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds >= 0:
            raise ValueError(f"a timeout is a number of seconds of 0 or more, not {seconds!r}")
        self.seconds = seconds
        self._at = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds left, 0 if it has passed; `None` for never."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        """True if no time is left."""
        return self._at is not None and time.monotonic() >= self._at


class SyncWait:
    """A wait in a plain thread."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Call] = queue.SimpleQueue()

    def put(self, call: Call) -> None:
        self._calls.put(call)

    def drain(self) -> bool:
        ran = False
        while True:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return ran
            call()
            ran = True

    def wait(self, timeout: float | None) -> None:
        """Run what is there, after waiting up to ``timeout`` seconds for something to come."""
        try:
            call = self._calls.get(timeout=None if timeout is None else min(timeout, threading.TIMEOUT_MAX))
        except queue.Empty:
            return
        call()
        self.drain()


class AsyncWait:
    """A wait in a coroutine of the loop in which it was made."""

    __slots__ = ("_calls", "_event", "_loop", "_woken")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._calls: deque[Call] = deque()
        self._woken = False

    def put(self, call: Call) -> None:
        self._calls.append(call)
        # the waiting side clears the flag before it empties the deque: what comes after that wakes it again
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: its turn has ended
                self._loop.call_soon_threadsafe(self._event.set)

    def drain(self) -> bool:
        self._event.clear()
        self._woken = False
        ran = False
        while self._calls:
            self._calls.popleft()()
            ran = True
        return ran

    async def wait(self, timeout: float | None) -> None:
        """Run what is there, after waiting up to ``timeout`` seconds for something to come."""
        if timeout is None:
            await self._event.wait()
        else:
            try:
                async with asyncio.timeout(timeout):
                    await self._event.wait()
            except TimeoutError:
                return
        self.drain()


class Watch:
    """The waits of one turn, and which children they are told about."""

    def __init__(self, port: TurnPort) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._waits: dict[Wait, Callable[[str], None] | None] = {}
        self._followed: set[str] = set()

    def open(self, wait: Wait, ended: Callable[[str], None] | None = None) -> None:
        """Wake ``wait`` on a cancel from now on; ``ended`` is called in it with each run id that settles."""
        with self._lock:
            self._waits[wait] = ended

    def close(self, wait: Wait) -> None:
        """Leave ``wait`` alone."""
        with self._lock:
            self._waits.pop(wait, None)

    def follow(self, run_id: str) -> None:
        """Tell the open waits when this child has settled; at once if it has."""
        with self._lock:
            if run_id in self._followed:
                return
            self._followed.add(run_id)
        self._port.completion(run_id).add_done_callback(partial(self._ended, run_id))

    def wake(self) -> None:
        """Have every open wait look again: the turn is to end."""
        with self._lock:
            waits = list(self._waits)
        for wait in waits:
            wait.put(nothing)

    def _ended(self, run_id: str, _: object) -> None:
        with self._lock:
            self._followed.discard(run_id)
            told = [(wait, ended) for wait, ended in self._waits.items() if ended is not None]
        for wait, ended in told:
            wait.put(partial(ended, run_id))
