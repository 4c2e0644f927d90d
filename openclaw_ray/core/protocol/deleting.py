"""Deleting a session: its entry leaves memory, its transcript is renamed; what it did stays on disk (SPEC.md G3, H6).

1. Who asks has stopped the session and all below it, and says which one was seen: its id and its revision, the number
   of its activations. One that has been activated or made anew since is another one: nothing is done.
2. A main session and a client's root are refused, and one that has something un-ended.
3. Entry, event and the order to rename are one transaction. The order goes to the hub in line with the rows, so that
   those of before are in the file; it is journaled until the hub has acknowledged it, as they are.
4. Records of its runs, its children and their transcripts stay. The key is free as soon as its ends were heard of.
"""

from __future__ import annotations

from enum import StrEnum

from openclaw_ray.core.keys import main_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.records import Session, thaw
from openclaw_ray.core.protocol.state import State

__all__ = ["Deleting", "Deletion"]


class Deletion(StrEnum):
    """The registry's word on a deletion."""

    DELETED = "deleted"
    """Done, now or before."""
    UNKNOWN = "unknown"
    """There is no such session."""
    MAIN = "main"
    """It is an agent's main session, which is never deleted."""
    ROOT = "root"
    """It is a client's root, which ends with its client."""
    CHANGED = "changed"
    """It is not the one that was seen any more."""
    BUSY = "busy"
    """Something of it, or below it, has not ended."""


class Deleting:
    """Deletions."""

    def __init__(self, state: State) -> None:
        self.s = state

    def delete(self, key: str, session_id: str, revision: int) -> Deletion:
        """Delete the session that was seen (1, 2, 3); asked again, it is as the first time."""
        s = self.s
        session = self._find(key)
        if session is None:
            return Deletion.UNKNOWN
        if session.client:
            return Deletion.ROOT
        if key == main_key(session.agent):
            return Deletion.MAIN
        if (session.session_id, session.number) != (session_id, revision):
            return Deletion.CHANGED
        if session.state == SessionState.ARCHIVED:
            return Deletion.DELETED
        if any(not run.terminal and key in (run.session, run.requester) for run in s.runs.values()):
            return Deletion.BUSY
        session.state = SessionState.ARCHIVED.value
        session.ended = session.ended or s.clock.wall()
        s.archive(session)
        s.event(
            "session",
            session_key=key,
            agent_id=session.agent,
            requester_key=session.requester or None,
            root_key=session.root,
            depth=session.depth,
            label=session.label,
            state=session.state,
        )
        if any(run.session == key for run in s.runs.values()) or session.pending:
            s.touch(session)  # somebody is still to hear of its end; it leaves memory with its last run
        else:
            s.retire(session)
        return Deletion.DELETED

    def _find(self, key: str) -> Session | None:
        session = self.s.sessions.get(key)
        if session is not None:
            return session
        data = self.s.journal.get("sessions", key)
        if data is None:
            return None
        found: Session = thaw(Session, data)
        return found
