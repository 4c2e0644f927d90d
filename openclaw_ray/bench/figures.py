"""Figures: one measured thing each, with its spread, its unit, and which way is better. Pure.

A figure is a median with a range. The range is the least and the most of rounds, or, of many samples, the range in
which their median lies with 95 % confidence. Two figures whose ranges meet cannot be told apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Better", "Figure", "fairness", "in_turn", "milliseconds", "of_rounds", "percentiles", "rates", "ratio"]


class Better(StrEnum):
    """Which way a figure is better."""

    MORE = "more"
    """Rates, shares of what Ray itself does."""
    LESS = "less"
    """Times, memory, costs."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing.

    Attributes:
        median: of its rounds or samples, in ``unit``.
        low, high: the range, see the module's text.
        unit: ``1/s``, ``ms``, ``s``, ``MB``, ``bytes``, ``x`` (a ratio), ``%``, or a word.
        better: which way.
        count: rounds or samples.
    """

    median: float
    low: float
    high: float
    unit: str
    better: Better
    count: int = 1

    @property
    def spread(self) -> float:
        """Width of the range as a share of the median; 0 where there is no median to speak of."""
        return abs(self.high - self.low) / abs(self.median) if self.median else 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON form; `from_json` reads it."""
        return {
            "median": rounded(self.median),
            "low": rounded(self.low),
            "high": rounded(self.high),
            "unit": self.unit,
            "better": self.better.value,
            "count": self.count,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Figure:
        """Out of its JSON form.

        Raises:
            KeyError, ValueError, TypeError: it is none.
        """
        median, low, high = (float(data[name]) for name in ("median", "low", "high"))
        return cls(median, low, high, str(data["unit"]), Better(data["better"]), int(data.get("count", 1)))


def of_rounds(values: Sequence[float], unit: str, better: Better | str) -> Figure:
    """Of a few rounds: median, least and most.

    Raises:
        ValueError: there is no round.
    """
    if not values:
        raise ValueError("a figure needs at least one round")
    return Figure(statistics.median(values), min(values), max(values), unit, Better(better), len(values))


def rates(count: int, seconds: Sequence[float]) -> Figure:
    """How many a second, of rounds of ``count`` that lasted so many seconds."""
    return of_rounds([count / lasted for lasted in seconds], "1/s", Better.MORE)


def ratio(over: Sequence[float], under: Sequence[float], better: Better | str) -> Figure:
    """``over / under``, round by round, of two contenders that were measured in turn.

    Raises:
        ValueError: not as many rounds of one as of the other.
    """
    if len(over) != len(under):
        raise ValueError(f"{len(over)} rounds of one contender, {len(under)} of the other")
    return of_rounds([a / b for a, b in zip(over, under, strict=True)], "x", better)


def milliseconds(seconds: Sequence[float]) -> Figure:
    """Of many samples, in milliseconds: their median and its 95 % range, by order statistics."""
    if not seconds:
        raise ValueError("a figure needs at least one sample")
    ordered = sorted(value * 1000 for value in seconds)
    count = len(ordered)
    reach = 0.98 * math.sqrt(count)
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return Figure(statistics.median(ordered), ordered[low], ordered[high], "ms", Better.LESS, count)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p90, p99 and the most, in milliseconds, by nearest rank."""
    if not seconds:
        raise ValueError("percentiles need at least one sample")
    ordered = sorted(seconds)
    ranks = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "max_ms": 1.0}
    return {name: rounded(ordered[math.ceil(share * len(ordered)) - 1] * 1000) for name, share in ranks.items()}


def fairness(starts: Mapping[str, Sequence[float]]) -> float:
    """Jain's index over how often each root's sessions started while all roots still had some to start.

    1 is perfectly fair, ``1 / roots`` is one root having had everything.

    Raises:
        ValueError: a root without a start.
    """
    if not starts or not all(starts.values()):
        raise ValueError("fairness needs at least one start of each root")
    until = min(max(times) for times in starts.values())
    counts = [sum(at <= until for at in times) for times in starts.values()]
    return sum(counts) ** 2 / (len(counts) * sum(count**2 for count in counts))


def in_turn(names: Iterable[str], rounds: int) -> list[tuple[int, str]]:
    """The order in which contenders are measured: a round of each to warm up (number -1), then A B C, A B C, …"""
    named = list(names)
    return [(number, name) for number in range(-1, rounds) for name in named]


def rounded(value: float) -> float:
    """Four digits that mean something; whole numbers above that."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, max(0, 3 - math.floor(math.log10(abs(value)))))
