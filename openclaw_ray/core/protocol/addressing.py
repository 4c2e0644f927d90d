"""To whom a message goes: by key, alias, session id, label, or agent (SPEC.md B2).

1. A key is read in any spelling; ``main`` is the sender's own main session, ``current`` the sender itself; a malformed
   key is never taken for main, and a ``:thread:`` key is none to send to. What has no colon is an agent's id, if there
   is one of that id, else a session's.
2. A label is first looked for among the sender's own children, the newest that has not ended, else the newest. Then
   among all sessions that the sender may use: there it must be one alone.
3. An agent alone means its main session, which is made by its first message.
4. Whether the sender may use the session is asked before whether there is one.
5. A client's own message opens a session beside an agent's main one, where the key is to be had (`own_keys`): one that
   is nobody's yet, or was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from openclaw_ray.core import keys
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.own_keys import is_opened, why_not_opened
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.control import controls
from openclaw_ray.core.protocol.records import Session, thaw
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.visibility import Denial, DenialReason, Viewer, check_access

__all__ = ["access", "address", "main_session"]

_SCANNED = 1_000  # sessions that are not in memory looked through for a label or a session id
_NAMED = 5


def access(s: State, sender: Session, target: str) -> Denial | None:
    """Why the session ``sender`` may not use the session ``target``; `None` if it may, or is the operator."""
    if sender.client:
        return None
    sandboxed = sender.facts is not None and sender.facts.sandboxed
    return check_access(
        s.limits.sessions, Viewer(sender.key, sandboxed), target, spawned=controls(s, sender.key, target)
    )


def address(s: State, sender: Session, ask: SendAsk, new_id: str, *, opens: bool = False) -> Session | Receipt:
    """The session that is meant, in memory or not; one that is to be made is in no table yet.

    Args:
        new_id: session id of one that is made.
        opens: the message opens a session (5).
    """
    if ask.target:
        found = _by_key(s, sender, ask.target, new_id, opens)
    elif ask.label:
        found = _by_label(s, sender, ask.label, ask.agent_id)
    elif ask.agent_id:
        found = _main_of(s, sender, ask.agent_id, new_id)
    else:
        return Receipt("error", error="to whom? say sessionKey, label or agentId")
    return found


def _by_key(s: State, sender: Session, target: str, new_id: str, opens: bool) -> Session | Receipt:
    seen = keys.inspect(target)
    if seen.normalised == "current":
        return sender
    if seen.normalised in s.agents and (sender.client or seen.normalised != "main"):
        return _main_of(s, sender, target, new_id)
    if ":" not in target and seen.normalised != "main":
        return _by_session_id(s, sender, target)
    key = keys.main_key(sender.agent) if seen.normalised == "main" else seen.normalised
    denial = access(s, sender, key)
    if denial is not None:
        return _denied(denial)
    if seen.thread_id is not None:
        text = f"{key} is a thread of {seen.base_key}; send to the session itself"
        return Receipt("error", error=text, limit="sessionKey")
    found = find_session(s, key)
    if found is not None and not (opens and found.state == SessionState.ARCHIVED and is_opened(key)):
        return found
    view = keys.inspect(key)
    if view.agent_id is not None and key == keys.main_key(view.agent_id):
        return _main_of(s, sender, view.agent_id, new_id)
    return _opened(s, key, view.agent_id or "", new_id, opens)


def _by_session_id(s: State, sender: Session, session_id: str) -> Session | Receipt:
    for session in _all(s):
        if session.session_id == session_id:
            denial = access(s, sender, session.key)
            return session if denial is None else _denied(denial)
    return _unknown(s, session_id)


def _main_of(s: State, sender: Session, agent_id: str, new_id: str) -> Session | Receipt:
    agent = keys.normalise_agent_id(agent_id)
    if agent is None:
        return Receipt("error", error=f"{agent_id!r} is no agent id", limit="agentId")
    key = keys.main_key(agent)
    denial = access(s, sender, key)
    if denial is not None:
        return _denied(denial)
    found = s.sessions.get(key)
    if found is not None:
        return found
    entry = s.agents.get(agent)
    if entry is None:
        return _unknown(s, key)
    return main_session(s, entry, new_id)


def main_session(s: State, entry: AgentEntry, new_id: str) -> Session:
    """An agent's main session, new and in no table yet."""
    return _top(s, entry, keys.main_key(entry.id), new_id)


def _top(s: State, entry: AgentEntry, key: str, new_id: str) -> Session:
    return Session(key, new_id, entry.id, 0, "", key, keys.role(0, s.depth_cap).role, s.clock.wall())


def _opened(s: State, key: str, agent: str, new_id: str, opens: bool) -> Session | Receipt:
    """A further session of an agent's, new and in no table yet (5); or why there is none."""
    entry, why = s.agents.get(agent), why_not_opened(key)
    if entry is None or (why and not opens):
        return _unknown(s, key)
    if why:
        return Receipt("error", error=f"no session {key!r}, and a message opens none: {why}", limit="sessionKey")
    if not opens:
        text = f"no session {key!r}; the first message of a client opens it (rt.ask)"
        return Receipt("error", error=text, limit="sessionKey")
    return _top(s, entry, key, new_id)


def _by_label(s: State, sender: Session, label: str, agent_id: str) -> Session | Receipt:
    agent = keys.normalise_agent_id(agent_id) if agent_id else None
    fits = [x for x in _all(s, sender.key) if x.label == label and (agent is None or x.agent == agent)]
    own = [x for x in fits if x.requester == sender.key]
    if own:
        best = max(own, key=lambda x: (x.state != SessionState.ENDED, x.created))
        denial = access(s, sender, best.key)
        return best if denial is None else _denied(denial)
    seen = [x for x in fits if access(s, sender, x.key) is None]
    if len(seen) == 1:
        return seen[0]
    if seen:
        names = ", ".join(sorted(x.key for x in seen)[:_NAMED])
        return Receipt("error", error=f"{len(seen)} sessions have the label {label!r}: {names}; say the sessionKey")
    boxed = sender.facts is not None and sender.facts.sandboxed
    of = f" of agent {agent_id}" if agent_id else ""
    return Receipt("forbidden" if boxed else "error", error=f"no session{of} has the label {label!r}", limit="label")


def _all(s: State, requester: str = "") -> Iterator[Session]:
    """Sessions of programs: those in memory, then those that ended or rest, newest first; all, or a requester's."""
    for session in list(s.sessions.values()):
        if not session.client and session.state != SessionState.ARCHIVED:
            yield session
    where = {"requester": requester} if requester else {}
    for data in s.journal.select("sessions", where, limit=_SCANNED):
        session = thaw(Session, data)
        if session.key not in s.sessions and session.state != SessionState.ARCHIVED and not session.client:
            yield session


def _unknown(s: State, named: str) -> Receipt:
    known = ", ".join(sorted(s.agents)) or "none"
    return Receipt("error", error=f"no agent or session {named!r} (agents: {known})")


def _denied(denial: Denial) -> Receipt:
    status = "error" if denial.reason is DenialReason.MALFORMED else "forbidden"
    return Receipt(status, error=denial.error, limit=denial.reason.value, path=denial.path or None)
