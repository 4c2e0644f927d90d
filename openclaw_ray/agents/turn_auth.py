"""``turn.auth``: the credentials of a session's agent (DESIGN.md 7, SPEC.md I1).

Nothing is kept: each `get` asks, and is answered from the stores as they are then. So a rotated key is there at the
next `get`, and a profile that was reported as failed is not given again while it rests.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

from openclaw_ray.core.auth import AuthAsk, AuthOutcome, Credential, FailureReason

__all__ = ["SyncTurnAuth", "TurnAuth"]

Request = AuthAsk | AuthOutcome


class TurnAuth:
    """``turn.auth`` of a `Turn`."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[Request], Awaitable[Any]]) -> None:
        self._ask = ask

    async def get(self, provider: str, profile: str | None = None) -> Credential:
        """The credential to use for ``provider`` now; `Credential.source` tells whether it is the fallback.

        Args:
            profile: exactly this one, resting or not. Not given, it is the first of the order that does not rest.

        Raises:
            NoCredential: there is none; names the stores that were looked at, and why each profile is not used.
            CredentialStoreError: a store cannot be read.
            Cancelled: the turn is to end.
        """
        found: Credential = await self._ask(_asked(provider, profile))
        return found

    async def succeeded(self, credential: Credential | str) -> None:
        """It worked: the longest unused one is next.

        Args:
            credential: that one, or its profile id.

        Raises:
            NoCredential: there is no such profile.
        """
        await self._ask(_outcome(credential, True))

    async def failed(
        self,
        credential: Credential | str,
        cooldown: float | None = None,
        reason: FailureReason | str = FailureReason.UNKNOWN,
    ) -> None:
        """It did not work: this profile alone rests, for all agents that share it, and `get` gives the next one.

        Args:
            credential: that one, or its profile id.
            cooldown: seconds; not given, 1, 5, 25, then 60 minutes as it fails again (for ``billing`` hours).
            reason: a `FailureReason`.

        Raises:
            NoCredential: there is no such profile.
            ValueError: ``cooldown`` is no number of seconds, or ``reason`` none of those there are.
        """
        await self._ask(_outcome(credential, False, cooldown, reason))


class SyncTurnAuth:
    """``turn.auth`` of a `SyncTurn`."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[Request], Any]) -> None:
        self._ask = ask

    def get(self, provider: str, profile: str | None = None) -> Credential:
        """The credential to use for ``provider`` now; see `TurnAuth.get`."""
        found: Credential = self._ask(_asked(provider, profile))
        return found

    def succeeded(self, credential: Credential | str) -> None:
        """It worked; see `TurnAuth.succeeded`."""
        self._ask(_outcome(credential, True))

    def failed(
        self,
        credential: Credential | str,
        cooldown: float | None = None,
        reason: FailureReason | str = FailureReason.UNKNOWN,
    ) -> None:
        """It did not work; see `TurnAuth.failed`."""
        self._ask(_outcome(credential, False, cooldown, reason))


def _asked(provider: str, profile: str | None) -> AuthAsk:
    if not isinstance(provider, str) or not provider.strip():
        raise ValueError(f"a provider is a name, as in turn.auth.get('anthropic'), not {provider!r}")
    if profile is not None and not isinstance(profile, str):
        raise ValueError(f"a profile is named by its id, not by {type(profile).__name__}")
    return AuthAsk(provider, profile)


def _outcome(
    credential: Credential | str,
    worked: bool,
    cooldown: float | None = None,
    reason: FailureReason | str = FailureReason.UNKNOWN,
) -> AuthOutcome:
    profile = credential.profile_id if isinstance(credential, Credential) else credential
    if not isinstance(profile, str):
        raise ValueError(f"a credential, or a profile id, not {type(profile).__name__}")
    if cooldown is not None and (
        isinstance(cooldown, bool)
        or not isinstance(cooldown, int | float)
        or not math.isfinite(cooldown)
        or cooldown < 0
    ):
        raise ValueError(f"cooldown is a number of seconds of 0 or more, not {cooldown!r}")
    return AuthOutcome(profile, worked, cooldown, FailureReason(reason).value)
