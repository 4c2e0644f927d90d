"""``turn.audience``: whose memory a session may see, proved at each use (SPEC.md I3).

A provider of memory is given what `use` returns, asks before each operation, and never walks lineages itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from openclaw_ray.agents.port import TurnPort
from openclaw_ray.core.audience import Audience, Denial, Lease
from openclaw_ray.core.errors import AudienceDenied

__all__ = ["AsyncAudience", "SyncAudience"]


class _Leased:
    """What both kinds do."""

    def __init__(self, port: TurnPort) -> None:
        self._port = port
        self._lease: Lease | None = None

    def _asked(self) -> Future[list[Any]]:
        return self._port.look("audience")

    def _proved(self, found: Audience | Denial) -> Audience:
        if self._lease is None and isinstance(found, Audience):
            self._lease = Lease(found)
        held = found if self._lease is None else self._lease.renewed(found)
        if isinstance(held, Denial):
            raise AudienceDenied(held.reason.value, held.at, held.text)
        return held


class SyncAudience(_Leased):
    """Of a plain function's turn."""

    def __init__(self, port: TurnPort, result_of: Callable[[Future[list[Any]]], list[Any]]) -> None:
        super().__init__(port)
        self._result_of = result_of

    def use(self) -> Audience:
        """The audience, for one operation.

        Raises:
            AudienceDenied: there is none, or not any more; once denied, denied for good.
        """
        [found] = self._result_of(self._asked())
        return self._proved(found)


class AsyncAudience(_Leased):
    """Of a coroutine's turn."""

    def __init__(self, port: TurnPort, result_of: Callable[[Future[list[Any]]], Awaitable[list[Any]]]) -> None:
        super().__init__(port)
        self._result_of = result_of

    async def use(self) -> Audience:
        """The audience, for one operation; see `SyncAudience.use`."""
        [found] = await self._result_of(self._asked())
        return self._proved(found)
