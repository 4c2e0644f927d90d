"""What steps between which a turn waits may yield beside a future: a wait with an end, a coroutine."""

from __future__ import annotations

from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

__all__ = ["Coro", "Within"]


@dataclass(frozen=True, slots=True)
class Within:
    """A wait for several futures that lasts at most so many ``seconds``; who yields it looks at them by itself.

    Attributes:
        first: one of them will do.
        frees_slot: the turn's slot is given back meanwhile.
    """

    futures: tuple[Future[Any], ...]
    seconds: float
    first: bool = False
    frees_slot: bool = False

    @property
    def over(self) -> bool:
        """What was waited for has come."""
        done = [future.done() for future in self.futures]
        return any(done) if self.first and done else all(done)


@dataclass(frozen=True, slots=True)
class Coro:
    """A coroutine that an async turn awaits in its own task; only such a turn's call may yield one."""

    work: Coroutine[Any, Any, None]
