"""Down: what the registry says later, and what a turn starts with (PROTOCOL.md 2, 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openclaw_ray.core.compact import compact
from openclaw_ray.core.protocol.parts import Payload
from openclaw_ray.core.protocol.permits import Permit
from openclaw_ray.core.results import Completion, StopReport
from openclaw_ray.core.session_facts import SessionFacts

__all__ = [
    "Bound",
    "Cancel",
    "Completed",
    "DownMessage",
    "Resumed",
    "Spec",
    "Stopped",
    "Warn",
]


@compact
@dataclass(frozen=True, slots=True)
class Bound:
    """Which actor runs a child. ``handle`` travels once per requester. ``born``: the run's journal number; a stop
    goes down this handle only if its mark's number is higher, as it does not bind later runs (PROTOCOL.md 6.1)."""

    run: str
    activation: str
    actor: str
    handle: Any = None
    born: int = field(default=0, compare=False)


@compact
@dataclass(frozen=True, slots=True)
class Completed:
    """A child's end over the downlink, with its value or the actor that holds it."""

    run: str
    completion: Completion
    value: bytes | None = None
    held: int = 0
    actor: str = ""
    handle: Any = None


@compact
@dataclass(frozen=True, slots=True)
class Resumed:
    """The slot for a waiting turn is there: it may go on from its wait number ``wait``, and from no other."""

    run: str
    activation: str
    wait: int = 0


@compact
@dataclass(frozen=True, slots=True)
class Cancel:
    """A deadline or stop reached the turn; ``reason`` is ``timeout`` or ``stopped``."""

    run: str
    activation: str
    reason: str
    mark: int = 0


@compact
@dataclass(frozen=True, slots=True)
class Stopped:
    """A stop is complete."""

    stop: str
    report: StopReport


@compact
@dataclass(frozen=True, slots=True)
class Warn:
    """Something that the client should tell its user once."""

    text: str


DownMessage: TypeAlias = Bound | Completed | Resumed | Cancel | Stopped | Warn | Permit


@compact
@dataclass(frozen=True, slots=True)
class Spec:
    """All that a turn starts with (PROTOCOL.md 3.5).

    Attributes:
        run, activation: what is started; ``number`` is the activation's number within the session.
        agent_id, bundle: which code; ``origin`` where it was defined.
        kind: `RunKind`. ``turn``: number of the turn within the run, from 1.
        completions: every pending completion of the session, ordered.
        state: JSON of ``turn.state``, or `None`.
        facts: what was settled about the session at its birth.
    """

    run: str
    activation: str
    number: int
    session_key: str
    session_id: str
    agent_id: str
    bundle: str
    kind: str
    turn: int
    text: str
    depth: int = 0
    role: str = "leaf"
    can_spawn: bool = True
    label: str | None = None
    requester: str = ""
    root: str = ""
    route: str = "spawn"
    created: float = 0.0
    input: Payload | None = None
    completions: tuple[Completed, ...] = ()
    state: bytes | None = None
    index: int | None = None
    task: str = ""
    transcripts: str = "all"
    facts: SessionFacts | None = None
