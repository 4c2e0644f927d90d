"""Who waits for whom: a wait that would close a circle is refused at once, with the circle (DESIGN.md 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["wait_cycle"]


def wait_cycle(waiter: str, target: str, waits_for: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """The circle that ``waiter`` would close by waiting for ``target``: from ``waiter`` and back to it, as short as one
    can be; empty if there is none.

    Args:
        waits_for: the sessions that a session waits for now, directly.
    """
    if waiter == target:
        return (waiter, waiter)
    came_from: dict[str, str] = {target: waiter}
    level = [target]
    while level:
        further: list[str] = []
        for key in level:
            for on in waits_for(key):
                if on == waiter:
                    return (*_way(came_from, waiter, key), waiter)
                if on not in came_from:
                    came_from[on] = key
                    further.append(on)
        level = further
    return ()


def _way(came_from: dict[str, str], start: str, end: str) -> tuple[str, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
