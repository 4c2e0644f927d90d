"""What the configuration says of one agent's credentials, and what a turn asks of the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from openclaw_ray.core.auth._secrets import SecretRules
from openclaw_ray.core.compact import compact, grown

__all__ = ["AuthAsk", "AuthOutcome", "AuthRules", "StoreName"]


class StoreName(StrEnum):
    """Where a profile comes from: ``Credential.source``."""

    AGENT = "agent"
    """The agent's own store."""
    SHARED = "shared"
    """The default agent's, as fallback."""


@grown
@dataclass(frozen=True, slots=True)
class AuthRules:
    """Where one agent's credentials are, and what the configuration says of their order (SPEC.md A5). No secrets.

    Attributes:
        own: path of the agent's own store; `None` if it has none.
        shared: path of the default agent's; `None` for that agent itself, and under isolation.
        isolated: ``agents.entries.<id>.ray.authIsolation``.
        order: ``auth.order``: provider -> profile ids.
        profiles: ``auth.profiles``: profile id -> (provider, mode).
        secrets: where references lead.
    """

    own: str | None = None
    shared: str | None = None
    isolated: bool = False
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    profiles: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    secrets: SecretRules = field(default_factory=SecretRules)


@compact
@dataclass(frozen=True, slots=True)
class AuthAsk:
    """A turn wants a credential: the next one of ``provider``, or the one of this ``profile``."""

    provider: str
    profile: str | None = None


@compact
@dataclass(frozen=True, slots=True)
class AuthOutcome:
    """How a credential has done.

    Attributes:
        profile: its id.
        worked: the provider took it.
        cooldown: seconds for which it is not to be tried; `None` leaves that to its failures so far.
        reason: a `FailureReason`.
    """

    profile: str
    worked: bool
    cooldown: float | None = None
    reason: str = "unknown"
