"""Why a completion could not be delivered, and whether to try again (SPEC.md F6; PROTOCOL.md 4.5).

1. Only a receiver that died of it, or answered that it cannot take it, is a failed attempt. A live one that does not
   answer is unknown (`openclaw_ray.core.handoff`).
2. A *transient* fault may be gone at the next attempt: 5, 10 and 20 seconds later, then the delivery is ``suspended``:
   kept for 7 days, for `Runtime.redeliver` or `Runtime.dismiss`. After that it has ``failed``.
3. A *permanent* one will not go away by itself: the delivery has ``failed`` at once, and is tried again only if asked
   for.
4. A value that cannot be unpickled where it is delivered is no fault of the delivery: the outcome is heard, with that
   as its error.

Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["SUSPENDED_KEPT", "DeliveryFault"]

SUSPENDED_KEPT: Final = 7 * 24 * 3600.0
"""Seconds for which a suspended delivery is kept (2)."""


class DeliveryFault(StrEnum):
    """What went wrong with one attempt, or with all."""

    DIED = "died"
    """The receiver's process died with it."""
    NOT_STARTED = "not_started"
    """The receiver's agent could not be loaded or constructed for the turn that was to hear it, or its process refused
    that turn."""
    NOBODY = "nobody"
    """The requester is not there any more, and nobody above it is."""
    NO_AGENT = "no_agent"
    """The requester's agent is not registered any more."""
    ARCHIVED = "archived"
    """The requester had ended, and was archived before anybody took it."""
    EXPIRED = "expired"
    """It was suspended, and nobody asked for it in time."""

    @property
    def permanent(self) -> bool:
        """Whether a further attempt by itself is in vain (2, 3)."""
        return self not in (DeliveryFault.DIED, DeliveryFault.NOT_STARTED)

    def text(self, requester: str, detail: str = "") -> str:
        """What lists and events say of it; ``requester``: its key, ``detail``: what the receiver said."""
        words = {
            DeliveryFault.DIED: f"the process of {requester} died with it",
            DeliveryFault.NOT_STARTED: f"{requester} could not be started to hear it",
            DeliveryFault.NOBODY: f"{requester} is not there any more, and nobody above it",
            DeliveryFault.NO_AGENT: f"the agent of {requester} is not registered any more; register it, then redeliver",
            DeliveryFault.ARCHIVED: f"{requester} was archived before it took it",
            DeliveryFault.EXPIRED: f"suspended for 7 days, and neither redelivered nor dismissed ({requester})",
        }
        return words[self] + (f": {detail}" if detail else "")
