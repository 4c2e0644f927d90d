"""The session process that this is, if it is one; `Runtime.connect` in an agent binds itself to it (DESIGN.md 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openclaw_ray.actors.session_actor import SessionActor
    from openclaw_ray.actors.session_turn import SessionTurn

__all__ = ["running_turn", "this_is"]

_actor: SessionActor | None = None


def this_is(actor: SessionActor) -> None:
    """Called once by a session process."""
    global _actor
    _actor = actor


def running_turn(runtime: str) -> SessionTurn | None:
    """The turn that runs in this process, if it is a session process of that runtime."""
    if _actor is None or _actor.settings.runtime != runtime:
        return None
    return _actor.turn
