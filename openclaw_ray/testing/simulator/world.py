"""Virtual time: what happens when, in an order that the seed decides.

An entry of the agenda is a call at a moment. Entries of one moment run in the order in which they were made, so the
same seed gives the same run, event by event.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

__all__ = ["VirtualClock", "World"]

_LOOK_EVERY = 24
"""Events between two looks at whether the schedule has finished."""
_MOST_EVENTS = 100_000
"""Events after which a schedule is given up as one that never ends."""


class VirtualClock:
    """A `Clock` that stands where the agenda is."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = 0.0

    def wall(self) -> float:
        """Seconds since the epoch."""
        return 1_700_000_000.0 + self.now

    def mono(self) -> float:
        """Virtual seconds since the beginning."""
        return self.now


class World:
    """The clock, the agenda and the dice of one schedule.

    Args:
        seed: of every random choice that is made while the schedule runs.
        trace: keep a line for everything that happens.
    """

    def __init__(self, seed: int, *, trace: bool = False) -> None:
        self.random = Random(seed)
        self.clock = VirtualClock()
        self.now = 0.0
        self.events = 0
        self.log: list[str] | None = [] if trace else None
        self._agenda: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._entries = 0
        self._minted = 0

    def after(self, delay: float, call: Callable[..., object], *args: Any) -> None:
        """Call ``call(*args)`` in ``delay`` virtual seconds."""
        self._entries += 1
        heapq.heappush(self._agenda, (self.now + delay, self._entries, call, args))

    def at(self, when: float, call: Callable[..., object], *args: Any) -> None:
        """Call ``call(*args)`` at ``when``, or now if that has passed."""
        self._entries += 1
        heapq.heappush(self._agenda, (max(when, self.now), self._entries, call, args))

    def mint(self, prefix: str) -> str:
        """A fresh id."""
        self._minted += 1
        return f"{prefix}{self._minted}"

    def note(self, text: str) -> None:
        """Put a line into the trace, if one is kept."""
        if self.log is not None:
            self.log.append(f"{self.now:10.4f}  {text}")

    def run(self, finished: Callable[[], bool], until: float) -> bool:
        """Let things happen until ``finished`` says so or virtual time reaches ``until``; True if it finished."""
        agenda, pop, clock = self._agenda, heapq.heappop, self.clock
        look = 0
        while agenda and self.events < _MOST_EVENTS:
            when = agenda[0][0]
            if when > until:
                return finished()
            _, _, call, args = pop(agenda)
            if when > self.now:
                self.now = clock.now = when
            call(*args)
            self.events += 1
            look += 1
            if look >= _LOOK_EVERY:
                look = 0
                if finished():
                    return True
        return finished()
