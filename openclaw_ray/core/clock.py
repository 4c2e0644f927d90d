"""Time as an argument: the real clock, and one for tests that stands still until it is told to move.

Rules never read the time by themselves. ``wall`` is for what people and the journal see; ``mono`` is for
durations and deadlines, as it never jumps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["Clock", "FakeClock", "SystemClock"]


class Clock(Protocol):
    """What the rules need to know of time."""

    def wall(self) -> float:
        """Seconds since the epoch; may jump when the machine's clock is set."""
        ...

    def mono(self) -> float:
        """Seconds since some fixed moment of this process; never goes back."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    wall = staticmethod(time.time)
    mono = staticmethod(time.monotonic)


class FakeClock:
    """A clock that only moves when told to; wall and monotonic time move together.

    Args:
        start: wall-clock seconds since the epoch at which it stands first; its monotonic time begins at 0.
    """

    __slots__ = ("_elapsed", "_start", "_watchers")

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._watchers: tuple[Callable[[], None], ...] = ()

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self._start + self._elapsed

    def mono(self) -> float:
        """Seconds that this clock was advanced by so far."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Move on.

        Raises:
            ValueError: ``seconds`` is negative or not a number; time does not go back.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock cannot be advanced by {seconds} s")
        self._elapsed += seconds
        for moved in self._watchers:
            moved()

    def watch(self, moved: Callable[[], None]) -> Callable[[], None]:
        """Have ``moved`` called within each `advance`, after the time has changed; gives what ends that."""
        self._watchers = (*self._watchers, moved)

        def leave() -> None:
            self._watchers = tuple(each for each in self._watchers if each is not moved)

        return leave
