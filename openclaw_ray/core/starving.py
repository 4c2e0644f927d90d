"""Who is ended when a node is short of memory: the one session that is to blame, or nobody (SCENARIOS.md 82).

Ray's own memory monitor ends workers by age, newest first, and those that it may start again before all others: of
this runtime that is hub, registry and pool, and with the pool every session, before it comes to the one that took the
memory. So the runtime looks itself, and acts a little sooner:

1. The limit is Ray's threshold less a margin, within which this rule has the time to act.
2. Past it, the largest session process is ended, if it has half the margin or more and the node is within the limit
   without it. Else no session is to blame, and ending some would help nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Memory", "choose", "limit_of"]

_MARGIN = 1 << 30
_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one node, in bytes."""

    used: int
    total: int


def limit_of(total: int, threshold: float) -> int:
    """Bytes of use from which the rule applies (1): Ray's threshold less a twentieth of all, at most 1 GB."""
    return int(total * threshold) - _margin(total)


def _margin(total: int) -> int:
    return min(total // 20, _MARGIN)


def choose(memory: Memory, limit: int, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """Whom to end, and why in words; `None` for nobody (2).

    Args:
        sizes: bytes of each session process that runs a turn, what its tools use included.
    """
    if memory.used <= limit or not sizes:
        return None
    largest = max(sorted(sizes), key=lambda actor: sizes[actor])
    if sizes[largest] < _margin(memory.total) // 2 or memory.used - sizes[largest] > limit:
        return None
    used, total, size = (figure / _GB for figure in (memory.used, memory.total, sizes[largest]))
    figures = f"{used:.2f} GB of {total:.2f} GB in use, {size:.2f} GB of it here"
    return largest, f"it was ended, as its node was low on memory and it had the most of it ({figures})"
