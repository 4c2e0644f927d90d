"""A session's inbox: the messages that wait behind the turn that runs, over all their senders (DESIGN.md 11).

1. Looked at in the step that would add one, so that no number of senders gets past the bound.
2. A refused message leaves nothing behind: no session, no run, no row. Its sender is told the bound and when to come
   again, and does as it likes; nothing waits on its behalf.
3. What waits is journaled as any run is, so the bound holds in the next registry, too.
"""

from __future__ import annotations

from typing import Final

from openclaw_ray.core.protocol.records import Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import INBOX, Receipt

__all__ = ["inbox_full"]

_SOONEST: Final = 0.05
_LATEST: Final = 30.0


def inbox_full(s: State, session: Session) -> Receipt | None:
    """The refusal of one more message, or `None` if there is room."""
    size, most = len(session.waiting), s.limits.inbox_max
    if not session.run or size < most:
        return None
    text = (
        f"the inbox of {session.key} is full: {size} of {most} messages wait behind the turn that runs "
        "(ray.inbox.max); send it again later, or raise the bound"
    )
    return Receipt(
        "error", error=text, limit=INBOX, value=size, maximum=most, path="ray.inbox.max", retry_after=_hint(s, session)
    )


def _hint(s: State, session: Session) -> float:
    """Seconds: as long as the turn that runs has taken so far, the best guess at how soon there is room."""
    run = s.runs.get(session.run)
    taken = 0.0 if run is None or run.started is None else s.clock.wall() - run.started
    return round(min(max(taken, _SOONEST), _LATEST), 3)
