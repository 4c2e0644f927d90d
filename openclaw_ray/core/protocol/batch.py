"""What a run that has no turn waits for: a frozen batch of children, or a message (SPEC.md B3, PROTOCOL.md 5.4).

The rules are in `openclaw_ray.core.protocol.yielding`; here is what of it is journaled with the run. A run that has
never yielded has none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from openclaw_ray.core.compact import compact
from openclaw_ray.core.message import MessageSource

__all__ = ["ACKNOWLEDGMENT_LIMIT", "MESSAGE", "Told", "Waits"]

MESSAGE: Final = "message"
"""``waitFor`` of a yield."""
ACKNOWLEDGMENT_LIMIT: Final = 1_024
"""Characters of a yield's acknowledgment (SPEC.md B3)."""


@compact
@dataclass(frozen=True, slots=True)
class Told:
    """One message that a waiting run was told.

    Attributes:
        text: what was said.
        sender: session key of who said it; empty for the operator.
        id: the sender's own for it, so that it counts once.
        at: wall-clock seconds.
    """

    text: str
    sender: str = ""
    id: str = ""
    at: float = 0.0

    @property
    def source(self) -> MessageSource | None:
        """Whose word it is, if another session's."""
        return MessageSource(self.sender, self.id) if self.sender else None


@compact
@dataclass(frozen=True, slots=True)
class Waits:
    """What a run waits for, or did when its present turn was started.

    Attributes:
        batch: the children of the turn that yielded, whose ends its program had not been given; never added to.
        generation: how often the run has yielded.
        armed: the wake of this batch is still owed.
        message: it waits for a message, too.
        told: messages for its next turn; once that runs, those that it was started with.
    """

    batch: tuple[str, ...] = ()
    generation: int = 0
    armed: bool = False
    message: bool = False
    told: tuple[Told, ...] = ()
