"""What a session asks of the registry about sessions, and how it is answered: the same for every entrance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from openclaw_ray.core.compact import compact

__all__ = ["Asker", "CleanupWord", "SessionAnswer"]


@compact
@dataclass(frozen=True, slots=True)
class Asker:
    """The turn that asks: its session's key, and the activation that fences it (PROTOCOL.md 1.4). The operator is no
    `Asker`: where one is looked for, it is `None`."""

    session: str
    activation: str


@compact
@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """The registry's answer.

    Attributes:
        status: ``ok``, ``forbidden`` (a rule says no) or ``error`` (what is asked for cannot be).
        value: what was asked for, if ``ok``.
        reason: which rule or case it is: a `visibility.DenialReason`, or ``stale``, ``unknown``, ``control``,
            ``changed``, ``label``, ``busy``, ….
        error: the same in words, with the way out.
        path: where the rule is set, if it is.
    """

    status: str = "ok"
    value: Any = None
    reason: str = ""
    error: str = ""
    path: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == "ok"


class CleanupWord(StrEnum):
    """The registry's word on a cleanup."""

    DONE = "done"
    """Done, now or before."""
    UNKNOWN = "unknown"
    """There is no such session."""
    MAIN = "main"
    """It is an agent's main session, which is never deleted."""
    ROOT = "root"
    """It is a client's root, which ends with its client."""
    CHANGED = "changed"
    """It is not the one that was seen any more."""
    BUSY = "busy"
    """Something of it, or below it, has not ended."""
    FORBIDDEN = "forbidden"
    """It is not the asking session's to clear."""
    ARCHIVED = "archived"
    """It was deleted: there is nothing to reset."""
