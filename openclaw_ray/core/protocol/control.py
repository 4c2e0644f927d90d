"""Who controls whom: a session controls what is below it in the tree of sessions, and nothing else (SPEC.md B4, G).

1. The walk goes up from the target, from session to requester, through sessions that have ended and left memory.
2. Itself, what is above it, beside it or in another tree is not a session's to stop; a leaf controls nothing.
3. The operator controls everything; nobody asks this for him.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from openclaw_ray.core.protocol.records import Run, Session, thaw
from openclaw_ray.core.protocol.restart import successor
from openclaw_ray.core.protocol.state import State, thaw_run

__all__ = ["Kinship", "controls", "kinship", "run_named"]

_DEEPEST = 1_000  # no walk is longer than any tree, whatever a journal says


class Kinship(StrEnum):
    """What a session is to one that wants to control it."""

    BELOW = "below"
    """In its subtree: it may be stopped."""
    ITSELF = "itself"
    """The very session that asks."""
    ABOVE = "above"
    """Its requester, or that one's, and so on."""
    OTHER = "other"
    """Beside it, or of another tree."""


def kinship(s: State, by: str, target: str) -> Kinship:
    """What the session ``target`` is to the session ``by``; both are keys."""
    if target == by:
        return Kinship.ITSELF
    if by in _above(s, target):
        return Kinship.BELOW
    return Kinship.ABOVE if target in _above(s, by) else Kinship.OTHER


def controls(s: State, by: str, target: str) -> bool:
    """Whether the session ``by`` may stop the session ``target``."""
    return target != by and by in _above(s, target)


def run_named(s: State, target: str) -> Run | None:
    """The run of this id, or the one that goes on for it, or the newest one of the session of this key; ended ones
    too."""
    run = successor(s, target)
    if run is not None or ":" not in target:
        return run
    live = [run for run in s.runs.values() if run.session == target]
    if live:
        return max(live, key=lambda run: run.seq)
    found = s.journal.select("runs", {"session": target}, limit=1)
    return thaw_run(found[0]) if found else None


def _above(s: State, key: str) -> Iterator[str]:
    for _ in range(_DEEPEST):
        session = s.sessions.get(key)
        if session is None:
            data = s.journal.get("sessions", key)
            if data is None:
                return
            session = thaw(Session, data)
        key = session.requester
        if not key:
            return
        yield key
