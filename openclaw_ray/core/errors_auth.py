"""Errors of credentials. Import them from `openclaw_ray.core.errors`. None of them ever holds a secret."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.errors_base import OpenClawRayError

__all__ = ["CredentialStoreError", "NoCredential"]

_SHOWN = 16


@dataclass(eq=False, repr=False)
class NoCredential(OpenClawRayError, LookupError):
    """An agent has no credential of a provider that can be used now; without a ``provider``: no such profile.

    Attributes:
        agent_id, provider: whose, and for what.
        looked_at: the stores, as ``agent: path`` and ``shared: path``.
        reasons: (profile id, why it is not used) of all that there are.
    """

    agent_id: str
    provider: str
    looked_at: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        what = f"credential of provider {self.provider!r} that can be used" if self.provider else "such profile"
        head = f"agent {self.agent_id!r} has no {what}"
        if not self.looked_at:
            return f"{head}: no store is configured; set agents.entries.{self.agent_id}.agentDir or ray.auth.dir"
        told = "; ".join(f"{name}: {why}" for name, why in self.reasons[:_SHOWN]) or "no profile of that provider"
        more = f" (+{len(self.reasons) - _SHOWN})" if len(self.reasons) > _SHOWN else ""
        way_out = f"add a profile, or see `openclaw-ray auth {self.agent_id}`"
        return f"{head} (looked at {', '.join(self.looked_at)}): {told}{more}; {way_out}"


@dataclass(eq=False, repr=False)
class CredentialStoreError(OpenClawRayError):
    """A credential store is there and cannot be used; the text names the file, never what is in it."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"credential store {self.path}: {self.detail}"
