"""One `turn.join`: which children it waits for, and what it gives back."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from openclaw_ray.agents.port import TurnPort
from openclaw_ray.core.errors import JoinTimeout
from openclaw_ray.core.results import Completion, Receipt

__all__ = ["Joining", "Until"]


class Until(StrEnum):
    """When a join has what it wants."""

    ALL = "all"
    """Every child has settled."""
    FIRST = "first"
    """One has; the others are stopped."""


class Joining:
    """The state of a join; lives in the thread or loop that waits.

    Args:
        children: whom to wait for, in order of birth.
        until: all of them, or the first.
    """

    def __init__(self, port: TurnPort, children: Iterable[Receipt], until: Until) -> None:
        self._port = port
        self._children = list(children)
        self._until = until
        self._first = ""
        self._pending: dict[str, Receipt] = {}
        for child in self._children:
            if not port.completion(child.run_id).done():
                self._pending[child.run_id] = child
            elif not self._first:
                self._first = child.run_id

    @property
    def pending(self) -> list[str]:
        """Run ids that have not settled."""
        return list(self._pending)

    @property
    def satisfied(self) -> bool:
        """True if nothing need be waited for."""
        return not self._pending or (self._until is Until.FIRST and bool(self._first))

    def ended(self, run_id: str) -> None:
        """A child has settled."""
        if self._pending.pop(run_id, None) is not None and not self._first:
            self._first = run_id

    def timed_out(self, seconds: float) -> JoinTimeout:
        """The error that names the session keys of the children which have not settled."""
        return JoinTimeout(seconds, tuple(child.session_key for child in self._pending.values()))

    def take(self) -> list[Completion]:
        """Consume what has settled and return what was asked for, in order of birth."""
        settled = [child.run_id for child in self._children if child.run_id not in self._pending]
        wanted = [self._first] if self._until is Until.FIRST and self._first else settled
        completions = [self._port.completion(run_id).result() for run_id in wanted]
        if settled:
            self._port.consume(settled)
        return completions
