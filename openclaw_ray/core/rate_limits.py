"""A rate limit that many sessions share: a token bucket, a number of places, and a line that is fair between roots.

1. `ask` puts a request in line; `grant` gives those that may go on now, in their order.
2. The bucket fills by ``rate`` tokens in ``per`` seconds, up to ``burst``. A request takes ``cost`` tokens. One that
   costs more than ``burst`` goes on when the bucket is full, and leaves it in debt. So in any window of ``per`` seconds
   requests of cost 1 are at most ``rate + burst - 1``; with the default burst of 1 never more than ``rate``.
3. Of requests that hold a place at most ``concurrent`` are out; `give_back` frees it, or takes one out of the line.
4. The next to go on is the oldest of the root that has been given least since it last began to wait: a root that comes
   later starts where the others are, so that nobody is paid for having been away. Nothing overtakes the one that is
   next, so that a large one is not starved.
5. `back_off` lets nobody in until a time; the longest one counts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

__all__ = ["LimitRule", "RateLimit", "Wanted"]

_NEAR = 1e-9  # tokens; what is lost in adding up fractions


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One of ``ray.limits``.

    Attributes:
        name: as `turn.limit` has it.
        rate: tokens that come in ``per`` seconds; `None` is no limit on the rate.
        per: seconds.
        burst: most tokens that gather while nobody asks; at least 1.
        concurrent: requests that are out at once; `None` is no limit on them.
    """

    name: str
    rate: float | None = None
    per: float = 1.0
    burst: float = 1.0
    concurrent: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request in line: its id, the root that it counts for, and what it costs."""

    id: str
    root: str
    cost: float = 1.0


@dataclass(slots=True)
class _Line:
    """The requests of one root, oldest first, and what it has been given while it waited."""

    given: float = 0.0
    waiting: deque[Wanted] = field(default_factory=deque)


class RateLimit:
    """One limit. Times are seconds of a clock that only goes forward.

    Args:
        now: the time; the bucket begins with ``tokens``, a full one if not given.
    """

    def __init__(self, rule: LimitRule, now: float, tokens: float | None = None) -> None:
        self.rule = rule
        self._tokens = rule.burst if tokens is None else tokens
        self._at = now
        self._closed_until = now
        self._lines: dict[str, _Line] = {}
        self._out: set[str] = set()

    def change(self, rule: LimitRule, now: float) -> None:
        """Go by another rule from now on; who is out stays out, who waits keeps its place."""
        self._fill(now)
        self.rule = rule
        self._tokens = min(self._tokens, rule.burst)

    def ask(self, wanted: Wanted) -> None:
        """Get in line (1)."""
        line = self._lines.get(wanted.root)
        if line is None:
            least = min((other.given for other in self._lines.values()), default=0.0)
            line = self._lines[wanted.root] = _Line(least)
        line.waiting.append(wanted)

    def holds(self, id: str) -> None:
        """A request that had been let in before this object was made (3)."""
        self._out.add(id)

    def give_back(self, id: str) -> bool:
        """A request is over, or wants nothing any more; False if it is not known (3)."""
        if id in self._out:
            self._out.discard(id)
            return True
        for root, line in self._lines.items():
            for wanted in line.waiting:
                if wanted.id == id:
                    line.waiting.remove(wanted)
                    if not line.waiting:
                        del self._lines[root]
                    return True
        return False

    def back_off(self, seconds: float, now: float) -> None:
        """Let nobody in for so long (5)."""
        self._closed_until = max(self._closed_until, now + seconds)

    def grant(self, now: float) -> list[Wanted]:
        """Those that may go on now; they are out from here on if the limit has places (4)."""
        self._fill(now)
        let_in = []
        while (line := self._next()) is not None and self._ready_at(line.waiting[0], now) <= now:
            wanted = line.waiting.popleft()
            if self.rule.rate is not None:
                self._tokens -= wanted.cost
            if self.rule.concurrent is not None:
                self._out.add(wanted.id)
            line.given += wanted.cost
            if not line.waiting:
                del self._lines[wanted.root]
            let_in.append(wanted)
        return let_in

    def next_at(self, now: float) -> float | None:
        """When `grant` may let the next one in by time alone; `None` if nobody waits, or only for a place."""
        line = self._next()
        if line is None:
            return None
        at = self._ready_at(line.waiting[0], now)
        return None if at == float("inf") else at

    @property
    def out(self) -> frozenset[str]:
        """The requests that hold a place."""
        return frozenset(self._out)

    @property
    def waiting(self) -> int:
        """Requests in line."""
        return sum(len(line.waiting) for line in self._lines.values())

    def _next(self) -> _Line | None:
        return min(self._lines.values(), key=lambda line: line.given, default=None)

    def _ready_at(self, wanted: Wanted, now: float) -> float:
        rule = self.rule
        if rule.concurrent is not None and len(self._out) >= rule.concurrent:
            return float("inf")
        at = max(now, self._closed_until)
        if rule.rate is None:
            return at
        missing = min(wanted.cost, rule.burst) - self._tokens
        return at if missing <= _NEAR else max(at, self._at + missing * rule.per / rule.rate)

    def _fill(self, now: float) -> None:
        if now > self._at:
            if self.rule.rate is not None:
                self._tokens = min(self.rule.burst, self._tokens + (now - self._at) * self.rule.rate / self.rule.per)
            self._at = now
