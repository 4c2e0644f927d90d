"""When an ended session is archived (SPEC.md H6).

1. Only one that has ended, and whose end was announced: neither its age nor a timeout archives a running one.
2. ``cleanup: "delete"`` at once; ``keep`` after ``archiveAfterMinutes``, 0 being never.
3. One of session mode not while something is bound to it.
"""

from __future__ import annotations

__all__ = ["archive_due"]


def archive_due(
    *,
    archive_after_minutes: float,
    cleanup: str,
    ended_ago_ms: int | None,
    announced: bool,
    mode: str = "run",
    bound: bool = False,
) -> bool:
    """Whether it is time.

    Args:
        cleanup: ``delete`` or ``keep``.
        ended_ago_ms: milliseconds since its end; `None` while it goes on.
        mode: ``run`` or ``session``.
    """
    if ended_ago_ms is None or not announced or (mode == "session" and bound):
        return False
    if cleanup == "delete":
        return True
    return archive_after_minutes > 0 and ended_ago_ms >= archive_after_minutes * 60_000
