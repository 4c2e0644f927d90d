"""`Credential`: a secret in the hands of the turn that asked for it."""

from __future__ import annotations

from typing import Any, NoReturn, final

from openclaw_ray.core.auth._rules import StoreName
from openclaw_ray.core.errors_runtime import PickleRefused

__all__ = ["Credential"]


@final
class Credential:
    """One profile's credential (DESIGN.md 7). Only `secret` gives the secret; ``repr``, ``str`` and ``format`` name
    the profile.

    It cannot be pickled, so it cannot be returned, given to a child, or travel in an exception by mistake; nor is it
    JSON. Take ``credential.secret`` where the provider is called, and nowhere else. Python cannot wipe a text from
    memory: what a turn keeps of it is gone when the memory is used again, and until then the process is used only by
    sessions that have the same credentials in reach.

    Attributes:
        provider: whose it is.
        profile_id: which profile.
        type: ``api_key``, ``token`` or ``oauth``.
        source: `StoreName`: the agent's own, or ``shared``: the fallback was used.
        expires: milliseconds since the epoch, or `None`. A login's may have passed: whoever keeps the store renews it.
        email: whose login it is, if the store says so.
    """

    __slots__ = ("_secret", "email", "expires", "profile_id", "provider", "source", "type")

    provider: str
    profile_id: str
    type: str
    source: StoreName
    expires: int | None
    email: str | None
    _secret: str

    def __init__(
        self,
        provider: str,
        profile_id: str,
        type: str,
        source: StoreName | str,
        secret: str,
        expires: int | None = None,
        email: str | None = None,
    ) -> None:
        for name, value in (
            ("provider", provider),
            ("profile_id", profile_id),
            ("type", type),
            ("source", StoreName(source)),
            ("expires", expires),
            ("email", email),
            ("_secret", secret),
        ):
            object.__setattr__(self, name, value)

    @property
    def secret(self) -> str:
        """The key or token itself."""
        return self._secret

    @property
    def is_fallback(self) -> bool:
        """True if it is not the agent's own."""
        return self.source is StoreName.SHARED

    def __repr__(self) -> str:
        return f"<Credential {self.profile_id} of {self.provider} ({self.type}, {self.source.value})>"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Credential does not change: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Credential does not change: {name}")

    def __copy__(self) -> Credential:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Credential:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        why = "a secret must not travel; a child gets its own by turn.auth.get"
        raise PickleRefused("Credential", why)
