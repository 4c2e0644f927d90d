"""``turn.limit``: wait until a rate limit that sessions share lets the turn in (``ray.limits``).

1. Entering waits for the registry's word; the turn keeps its slot meanwhile, as it goes on by itself.
2. Leaving gives the place back. A wait that is given up, by a timeout, a stop or the program, leaves the line.
3. A place is held until the block is left: sessions below that want the same limit wait for it. Do not wait for
   children inside; if every place is held by sessions that wait above, the call is refused with `LimitHeldAbove`.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, TypeVar

from openclaw_ray.agents.port import TurnPort
from openclaw_ray.agents.tools.tool import Within
from openclaw_ray.core.errors import LimitHeldAbove, LimitTimeout, UnknownLimit
from openclaw_ray.core.protocol.permits import Permit

__all__ = ["AsyncLimit", "SyncLimit"]

W = TypeVar("W")
_UNKNOWN = "unknown"


class _Limit(Generic[W]):
    """What both kinds do; ``waited`` waits as the turn does."""

    def __init__(
        self, port: TurnPort, waited: Callable[[Future[Any] | Within], W], name: str, cost: float, timeout: float | None
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a rate limit has a name, not {name!r}")
        for what, value in (("cost", cost), ("timeout", timeout)):
            good = value is None or (isinstance(value, int | float) and math.isfinite(value) and value >= 0)
            if not good or (what == "cost" and not value):
                raise ValueError(f"{what} of a rate limit is a number above 0, not {value!r}")
        self.name = name
        self._port = port
        self._waited = waited
        self._cost = float(cost)
        self._timeout = timeout
        self._ask = ""

    def back_off(self, seconds: float) -> None:
        """Have nobody let in by this limit for so many seconds, in any session: the service has said to slow down.

        Raises:
            ValueError: it is no number of seconds.
        """
        if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"back_off takes a number of seconds, not {seconds!r}")
        self._port.limit_back_off(self.name, float(seconds))

    def _begin(self) -> tuple[Future[Permit], Future[Any] | Within]:
        self._ask, future = self._port.limit(self.name, self._cost)
        return future, future if self._timeout is None else Within((future,), self._timeout)

    def _let_in(self, future: Future[Permit]) -> None:
        if not future.done():
            raise LimitTimeout(self.name, self._timeout or 0.0)
        permit = future.result()
        if permit.why == _UNKNOWN:
            raise UnknownLimit(self.name, permit.detail)
        if permit.why:
            raise LimitHeldAbove(self.name, int(permit.detail[0]))

    def _leave(self) -> None:
        ask, self._ask = self._ask, ""
        if ask:
            self._port.limit_done(ask)


class SyncLimit(_Limit[Any]):
    """``with turn.limit(…)`` of a plain function."""

    def __enter__(self) -> SyncLimit:
        future, waited = self._begin()
        try:
            self._waited(waited)
            self._let_in(future)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()


class AsyncLimit(_Limit[Awaitable[Any]]):
    """``async with turn.limit(…)`` of a coroutine."""

    async def __aenter__(self) -> AsyncLimit:
        future, waited = self._begin()
        try:
            await self._waited(waited)
            self._let_in(future)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._leave()
