"""The order in which the profiles of one provider are tried (SPEC.md I1).

1. Candidates: the explicit order, of the agent's store, else of the shared one, else ``auth.order``; it leaves out
   what it does not name, and an empty one switches the provider off. Without one: what ``auth.profiles`` names of this
   provider, else all that the stores have.
2. What cannot be used is left out, with the reason. A profile of another provider is never tried.
3. Without an explicit order: the agent's own before shared ones; logins whose token has run out behind others; logins,
   tokens, keys; the longest unused first, and of equals the last one that worked.
4. What cools down goes behind all others, the soonest first; the session's pin goes before all others. A pin does not
   bring in what is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from openclaw_ray.core.auth._eligible import Reason, Resolves, expires_at, unusable
from openclaw_ray.core.auth._rules import AuthRules, StoreName
from openclaw_ray.core.auth._secrets import Ref
from openclaw_ray.core.auth._usage import Usage, usage_of

__all__ = ["Held", "ProfileOrder", "candidates", "held_profiles", "order_profiles", "provider_id"]

Store = Mapping[str, Any]
_SORTS: Final = {"oauth": 0, "token": 1, "api_key": 2}


@dataclass(frozen=True, slots=True)
class Held:
    """A profile as one of the two stores has it. ``entry`` has the secret: it is never shown."""

    id: str
    provider: str
    source: StoreName
    usage: Usage
    entry: Mapping[str, Any] = field(repr=False)

    @property
    def sort(self) -> str:
        """``api_key``, ``token`` or ``oauth``."""
        return str(self.entry.get("type"))


@dataclass(frozen=True, slots=True)
class ProfileOrder:
    """The profiles of one provider.

    Attributes:
        order: ids of those that can be used, first to be tried first.
        excluded: id -> why it is not tried.
        used: id -> the store that each of ``order`` comes from.
        cooling: id -> milliseconds since the epoch until which it rests; these are last in ``order``, but for a pin.
        explicit: where the order was set; empty if nowhere.
    """

    order: tuple[str, ...]
    excluded: Mapping[str, Reason]
    used: Mapping[str, StoreName]
    cooling: Mapping[str, int]
    explicit: str = ""


def order_profiles(
    provider: str,
    *,
    agent_store: Store,
    shared_store: Store,
    now: int,
    rules: AuthRules | None = None,
    pin: str | None = None,
    resolves: Resolves | None = None,
) -> ProfileOrder:
    """The profiles of ``provider`` that an agent can use, and why not the others.

    Args:
        agent_store, shared_store: the parsed files; empty for one that is not there.
        now: milliseconds since the epoch.
        rules: what the configuration says.
        pin: profile id that the session is pinned to.
        resolves: whether a reference leads to a secret; all do if not given.
    """
    wanted = provider_id(provider)
    rules = rules or AuthRules()
    known = held_profiles(agent_store, shared_store)
    ids, explicit, excluded = candidates(wanted, known, agent_store, shared_store, rules)
    usable: list[Held] = []
    for each in ids:
        why = unusable(known[each].entry, now, resolves or _all)
        if why is None:
            usable.append(known[each])
        else:
            excluded[each] = why
    cooling = {one.id: until for one in usable if (until := one.usage.rests_until) > now}
    first = [one for one in usable if one.id not in cooling]
    if not explicit:
        good = {_last_good(agent_store, wanted), _last_good(shared_store, wanted)}
        first.sort(key=lambda one: _rank(one, now, good))
    last = sorted((one for one in usable if one.id in cooling), key=lambda one: cooling[one.id])
    found = [one.id for one in (*first, *last)]
    if pin is not None and pin in found:
        found = [pin, *(one for one in found if one != pin)]
    elif pin is not None and pin not in excluded:
        excluded[pin] = Reason.OTHER_PROVIDER if pin in known else Reason.NO_PROFILE
    return ProfileOrder(tuple(found), excluded, {one: known[one].source for one in found}, cooling, explicit)


def provider_id(provider: str) -> str:
    """A provider's name as it is compared."""
    return provider.strip().lower()


def held_profiles(agent_store: Store, shared_store: Store) -> dict[str, Held]:
    """All profiles by id, the agent's own where both stores have it."""
    found: dict[str, Held] = {}
    for source, store in ((StoreName.SHARED, shared_store), (StoreName.AGENT, agent_store)):
        for name, entry in _part(store, "profiles").items():
            entry = entry if isinstance(entry, Mapping) else {}
            said = entry.get("provider")
            # statistics of the shared key say nothing of a key of the agent's own that has its name
            stores = (agent_store,) if source is StoreName.AGENT else (shared_store, agent_store)
            usage = usage_of([_part(each, "usageStats").get(name) for each in stores])
            found[str(name)] = Held(str(name), provider_id(said) if isinstance(said, str) else "", source, usage, entry)
    return found


def candidates(
    provider: str, known: Mapping[str, Held], agent_store: Store, shared_store: Store, rules: AuthRules
) -> tuple[list[str], str, dict[str, Reason]]:
    """Ids that may be tried whatever the time (1, 2), where their order is set, and why not the others."""
    explicit, where = _explicit(provider, agent_store, shared_store, rules)
    listed = [name for name, (of, _) in rules.profiles.items() if provider_id(of) == provider]
    own = [one.id for one in known.values() if one.provider == provider]
    excluded: dict[str, Reason] = {}
    if explicit is not None:
        excluded |= {name: Reason.EXCLUDED for name in own if name not in explicit}
    elif listed:
        excluded |= {name: Reason.NOT_LISTED for name in own if name not in listed}
    ids: list[str] = []
    for name in dict.fromkeys(explicit if explicit is not None else listed or own):
        why = _unfit(name, provider, known, rules)
        if why is None:
            ids.append(name)
        else:
            excluded[name] = why
    return ids, where, excluded


def _explicit(
    provider: str, agent_store: Store, shared_store: Store, rules: AuthRules
) -> tuple[Sequence[str] | None, str]:
    places: tuple[tuple[Mapping[str, Any], str], ...] = (
        (_part(agent_store, "order"), "the agent's store"),
        (_part(shared_store, "order"), "the shared store"),
        (rules.order, "auth.order"),
    )
    for orders, where in places:
        for of, ids in orders.items():
            if provider_id(str(of)) == provider and isinstance(ids, list | tuple):
                return [one for one in ids if isinstance(one, str)], where
    return None, ""


def _unfit(name: str, provider: str, known: Mapping[str, Held], rules: AuthRules) -> Reason | None:
    one = known.get(name)
    if one is None:
        return Reason.NO_PROFILE
    if one.provider != provider:
        return Reason.OTHER_PROVIDER
    said = rules.profiles.get(name)
    if said is None:
        return None
    if provider_id(said[0]) != provider:
        return Reason.OTHER_PROVIDER
    fits = said[1] == one.sort or (said[1] == "oauth" and one.sort == "token")
    return None if fits else Reason.OTHER_MODE


def _rank(one: Held, now: int, good: set[str | None]) -> tuple[object, ...]:
    until = expires_at(one.entry)
    stale = one.sort == "oauth" and until is not None and now >= until
    return one.source is StoreName.SHARED, stale, _SORTS[one.sort], one.usage.last_used, one.id not in good


def _last_good(store: Store, provider: str) -> str | None:
    return next((str(one) for of, one in _part(store, "lastGood").items() if provider_id(str(of)) == provider), None)


def _part(store: Store, name: str) -> Mapping[str, Any]:
    found = store.get(name)
    return found if isinstance(found, Mapping) else {}


def _all(_: Ref) -> bool:
    return True
