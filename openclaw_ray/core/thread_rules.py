"""When a spawn may bind its child to a conversation, and when a binding ends (SPEC.md A3, B9, C stage 3).

1. What is in force: the account's value, else the channel's, else that of ``session.threadBindings``, else the built-in
   one; each key by itself.
2. A spawn with ``thread`` needs a channel that can bind, bindings that are enabled, and ``spawnSessions``.
3. The child's context, where the call does not say: ``defaultSpawnContext``; but a branch there cannot be (another
   agent's child, no transcript) is not asked for.
4. A binding ends after ``idleHours`` without a word from either side, or ``maxAgeHours`` after it began; 0 is never.
   One binding may have times of its own, which its users have set.
5. What users have bound by ``/focus``, only who did so may bind to another session, drop, or give another time (SPEC.md
   B8). A channel that does not say who speaks leaves that to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.compact import grown

__all__ = ["HOUR", "Bindings", "ThreadEnd", "ThreadRules", "binder_refusal", "binding_refusal", "end_of"]

HOUR: Final = 3600.0
"""Seconds."""
_PATH: Final = "session.threadBindings"


class ThreadEnd(StrEnum):
    """Why a binding is over."""

    UNBOUND = "unbound"
    """Somebody has dropped it: in the conversation, or the operator."""
    IDLE = "idle"
    """Nobody has said anything for ``idleHours``."""
    MAX_AGE = "max-age"
    """It was ``maxAgeHours`` old."""
    DELETED = "deleted"
    """Its session was deleted or archived."""
    REPLACED = "replaced"
    """The conversation was bound to another session."""
    SPAWN_FAILED = "spawn-failed"
    """The child that it was made for was refused after all."""


@grown
@dataclass(frozen=True, slots=True)
class Bindings:
    """Thread bindings in force somewhere (1). Hours; 0 is never."""

    enabled: bool = True
    idle_hours: float = 24.0
    max_age_hours: float = 0.0
    spawn_sessions: bool = True
    default_spawn_context: str = "fork"


@grown
@dataclass(frozen=True, slots=True)
class ThreadRules:
    """The bindings of every place (1).

    Attributes:
        general: where nothing else is said.
        places: (channel, account, what is in force there); the account is empty for the channel itself.
    """

    general: Bindings = Bindings()
    places: tuple[tuple[str, str, Bindings], ...] = ()

    def of(self, channel: str, account: str = "") -> Bindings:
        """What is in force on an account of a channel."""
        found = {(name, one): bindings for name, one, bindings in self.places}
        return found.get((channel, account)) or found.get((channel, "")) or self.general


def binding_refusal(bindings: Bindings | None, channel: str = "") -> Refusal | None:
    """Why a spawn may not bind its child (2). ``bindings``: `None` if there is no channel that could."""
    if bindings is None:
        which = f"channel {channel!r} cannot" if channel else "this session has none"
        text = f"thread needs a channel that can bind a conversation; {which}"
        return Refusal("error", text, "thread")
    key = "enabled" if not bindings.enabled else "spawnSessions" if not bindings.spawn_sessions else ""
    if not key:
        return None
    path = f"{_PATH}.{key}"
    text = f"thread: a spawn binds no conversation here ({path} is false, or that of its channel; set it to true)"
    return Refusal("error", text, "thread", path=path)


def end_of(bindings: Bindings, began: float, used: float, now: float) -> ThreadEnd | None:
    """Why a binding is over by now (4), `None` while it goes on. Seconds of the wall clock."""
    if bindings.max_age_hours > 0 and now >= began + bindings.max_age_hours * HOUR:
        return ThreadEnd.MAX_AGE
    if bindings.idle_hours > 0 and now >= used + bindings.idle_hours * HOUR:
        return ThreadEnd.IDLE
    return None


def binder_refusal(binder: str, who: str) -> str:
    """Why ``who`` may not change what ``binder`` has bound (5), empty if it may. Both as `Sender.identity` has them,
    empty for unknown."""
    if not binder or binder == who:
        return ""
    return f"only {binder} may change this binding, who has made it{f'; you are {who}' if who else ''}"
