"""Whether one profile can be used by itself: its credential is there, and has not run out (SPEC.md I1)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from openclaw_ray.core.auth._secrets import Ref, ref_of

__all__ = ["Reason", "Resolves", "env_refs", "expires_at", "secret_of", "unusable"]

_VARIABLE: Final = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")
_MATERIAL: Final = {
    "api_key": (("key", "apiKey"), "keyRef"),
    "token": (("token",), "tokenRef"),
    "oauth": (("access",), "accessRef"),
}
"""Sort of credential -> the fields with its secret, and the one with a reference to it."""
_NOWHERE: Final = Ref("", "")
"""What is no reference leads nowhere, and is no secret either."""


class Reason(StrEnum):
    """Why a profile is not tried. The first five words are OpenClaw's."""

    EXCLUDED = "excluded_by_auth_order"
    """An explicit order leaves it out."""
    MISSING = "missing_credential"
    """The store has no secret for it."""
    INVALID_EXPIRES = "invalid_expires"
    """Its expiry is no moment."""
    EXPIRED = "expired"
    """Its expiry has passed."""
    UNRESOLVED = "unresolved_ref"
    """What it refers to is not there, or of a sort that is not read here."""
    NO_PROFILE = "profile_missing"
    """An order or a pin names it, and no store has it."""
    OTHER_PROVIDER = "provider_mismatch"
    """It is of another provider than the one asked for, or than the configuration says."""
    OTHER_MODE = "mode_mismatch"
    """It is of another sort than ``auth.profiles`` says."""
    NOT_LISTED = "excluded_by_auth_profiles"
    """``auth.profiles`` names profiles of this provider, and not this one."""
    INVALID = "invalid_profile"
    """The store's entry is no profile."""
    NEEDS_REFRESH = "needs_refresh"
    """A login without an access token: whoever keeps the store has to renew it."""
    COOLDOWN = "cooldown"
    """It has failed lately."""


Resolves = Callable[[Ref], bool]
"""Whether what is referred to may be there."""


def secret_of(entry: Mapping[str, Any]) -> str | Ref | None:
    """The secret of a store's entry, or where it is; `None` if there is none. What is no reference leads nowhere."""
    fields, by_ref = _MATERIAL.get(str(entry.get("type")), ((), ""))
    for value in (entry.get(by_ref), *(entry.get(name) for name in fields)):
        if isinstance(value, str) and value.strip():
            found = _VARIABLE.fullmatch(value.strip())
            return Ref("env", found[1]) if found else value.strip()
        if isinstance(value, Mapping) and value:
            return ref_of(value) or _NOWHERE
    return None


def env_refs(store: Mapping[str, Any]) -> Iterator[str]:
    """Names of the environment that a store's profiles refer to."""
    for entry in _profiles(store).values():
        secret = secret_of(entry) if isinstance(entry, Mapping) else None
        if isinstance(secret, Ref) and secret.source == "env":
            yield secret.id


def _profiles(store: Mapping[str, Any]) -> Mapping[str, Any]:
    found = store.get("profiles")
    return found if isinstance(found, Mapping) else {}


def unusable(entry: Mapping[str, Any], now: int, resolves: Resolves) -> Reason | None:
    """Why a profile cannot be used at ``now`` (milliseconds since the epoch); `None` if it can.

    A login whose access token has run out can: it is renewed by whoever keeps the store.
    """
    sort = str(entry.get("type"))
    if sort not in _MATERIAL:
        return Reason.INVALID
    secret = secret_of(entry)
    if secret is None:
        refresh = entry.get("refresh")
        return None if sort == "oauth" and isinstance(refresh, str) and refresh.strip() else Reason.MISSING
    if sort == "token" and (why := _expiry(entry, now)) is not None:
        return why
    if isinstance(secret, Ref) and not resolves(secret):
        return Reason.UNRESOLVED
    return None


def _expiry(entry: Mapping[str, Any], now: int) -> Reason | None:
    if "expires" not in entry:
        return None
    until = expires_at(entry)
    if until is None:
        return Reason.INVALID_EXPIRES
    return Reason.EXPIRED if now >= until else None


def expires_at(entry: Mapping[str, Any]) -> int | None:
    """Milliseconds since the epoch at which a credential runs out; `None` if that is not said, or makes no sense."""
    value = entry.get("expires")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    return int(value)
