"""Where credentials are handed out: beside the registry's core, on threads of its own (SPEC.md I1; PROTOCOL.md 1.7).

1. `AuthDesk.look` reads agents' stores before a start needs to know what is in their reach: no step ever reads a file.
2. An ask is answered from the stores as they are now. What was read is let go of with the answer; only names of what is
   in reach are kept, and how profiles have done.
3. A word on how a profile has done goes into the store that the profile came from. Where that cannot be written it
   holds for as long as this process lives, and one warning tells.
4. Asks are answered side by side, as a program may take its time; words on profiles one after the other.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from openclaw_ray.core.auth import (
    NO_SCOPE,
    AuthAsk,
    AuthOutcome,
    AuthRules,
    Credential,
    FailureReason,
    StoreName,
    after_failure,
    after_success,
    choose,
    credential_of,
    held_profile,
    in_reach,
    looked_at,
    pinned_profile,
    scope_of,
    usage_of,
)
from openclaw_ray.core.errors import (
    CredentialStoreError,
    NoCredential,
    OpenClawRayError,
    ProtocolRefused,
    RuntimeUnavailable,
    UnknownAgent,
)
from openclaw_ray.core.protocol.authing import AuthTurn, auth_of
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import Effect
from openclaw_ray.core.protocol.records import Session, thaw
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.store.auth_view import view_stores
from openclaw_ray.store.credentials import change_usage, read_store
from openclaw_ray.store.secrets import SecretReader

__all__ = ["AuthDesk", "Office"]

T = TypeVar("T")
Store = Mapping[str, Any]
_DOUBLE = "<auth of the test>"
_SUCCESS_EVERY = 1000  # milliseconds between two writes that only say that a profile still works


class Office(Protocol):
    """The registry that it works for."""

    core: Registry
    lock: threading.RLock

    def _change(self, change: Callable[[Registry], tuple[T, tuple[Effect, ...]]]) -> T:
        """One change of the core.

        Raises:
            JournalFault: nothing was changed.
        """


class AuthDesk:
    """One per registry.

    Args:
        env: where references to the environment lead.
        double: a test's own store, shared by all agents, in place of a file.
    """

    def __init__(self, office: Office, env: Mapping[str, str], double: Store | None = None) -> None:
        self.office = office
        self.scopes: dict[str, str] = {}
        """Belongs to the core's state, whichever incarnation that is."""
        self._env = env
        self._double: dict[str, Any] | None = None if double is None else copy.deepcopy(dict(double))
        self._lock = threading.RLock()
        self._words: dict[tuple[str, str], dict[str, Any]] = {}
        self._warned: set[str] = set()

    # ------------------------------------------------------------------ classes

    def look(self, agents: Mapping[str, AuthRules | None]) -> None:
        """Find out what is in these agents' reach (1). A store that cannot be read is told of when it is needed."""
        found = {agent: self._scope(rules) for agent, rules in agents.items()}
        with self.office.lock:
            self.scopes.update(found)

    def _scope(self, given: AuthRules | None) -> str:
        rules = self._rules(given)
        if rules is None:
            return NO_SCOPE
        try:
            own, shared = self._read(rules.own), self._read(rules.shared)
        except CredentialStoreError:
            return f"unreadable:{rules.own}:{rules.shared}"
        return scope_of(in_reach(own, shared, rules))

    # ------------------------------------------------------------------ turns

    def answer(self, key: str, activation: str, request: AuthAsk | AuthOutcome) -> Credential | OpenClawRayError | None:
        """What a turn has asked for, or why it does not get it (2); `None` to a word on how a profile has done (3)."""
        with self.office.lock:
            turn = self.office.core.auth_turn(key, activation)
        if turn is None:
            return ProtocolRefused("turn.auth", f"the turn {activation} that asked has ended")
        try:
            rules = self._rules(turn.rules)
            if isinstance(request, AuthOutcome):
                with self._lock:
                    self._heard(turn, rules or AuthRules(), request)
                return None
            if rules is None:
                raise NoCredential(turn.agent, request.provider, (), ())
            return self._credential(key, activation, turn, rules, request)
        except OpenClawRayError as error:
            return error
        except JournalFault as fault:
            return RuntimeUnavailable("registry", 0.0, f"the journal refuses: {fault}")

    def _credential(self, key: str, activation: str, turn: AuthTurn, rules: AuthRules, ask: AuthAsk) -> Credential:
        own, shared, secrets = self._read(rules.own), self._read(rules.shared), SecretReader(rules.secrets, self._env)
        held = choose(
            turn.agent,
            ask.provider,
            ask.profile,
            agent_store=own,
            shared_store=shared,
            rules=rules,
            now=self._now(),
            pin=turn.pin,
            resolves=secrets.reachable,
            missing=secrets.missing,
        )
        scope = scope_of(in_reach(own, shared, rules))
        if scope != turn.scope and not self.office._change(lambda core: core.auth_given(key, activation, scope)):
            raise ProtocolRefused("turn.auth", f"the turn {activation} that asked has ended")
        return credential_of(held, secrets.secret)

    def _heard(self, turn: AuthTurn, rules: AuthRules, outcome: AuthOutcome) -> None:
        now = self._now()
        held = held_profile(outcome.profile, self._read(rules.own), self._read(rules.shared))
        if held is None:
            raise NoCredential(turn.agent, "", looked_at(rules), ((outcome.profile, "profile_missing"),))
        path = (rules.own if held.source is StoreName.AGENT else rules.shared) or ""
        reason = FailureReason(outcome.reason)

        def change(entry: Mapping[str, Any]) -> dict[str, Any]:
            if outcome.worked:
                return after_success(entry, now)
            return after_failure(entry, now, reason, outcome.cooldown)

        before, rests = held.usage.last_used, held.usage.rests_until > now
        recent = outcome.worked and not rests and 0 <= now - before < _SUCCESS_EVERY
        if recent or not self._write(path, held.provider, outcome.profile, change, good=outcome.worked):
            self._words[path, outcome.profile] = change(self._words.get((path, outcome.profile), {}))

    def _write(
        self, path: str, provider: str, profile: str, change: Callable[[Store], dict[str, Any]], *, good: bool
    ) -> bool:
        if path == _DOUBLE:
            return False
        try:
            change_usage(path, profile, provider, change, good=good)
        except CredentialStoreError as error:
            if path not in self._warned:
                self._warned.add(path)
                text = f"{error}; what is heard of its profiles holds until this runtime ends"
                self.office._change(lambda core: (None, core.warn(text)))
            return False
        self._words.pop((path, profile), None)
        return True

    # ------------------------------------------------------------------ people

    def view(self, target: str) -> dict[str, Any]:
        """What an agent, or the agent of a session, has in reach; see `openclaw_ray.core.auth.auth_view`.

        Raises:
            KeyError: there is no such session.
            UnknownAgent: there is no such agent.
        """
        pin = None
        with self.office.lock:
            s = self.office.core.s
            agent = target
            if ":" in target:
                session = self._session(target)
                agent = session.agent
                pin = pinned_profile(session.facts.model) if session.facts is not None else None
            entry = s.agents.get(agent)
            if entry is None:
                raise UnknownAgent(agent, tuple(sorted(s.agents)))
        rules = self._rules(auth_of(entry)) or AuthRules()
        resolves = SecretReader(rules.secrets, self._env).reachable
        return view_stores(agent, rules, read=self._read, now=self._now(), pin=pin, resolves=resolves)

    def _session(self, key: str) -> Session:
        s = self.office.core.s
        live = s.sessions.get(key)
        if live is not None:
            return live
        data = s.journal.get("sessions", key)
        if data is None:
            raise KeyError(key)
        session: Session = thaw(Session, data)
        return session

    # ------------------------------------------------------------------ stores

    def _rules(self, rules: AuthRules | None) -> AuthRules | None:
        if self._double is None:
            return rules
        rules = rules or AuthRules()
        shared = None if rules.isolated else _DOUBLE
        return replace(rules, shared=shared)

    def _read(self, path: str | None) -> Store:
        """A store as it is now, with what is heard of its profiles and not written (3)."""
        if path is None:
            return {}
        data = (self._double or {}) if path == _DOUBLE else read_store(path).profiles
        with self._lock:
            words = {profile: word for (of, profile), word in self._words.items() if of == path}
        if not words:
            return data
        stats = dict(data.get("usageStats") or {})
        stats |= {name: _later(stats.get(name), word) for name, word in words.items()}
        return {**data, "usageStats": stats}

    def _now(self) -> int:
        return round(self.office.core.s.clock.wall() * 1000)


def _later(written: Any, word: Mapping[str, Any]) -> dict[str, Any]:
    """Both together; of each moment the later one counts, and a success is the end of the failures before it."""
    entry = dict(written) if isinstance(written, Mapping) else {}
    used = usage_of((entry, word)).last_used
    if not word.get("errorCount") and used >= usage_of((entry,)).failed_at:
        entry = after_success(entry, used)
    return {**entry, **word, "lastUsed": used}
