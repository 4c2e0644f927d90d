"""Which profile a turn gets, and the same for people: ids, sorts and reasons, never a secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from openclaw_ray.core.auth._credential import Credential
from openclaw_ray.core.auth._eligible import Reason, Resolves, expires_at, secret_of
from openclaw_ray.core.auth._order import Held, ProfileOrder, held_profiles, order_profiles, provider_id
from openclaw_ray.core.auth._rules import AuthRules, StoreName
from openclaw_ray.core.auth._secrets import Ref
from openclaw_ray.core.errors_auth import NoCredential

__all__ = ["auth_view", "choose", "credential_of", "held_profile", "looked_at"]

Store = Mapping[str, Any]


def choose(
    agent_id: str,
    provider: str,
    profile: str | None,
    *,
    agent_store: Store,
    shared_store: Store,
    rules: AuthRules,
    now: int,
    pin: str | None,
    resolves: Resolves,
    missing: Callable[[Ref], str | None] | None = None,
) -> Held:
    """The profile that a turn gets: ``profile`` if it is named, resting or not; else the first that does not rest.

    ``missing`` reads the secret that a reference leads to, and says why it cannot be had if so: then the next one is
    tried.

    Raises:
        NoCredential: there is none; says what was looked at.
    """
    found = order_profiles(
        provider,
        agent_store=agent_store,
        shared_store=shared_store,
        now=now,
        rules=rules,
        pin=pin,
        resolves=resolves,
    )
    known = held_profiles(agent_store, shared_store)
    why = {name: reason.value for name, reason in found.excluded.items()}
    for name in found.order if profile is None else [one for one in found.order if one == profile]:
        secret = secret_of(known[name].entry)
        if secret is None:
            why[name] = Reason.NEEDS_REFRESH.value
        elif profile is None and name in found.cooling:
            why[name] = f"{Reason.COOLDOWN.value} for {max(1, round((found.cooling[name] - now) / 1000))} s"
        elif isinstance(secret, Ref) and missing is not None and (lost := missing(secret)) is not None:
            why[name] = f"{Reason.UNRESOLVED.value} ({lost})"
        else:
            return known[name]
    if profile is not None:
        reason = Reason.OTHER_PROVIDER if profile in known else Reason.NO_PROFILE
        why = {profile: why.get(profile, reason.value)}
    raise NoCredential(agent_id, provider_id(provider), looked_at(rules), tuple(sorted(why.items())))


def held_profile(profile: str, agent_store: Store, shared_store: Store) -> Held | None:
    """A profile by its id, the agent's own if both stores have it."""
    return held_profiles(agent_store, shared_store).get(profile)


def credential_of(held: Held, read: Callable[[Ref], str]) -> Credential:
    """The credential itself; ``read`` gives what a reference leads to, which was looked at before."""
    secret = secret_of(held.entry)
    text = read(secret) if isinstance(secret, Ref) else secret or ""
    email = held.entry.get("email")
    return Credential(
        held.provider,
        held.id,
        held.sort,
        held.source,
        text,
        expires_at(held.entry),
        email if isinstance(email, str) else None,
    )


def looked_at(rules: AuthRules) -> tuple[str, ...]:
    """The stores of an agent, for people."""
    shared = "left out by ray.authIsolation" if rules.isolated else rules.shared
    named = ((StoreName.AGENT, rules.own), (StoreName.SHARED, shared))
    return tuple(f"{store.value}: {path}" for store, path in named if path is not None)


def auth_view(
    agent_id: str,
    rules: AuthRules,
    *,
    agent_store: Store,
    shared_store: Store,
    now: int,
    pin: str | None,
    resolves: Resolves,
) -> dict[str, Any]:
    """What an agent has in reach, camelCase, as ``rt.auth`` and ``openclaw-ray auth`` show it."""
    known = held_profiles(agent_store, shared_store)
    providers = {one.provider for one in known.values() if one.provider}
    providers |= {provider_id(of) for of in rules.order}
    rows = []
    for provider in sorted(providers):
        found = order_profiles(
            provider,
            agent_store=agent_store,
            shared_store=shared_store,
            now=now,
            rules=rules,
            pin=pin,
            resolves=resolves,
        )
        rows.append(_provider(provider, found, known))
    invalid = [name for name, one in known.items() if not one.provider]
    return {
        "agentId": agent_id,
        "isolated": rules.isolated,
        "pin": pin,
        "stores": [],
        "providers": rows,
        "invalid": sorted(invalid),
    }


def _provider(provider: str, found: ProfileOrder, known: Mapping[str, Held]) -> dict[str, Any]:
    rows = []
    for name in found.order:
        one = known[name]
        row: dict[str, Any] = {"profileId": name, "type": one.sort, "source": one.source.value}
        if (until := expires_at(one.entry)) is not None:
            row["expires"] = until
        if one.usage.last_used:
            row["lastUsed"] = one.usage.last_used
        if name in found.cooling:
            row["cooldownUntil"] = found.cooling[name]
        rows.append(row)
    ready = (one for one in rows if "cooldownUntil" not in one and secret_of(known[one["profileId"]].entry) is not None)
    following = next(ready, None)
    return {
        "provider": provider,
        "next": following["profileId"] if following else None,
        "fallback": following is not None and following["source"] == StoreName.SHARED.value,
        "order": rows,
        "orderFrom": found.explicit or None,
        "excluded": [{"profileId": name, "reason": why.value} for name, why in sorted(found.excluded.items())],
    }
