"""Errors of rate limits. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.errors_base import OpenClawRayError, name_list

__all__ = ["LimitHeldAbove", "LimitTimeout", "UnknownLimit"]


@dataclass(eq=False, repr=False)
class UnknownLimit(OpenClawRayError, LookupError):
    """``turn.limit`` of a name that the configuration does not have; ``known`` are those it has."""

    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = name_list(self.known, 32) if self.known else "none"
        return f"there is no rate limit {self.name!r} (ray.limits: {known}; add ray.limits.{self.name})"


@dataclass(eq=False, repr=False)
class LimitHeldAbove(OpenClawRayError, RuntimeError):
    """All places of a limit are held by sessions that wait above this one: it would never be let in."""

    name: str
    concurrent: int

    def __str__(self) -> str:
        return (
            f"rate limit {self.name!r}: all {self.concurrent} places (ray.limits.{self.name}.concurrent) are held by "
            "sessions that wait above this one; give the place back before you wait for children, or raise it there"
        )


@dataclass(eq=False, repr=False)
class LimitTimeout(OpenClawRayError, TimeoutError):
    """A turn was not let in within the ``timeout`` of its call; it has left the line."""

    name: str
    seconds: float

    def __str__(self) -> str:
        return f"rate limit {self.name!r} did not let this turn in within {self.seconds:g} s (ray.limits.{self.name})"
