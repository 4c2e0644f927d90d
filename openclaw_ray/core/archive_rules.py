"""When an ended session is archived by itself (SPEC.md H6, A1, A6 #16).

1. Never before its end, and never before its requester has been told of it.
2. ``cleanup: "delete"``: at once after that. ``keep``: ``archiveAfterMinutes`` after the end, at least one minute; 0 is
   never. A timeout is an end like any other, and depth plays no part.
3. A session-mode child is not archived while it is bound to a conversation.
"""

from __future__ import annotations

from openclaw_ray.core.spawn_params import SpawnCleanup, SpawnMode

__all__ = ["archive_delay", "archive_due"]

_MINUTE = 60.0


def archive_delay(archive_after_minutes: float, cleanup: str, *, minute: float = _MINUTE) -> float | None:
    """Seconds from the end of a session to its archiving; `None` for never (2).

    Args:
        minute: seconds that a minute has, which tests make short.
    """
    if cleanup == SpawnCleanup.DELETE:
        return 0.0
    return max(1.0, archive_after_minutes) * minute if archive_after_minutes > 0 else None


def archive_due(
    *,
    archive_after_minutes: float,
    cleanup: str,
    ended_ago: float | None,
    announced: bool,
    mode: str = SpawnMode.RUN,
    bound: bool = False,
) -> bool:
    """Whether a child session is to be archived now.

    Args:
        archive_after_minutes: as configured.
        cleanup: ``keep`` or ``delete``.
        ended_ago: milliseconds since its end; `None` while it goes on.
        announced: nobody is still to be told of its end.
        mode: ``run`` or ``session``.
        bound: a conversation is bound to it.
    """
    if ended_ago is None or not announced or (mode == SpawnMode.SESSION and bound):
        return False
    delay = archive_delay(archive_after_minutes, cleanup)
    return delay is not None and ended_ago >= delay * 1000
