"""Which sessions a turn may see and change: the rule of `core.visibility` over its records (SPEC.md B2, B5).

1. The operator sees and changes everything.
2. A turn is fenced by itself: its activation must be the one that runs now in its session, else it is refused as stale
   (PROTOCOL.md 1.4), whatever it asks for.
3. What it may see, the rule of sight says. A denial does not say whether there is such a session.
4. What it may reset or delete must also be below it; a label may be its own, too. So what is in sight may not be ended
   for that alone (SCENARIOS.md 28).
"""

from __future__ import annotations

from openclaw_ray.core.keys import main_key, normalise_key
from openclaw_ray.core.protocol.addressing import access
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.control import Kinship, kinship
from openclaw_ray.core.protocol.records import Session, thaw
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.session_asks import Asker, SessionAnswer

__all__ = ["Sight"]

_BY_ID = 1_000  # newest sessions that are looked through for a session id
_WORDS = {
    Kinship.ITSELF: "that is this session itself",
    Kinship.ABOVE: "that is the session that this one works for",
    Kinship.OTHER: "it is not below this session",
}


class Sight:
    """The rule over the registry's records."""

    def __init__(self, state: State) -> None:
        self.s = state

    def fence(self, asker: Asker | None) -> Session | SessionAnswer | None:
        """The session that asks, `None` for the operator, or the refusal of a stale one (1, 2)."""
        if asker is None:
            return None
        session = self.s.sessions.get(asker.session)
        run = self.s.runs.get(session.run) if session is not None else None
        if session is None or run is None or not run.in_turn or run.activation != asker.activation:
            why = f"{asker.activation or 'no activation'} is not the turn that runs now in {asker.session}"
            return SessionAnswer("forbidden", reason="stale", error=f"refused: {why}")
        return session

    def denied(self, viewer: Session | None, key: str) -> SessionAnswer | None:
        """Why ``viewer`` may not see the session ``key`` (3)."""
        if viewer is None:
            return None
        denial = access(self.s, viewer, normalise_key(key))
        if denial is None:
            return None
        return SessionAnswer("forbidden", reason=denial.reason.value, error=denial.error, path=denial.path)

    def find(self, viewer: Session | None, name: str) -> Session | SessionAnswer:
        """The session that ``name`` means, if it may be seen: a key, ``current``, ``main``, or a session id."""
        word = name.strip()
        if word == "current" and viewer is not None:
            return viewer
        if word == "main" and viewer is not None:
            word = main_key(viewer.agent)
        if ":" not in word:
            found = self._by_id(word)
            if found is None:
                return _unknown(name)
            word = found.key
        denial = self.denied(viewer, word)
        if denial is not None:
            return denial
        return find_session(self.s, normalise_key(word)) or _unknown(name)

    def _by_id(self, session_id: str) -> Session | None:
        for session in self.s.sessions.values():
            if session.session_id == session_id:
                return session
        for data in self.s.journal.select("sessions", {}, limit=_BY_ID):
            found: Session = thaw(Session, data)
            if found.session_id == session_id:
                return found
        return None

    def unchangeable(self, viewer: Session | None, target: Session, what: str) -> SessionAnswer | None:
        """Why ``viewer`` may not do ``what`` to a session that it sees: ``patch``, ``reset``, ``delete`` (4)."""
        if viewer is None:
            return None
        kin = kinship(self.s, viewer.key, target.key)
        if kin is Kinship.BELOW or (kin is Kinship.ITSELF and what == "patch"):
            return None
        more = "itself and what is below it" if what == "patch" else "what is below it"
        text = f"{what} {target.key}: {_WORDS[kin]}; a session changes only {more}"
        return SessionAnswer("forbidden", reason="control", error=text)


def _unknown(name: str) -> SessionAnswer:
    return SessionAnswer("error", reason="unknown", error=f"there is no session {name!r}; sessions_list shows them")
