"""What turns and the registry say to each other of rate limits, and what the registry keeps of it (`limiting`)."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.compact import compact

__all__ = ["Asked", "BackOff", "LimitAsk", "LimitDone", "Permit"]


@compact
@dataclass(frozen=True, slots=True)
class Asked:
    """What a turn wants of a rate limit: the request's id, the limit's name, the cost, and whether it was let in."""

    ask: str
    name: str
    cost: float = 1.0
    held: bool = False


@compact
@dataclass(frozen=True, slots=True)
class LimitAsk:
    """A turn wants to be let in by the rate limit ``name``, for so many tokens; ``ask`` is the request's id."""

    run: str
    activation: str
    ask: str
    name: str
    cost: float = 1.0


@compact
@dataclass(frozen=True, slots=True)
class LimitDone:
    """A request of a rate limit is over, or given up."""

    run: str
    activation: str
    ask: str


@compact
@dataclass(frozen=True, slots=True)
class BackOff:
    """The rate limit ``name`` is to let nobody in for so many seconds."""

    run: str
    activation: str
    name: str
    seconds: float


@compact
@dataclass(frozen=True, slots=True)
class Permit:
    """A turn is let in by a rate limit, or refused: ``why`` is then ``unknown`` (``detail``: the names there are) or
    ``held_above`` (``detail``: how many places it has)."""

    ask: str
    why: str = ""
    detail: tuple[str, ...] = ()
