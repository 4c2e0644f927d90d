"""Made-up credentials for tests of agents: what ``auth=…`` of `LocalRuntime` and `run_turn` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["auth_store"]


def auth_store(auth: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A whole store as it is; ``{"provider": "key"}`` as a store with a profile ``provider:default`` of each.

    Raises:
        TypeError: it is neither.
    """
    if auth is None or "profiles" in auth:
        return auth
    for provider, key in auth.items():
        if not isinstance(key, str):
            kind = type(key).__name__
            raise TypeError(f"auth={{{provider!r}: …}} is a key, not {kind}; a whole store has 'profiles'")
    keys = {of: {"type": "api_key", "provider": of, "key": key} for of, key in auth.items()}
    return {"profiles": {f"{of}:default": one for of, one in keys.items()}}
