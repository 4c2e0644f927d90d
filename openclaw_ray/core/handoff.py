"""One hand-off of a completion to a receiver that lives: how long it lasts, and when it is said again.

1. A hand-off begins when the receiver is told. It is accepted with the receiver's `Got`; from then on no time counts,
   however long the completion waits behind what that session is busy with (SPEC.md A1, ``announceTimeoutMs``).
2. Until then it is said again 5, 10 and 20 seconds after the time before. From then on the downlink repeats it by
   itself (PROTOCOL.md 2.2).
3. When ``announceTimeoutMs`` have passed since it began, it is over without an answer. That is no failure: the receiver
   lives, and whether it has heard is unknown (PROTOCOL.md 4.5). It is noted, and the next hand-off begins at once: it
   is said again then, too, unless that is the downlink's by now.
4. What a receiver's death or refusal means is for `openclaw_ray.core.announce.RetryLadder`.

Pure. Times are seconds of one monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

__all__ = ["REPEATS", "HandOff"]

REPEATS: Final = (5.0, 10.0, 20.0)
"""Seconds before each repeat of what a live receiver has not confirmed."""


@dataclass(frozen=True, slots=True)
class HandOff:
    """Where one hand-off stands.

    Attributes:
        began: when the receiver was told first.
        said_at: when it was told last. ``said``: how often.
    """

    began: float
    said_at: float
    said: int = 1

    @classmethod
    def at(cls, now: float) -> HandOff:
        """One that begins now (1)."""
        return cls(now, now)

    @property
    def is_said_again(self) -> bool:
        """Whether it is not the downlink's alone yet (2)."""
        return self.said <= len(REPEATS)

    def again(self, now: float) -> HandOff:
        """It was said once more (2)."""
        return replace(self, said_at=now, said=self.said + 1)

    def anew(self, now: float) -> HandOff:
        """The next one, to the same receiver (3)."""
        return replace(self, began=now)

    def over(self, now: float, timeout: float) -> bool:
        """Whether its time has passed without an answer (3). ``timeout``: seconds."""
        return now >= self.began + timeout

    def look_at(self, timeout: float) -> float:
        """When to look next: it is said again then (2), or over (3)."""
        over = self.began + timeout
        return min(self.said_at + REPEATS[self.said - 1], over) if self.is_said_again else over
