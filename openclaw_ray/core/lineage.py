"""Who is whose child, by run: marks that bind a subtree, and what still lives below (PROTOCOL.md 6.1, 6.3).

Every run names the run that spawned it. A run record stays while anything below it lives, so that a stop passes through
middle runs that have already ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

__all__ = ["Node", "ancestors", "born", "bound_by_mark", "ended", "subtree"]


class Node(Protocol):
    """What a walk needs of a run."""

    seq: int
    parent: str
    mark: int
    route: str
    children: dict[str, None]
    unsettled: int
    live_below: int


def ancestors(runs: Mapping[str, Node], run: Node) -> Iterator[Node]:
    """The runs above ``run``, nearest first."""
    parent = runs.get(run.parent)
    while parent is not None:
        yield parent
        parent = runs.get(parent.parent)


def bound_by_mark(runs: Mapping[str, Node], run: Node) -> int:
    """The number of the stop mark that binds ``run``, 0 for none.

    A mark binds the run that carries it and all below; one with a negative number that run alone. On a driver's root,
    which lives on after a stop, it binds only what was born before it: a later run is not under an old mark.
    """
    if run.mark and run.route != "driver":
        return run.mark
    below = run
    for above in ancestors(runs, run):
        if above.mark > 0 and (above.route != "driver" or below.seq < above.mark):
            return above.mark
        below = above
    return 0


def subtree(runs: Mapping[str, Node], top: str) -> Iterator[str]:
    """``top`` and every run below it, level by level, through ended ones."""
    level = [top]
    while level:
        yield from level
        level = [child for run_id in level if run_id in runs for child in runs[run_id].children]


def born(runs: Mapping[str, Node], run_id: str, run: Node) -> None:
    """Count a new run in all that are above it."""
    for i, above in enumerate(ancestors(runs, run)):
        if i == 0:
            above.children[run_id] = None
            above.unsettled += 1
        above.live_below += 1


def ended(runs: Mapping[str, Node], run: Node) -> None:
    """Uncount a run that has become terminal."""
    for i, above in enumerate(ancestors(runs, run)):
        if i == 0:
            above.unsettled -= 1
        above.live_below -= 1
