"""Who asks for a credential, and what that makes of its process (PROTOCOL.md 7.6; SPEC.md I1).

1. The agent, and so what is in reach, is what the records say of the turn that asks, not what it says itself.
2. A run's class names what was in reach when it was admitted. Stores may have changed since: then the turn gets what is
   in reach now, and its process, which has seen more than its class says, is not used again.
3. A turn that has ended gets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.auth import AuthRules, pinned_profile
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import AgentEntry, State

__all__ = ["AuthTurn", "auth_given", "auth_of", "auth_turn"]


@dataclass(frozen=True, slots=True)
class AuthTurn:
    """A running turn: its agent, where that one's credentials are, and the profile that its session is pinned to."""

    agent: str
    rules: AuthRules | None
    scope: str
    pin: str | None


def auth_of(entry: AgentEntry) -> AuthRules | None:
    """Where an agent's credentials are; `None` if no store is configured."""
    # an entry that an older version has journaled lacks the field
    found: AuthRules | None = getattr(entry.limits, "auth", None)
    return found


def auth_turn(s: State, key: str, activation: str) -> AuthTurn | None:
    """The turn of this activation (1); `None` if it has ended (3)."""
    run = _running(s, key, activation)
    if run is None:
        return None
    entry, facts = s.agents.get(run.agent), s.sessions[key].facts
    pin = pinned_profile(facts.model) if facts is not None else None
    return AuthTurn(run.agent, auth_of(entry) if entry is not None else None, run.klass[1], pin)


def auth_given(s: State, key: str, activation: str, scope: str) -> bool:
    """The turn is to get a credential out of ``scope`` (2); False if it has ended (3)."""
    run = _running(s, key, activation)
    if run is None:
        return False
    s.auth_scopes[run.agent] = scope
    actor = s.actors.get(run.actor)
    if run.klass[1] != scope and actor is not None and not actor.kill_why:
        actor.kill_why = "the credentials in its reach have changed"
        s.touch(actor)
    return True


def _running(s: State, key: str, activation: str) -> Run | None:
    session = s.sessions.get(key)
    run = s.runs.get(session.run) if session is not None else None
    return run if run is not None and run.activation == activation and run.in_turn else None
