"""What an agent can ever use, and the name of that set: the second part of a re-use class (PROTOCOL.md 7.6).

The name is made of ids, stores and providers alone, never of a secret: a rotated key leaves it as it is, so that live
processes go on; a profile that comes or goes changes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from openclaw_ray.core.auth._order import candidates, held_profiles
from openclaw_ray.core.auth._rules import AuthRules, StoreName

__all__ = ["NO_SCOPE", "in_reach", "model_parts", "pinned_profile", "scope_of"]

NO_SCOPE: Final = "none"
"""Of agents without a credential in reach."""
_VERSION: Final = re.compile(r"[^@]*@\d{8}(?=@|$)")


def in_reach(
    agent_store: Mapping[str, Any], shared_store: Mapping[str, Any], rules: AuthRules
) -> tuple[tuple[str, str, str], ...]:
    """(profile id, path of its store, provider) of all that an agent's orders do not leave out, sorted."""
    known = held_profiles(agent_store, shared_store)
    found = []
    for provider in {one.provider for one in known.values() if one.provider}:
        for name in candidates(provider, known, agent_store, shared_store, rules)[0]:
            own = known[name].source is StoreName.AGENT
            found.append((name, (rules.own if own else rules.shared) or "", provider))
    return tuple(sorted(found))


def scope_of(reach: tuple[tuple[str, str, str], ...]) -> str:
    """The name of such a set: 16 hex digits, or `NO_SCOPE`."""
    if not reach:
        return NO_SCOPE
    return hashlib.sha256(json.dumps(reach).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def pinned_profile(model: str | None) -> str | None:
    """The profile that a model string pins, as in ``anthropic/sonnet@anthropic:work``; `None` if it pins none.

    A date behind the first ``@`` is the model's version.
    """
    if not model:
        return None
    name = model.rpartition("/")[2] if "@" not in model.partition("/")[0] else model
    if (dated := _VERSION.match(name)) is not None:
        name = name[dated.end() :]
    return name.partition("@")[2].strip() or None


def model_parts(model: str | None) -> tuple[str | None, str | None]:
    """Provider and name that a model string means, without the profile that it pins; `None` for what it does not say.

    A string without a slash is a name alone.
    """
    text = (model or "").strip()
    pin = pinned_profile(text)
    if pin is not None:
        text = text[: text.rindex(f"@{pin}")] if text.endswith(f"@{pin}") else text.rpartition("@")[0]
    provider, slash, name = text.partition("/")
    if not slash:
        return None, text or None
    return provider or None, name or None
