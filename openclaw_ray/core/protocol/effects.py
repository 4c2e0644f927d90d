"""What the registry wants done outside of itself, after the commit (PROTOCOL.md 3.4, 4.3, 6, 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from openclaw_ray.core.compact import compact
from openclaw_ray.core.protocol.downlink import DownMessage, Spec

__all__ = [
    "DieIf",
    "DropValue",
    "Effect",
    "Exit",
    "Grow",
    "HoldValue",
    "Kill",
    "Notify",
    "Report",
    "ReportAsk",
    "Start",
    "Stop",
]


@compact
@dataclass(frozen=True, slots=True)
class Start:
    """Call ``start`` on an actor, one-way."""

    actor: str
    epoch: int
    spec: Spec


@compact
@dataclass(frozen=True, slots=True)
class Notify:
    """Call ``notify`` on a session actor with all that this activation has not confirmed."""

    actor: str
    activation: str
    incarnation: int
    messages: tuple[tuple[int, DownMessage], ...]


@compact
@dataclass(frozen=True, slots=True)
class Stop:
    """Call ``stop`` on an actor: cancel this activation, or never start it (PROTOCOL.md 6.3, 6.4)."""

    actor: str
    run: str
    activation: str
    reason: str
    mark: int


@compact
@dataclass(frozen=True, slots=True)
class DieIf:
    """Ask an actor to end itself if it still runs ``run`` (PROTOCOL.md 6.6)."""

    actor: str
    run: str


@compact
@dataclass(frozen=True, slots=True)
class Kill:
    """Have the pool kill the actor."""

    actor: str
    why: str


@compact
@dataclass(frozen=True, slots=True)
class Exit:
    """Tell an actor that nobody wants to end itself; the pool forgets it."""

    actor: str
    why: str


@compact
@dataclass(frozen=True, slots=True)
class Grow:
    """Ask the pool for actors, by id; ``resources`` as Ray's options, empty for the common class."""

    actors: tuple[str, ...]
    resources: tuple[tuple[str, Any], ...] = ()


@compact
@dataclass(frozen=True, slots=True)
class HoldValue:
    """The requester has no process: have the pool take the large value of ``run`` from ``actor`` (PROTOCOL.md 4.3)."""

    actor: str
    run: str


@compact
@dataclass(frozen=True, slots=True)
class DropValue:
    """Nobody will ask for this value any more: the pool lets go of it."""

    run: str


@compact
@dataclass(frozen=True, slots=True)
class ReportAsk:
    """Ask an actor what it runs (PROTOCOL.md 3.4, 7.5)."""

    actor: str


Effect: TypeAlias = Start | Notify | Stop | DieIf | Kill | Exit | Grow | ReportAsk | HoldValue | DropValue


@compact
@dataclass(frozen=True, slots=True)
class Report:
    """What an actor says of itself (PROTOCOL.md 7.5): epoch, the activation and run in its turn, the activations whose
    outcomes are in its outbox, the runs whose values it holds, and the activations whose start it will refuse."""

    actor: str
    epoch: int
    activation: str = ""
    run: str = ""
    outbox: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
