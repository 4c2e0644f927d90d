"""``sessions.patch``: what can be changed about a session that is there, which is its label (SPEC.md B7, G3, R42).

1. Who asks is fenced, sees the session, and may change it (`sight`). Who says which one was seen, by session id and
   revision, changes that one or nothing.
2. A label is one live session's of those with the same requester, as for a spawn; it is free again at the end.
3. Lineage, depth and policy are set by the host at birth, and by nobody after that.
"""

from __future__ import annotations

from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.records import Session
from openclaw_ray.core.protocol.sight import Sight
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.session_asks import Asker, SessionAnswer

__all__ = ["LABEL_MAX", "Patching"]

LABEL_MAX = 512
"""Characters of a label."""


class Patching:
    """Changes of labels."""

    def __init__(self, state: State, sight: Sight) -> None:
        self.s = state
        self.sight = sight

    def patch(
        self, asker: Asker | None, key: str, label: str, session_id: str | None, revision: int | None
    ) -> SessionAnswer:
        """Give the session ``key`` this label; an empty one takes it away. The value is the session's key."""
        viewer = self.sight.fence(asker)
        if isinstance(viewer, SessionAnswer):
            return viewer
        session = self.sight.find(viewer, key)
        if isinstance(session, SessionAnswer):
            return session
        refusal = (
            self.sight.unchangeable(viewer, session, "patch")
            or self._changed(session, session_id, revision)
            or self._bad_label(session, label)
        )
        if refusal is not None:
            return refusal
        self._label(session, label or None)
        return SessionAnswer(value=session.key)

    def _changed(self, session: Session, session_id: str | None, revision: int | None) -> SessionAnswer | None:
        seen = (session_id or session.session_id, session.revision if revision is None else revision)
        if seen == (session.session_id, session.revision):
            return None
        now = f"it is {session.session_id}, revision {session.revision} now"
        text = f"session {session.key} has changed since it was seen ({now}); look at it again"
        return SessionAnswer("error", reason="changed", error=text)

    def _bad_label(self, session: Session, label: str) -> SessionAnswer | None:
        if session.client:
            return SessionAnswer("error", reason="root", error=f"{session.key} is a client's root: it has no label")
        if session.state == SessionState.ARCHIVED:
            return SessionAnswer("error", reason="archived", error=f"session {session.key} was deleted")
        if len(label) > LABEL_MAX:
            text = f"label: it has {len(label)} characters, at most {LABEL_MAX}"
            return SessionAnswer("error", reason="label", error=text)
        for other in self.s.sessions.values():
            if label and other.label == label and other is not session and self._beside(other, session):
                text = f"label {label!r} is in use by {other.key}; say another, or wait for its end"
                return SessionAnswer("error", reason="label", error=text)
        return None

    def _beside(self, other: Session, session: Session) -> bool:
        """Whether it is a live session of the same requester (2)."""
        if other.requester != session.requester or other.key == session.key:
            return False
        run = self.s.runs.get(other.run)
        return other.depth == 0 or (run is not None and not run.terminal)

    def _label(self, session: Session, label: str | None) -> None:
        s = self.s
        session.label = label
        run = s.runs.get(session.run)
        if run is not None and not run.terminal:
            run.label = label
            s.touch(run)
        requester = s.sessions.get(session.requester)
        if requester is not None:
            requester.labels = None  # made anew when a child asks for a label
        if session.key in s.sessions:
            s.touch(session)
        else:
            s.retire(session)
        s.event(
            "session",
            session_key=session.key,
            agent_id=session.agent,
            requester_key=session.requester or None,
            root_key=session.root,
            depth=session.depth,
            label=session.label,
            state=session.state,
            reason="patched",
        )
