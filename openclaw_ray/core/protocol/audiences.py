"""The host's side of `openclaw_ray.core.audience`: what is written on a child, and who its sessions are.

1. The stamp is made in the step that admits the child, of the parent as it is in that very step: there is no time in
   which the parent could be reset between the two.
2. A turn is the owner's if it was started by a message of an operator's, or is of a session whose stamp says so. A
   message from another session is not, nor is one whose sender the operator does not vouch for as the owner.
3. The chats of an agent's main session are the owner's, but for those. What a root may see by itself goes by the turn
   that it runs now.
"""

from __future__ import annotations

from openclaw_ray.core.audience import Audience, Denial, Line, Stamp, resolve
from openclaw_ray.core.keys import KeyKind, inspect
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State

__all__ = ["audience_of", "stamp_of"]


def stamp_of(s: State, requester: Session, parent: Run) -> Stamp:
    """What is written on a child of ``requester``, spawned in its run ``parent`` (1)."""
    return Stamp(requester.key, requester.session_id, requester.revision, _is_owners(requester, parent))


def audience_of(s: State, key: str) -> Audience | Denial:
    """Whose memory a session may see now."""

    def find(name: str) -> Line | None:
        session = find_session(s, name)
        if session is None:
            return None
        owner = inspect(session.key).kind is KeyKind.MAIN
        if owner and name == key and session.run:
            owner = _is_owners(session, s.runs[session.run])
        return Line(
            session.key,
            session.session_id,
            session.agent,
            session.revision,
            session.requester,
            session.stamp,
            owner,
            session.state == SessionState.ARCHIVED,
        )

    return resolve(key, find)


def _is_owners(session: Session, run: Run) -> bool:
    """Whether a turn of ``session``, in its run ``run``, is the owner's (2)."""
    if run.route == "driver":
        return True
    if run.senders is not None and not all(one.owner for one in run.senders.who):
        return False
    if run.route == "ask":
        return ":driver:" in run.requester
    return session.stamp is not None and session.stamp.sender_is_owner is True
