"""Credentials: which profiles an agent has in reach, in which order they are tried, and the one that is handed out
(SPEC.md I1; SCENARIOS.md 44). Pure: stores are read elsewhere (`openclaw_ray.store.credentials`).

1. An agent has two stores: its own, and the shared one of the default agent, as fallback. A profile id that is in both
   is the agent's own. ``agents.entries.<id>.ray.authIsolation`` takes the fallback away.
2. `order_profiles` gives the profiles of one provider, first to be tried first, and says of each other one why not.
3. `in_reach` is what can ever be used, whatever the time: it names the re-use class of the session's process.
4. A secret is in a store, and in a `Credential` in the hands of the turn that asked for it; nowhere else.

Names are loaded when they are first used: a session process, whose turns may ask for no credential, needs two of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openclaw_ray.core.auth._credential import Credential
    from openclaw_ray.core.auth._eligible import Reason, env_refs
    from openclaw_ray.core.auth._order import ProfileOrder, order_profiles
    from openclaw_ray.core.auth._reach import NO_SCOPE, in_reach, model_parts, pinned_profile, scope_of
    from openclaw_ray.core.auth._rules import AuthAsk, AuthOutcome, AuthRules, StoreName
    from openclaw_ray.core.auth._secrets import Ref, SecretProvider, SecretRules, SecretSource
    from openclaw_ray.core.auth._usage import FailureReason, after_failure, after_success, usage_of
    from openclaw_ray.core.auth._view import auth_view, choose, credential_of, held_profile, looked_at

_WHERE = {
    "NO_SCOPE": "_reach",
    "AuthAsk": "_rules",
    "AuthOutcome": "_rules",
    "AuthRules": "_rules",
    "Credential": "_credential",
    "FailureReason": "_usage",
    "ProfileOrder": "_order",
    "Reason": "_eligible",
    "Ref": "_secrets",
    "SecretProvider": "_secrets",
    "SecretRules": "_secrets",
    "SecretSource": "_secrets",
    "StoreName": "_rules",
    "after_failure": "_usage",
    "after_success": "_usage",
    "auth_view": "_view",
    "choose": "_view",
    "credential_of": "_view",
    "env_refs": "_eligible",
    "held_profile": "_view",
    "in_reach": "_reach",
    "looked_at": "_view",
    "model_parts": "_reach",
    "order_profiles": "_order",
    "pinned_profile": "_reach",
    "scope_of": "_reach",
    "usage_of": "_usage",
}

__all__ = [
    "NO_SCOPE",
    "AuthAsk",
    "AuthOutcome",
    "AuthRules",
    "Credential",
    "FailureReason",
    "ProfileOrder",
    "Reason",
    "Ref",
    "SecretProvider",
    "SecretRules",
    "SecretSource",
    "StoreName",
    "after_failure",
    "after_success",
    "auth_view",
    "choose",
    "credential_of",
    "env_refs",
    "held_profile",
    "in_reach",
    "looked_at",
    "model_parts",
    "order_profiles",
    "pinned_profile",
    "scope_of",
    "usage_of",
]


if not TYPE_CHECKING:  # else a misspelt name would be `Any` to type checkers

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
