"""What passes between couriers, registry, hub and session actors: frozen records, no behaviour.

Up (PROTOCOL.md 1): a courier sends one `Step` at a time, events before admits; the registry answers with an `Answer`.
Down (PROTOCOL.md 2): the registry numbers what it has to say per receiver; a receiver is a client, or one activation of a
session process. Effects are what the registry wants done outside of itself, after the commit.

An *activation* is named ``<sessionId>.<n>``: one session on one actor for one turn, numbered per session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openclaw_ray.core.compact import compact
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.results import Completion, ErrorInfo, Receipt, StopReport, Usage

__all__ = [
    "TEXT_LIMIT",
    "VALUE_LIMIT",
    "Admit",
    "Answer",
    "Bound",
    "Bye",
    "Cancel",
    "CleanCheck",
    "Completed",
    "Consumed",
    "DeliverTo",
    "DieIf",
    "DownMessage",
    "DropValue",
    "Effect",
    "Event",
    "Exit",
    "Got",
    "Grow",
    "Hello",
    "HoldValue",
    "Join",
    "Kill",
    "MapDone",
    "Notify",
    "Outcome",
    "Paused",
    "Payload",
    "Progress",
    "Refused",
    "Report",
    "ReportAsk",
    "Resume",
    "Resumed",
    "Row",
    "Rows",
    "Settled",
    "Spec",
    "Start",
    "Started",
    "Step",
    "Stop",
    "StopAsk",
    "Stopped",
    "Took",
    "UsageAdded",
    "Verdict",
    "Warn",
]

VALUE_LIMIT = 64 * 1024
"""Bytes of pickle up to which a value or an input is journaled (DESIGN.md 7)."""
TEXT_LIMIT = 102_400
"""Bytes of UTF-8 at which a result text is cut (SPEC.md F3)."""


# --------------------------------------------------------------------------- parts


@compact
@dataclass(frozen=True, slots=True)
class Payload:
    """A Python object on its way: its pickle up to `VALUE_LIMIT`, else an opaque reference.

    Attributes:
        data: the pickle, journaled; `None` if it is larger.
        ref: opaque reference (an ObjectRef) to a larger one; owned by the process that made it, never journaled.
        size: bytes of the pickle.
    """

    data: bytes | None = None
    ref: Any = None
    size: int = 0


@compact
@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended, as its process saw it.

    Attributes:
        state: a terminal `RunState`; the registry's verdict may differ.
        text: text handed up, cut at `TEXT_LIMIT` bytes; `None` if there is none.
        value: pickle of the returned object if ≤ `VALUE_LIMIT`.
        held: bytes of a larger value that stays in the process until it is taken; 0 if there is none.
        error: why it did not succeed.
    """

    state: RunState
    text: str | None = None
    text_truncated: bool = False
    missing: bool = False
    value: bytes | None = None
    held: int = 0
    error: ErrorInfo | None = None


@compact
@dataclass(frozen=True, slots=True)
class CleanCheck:
    """What the check after a turn found left over; ``reasons`` empty means clean (PROTOCOL.md 7.6)."""

    reasons: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """True if the process may be used again."""
        return not self.reasons


@compact
@dataclass(frozen=True, slots=True)
class Row:
    """One transcript row. ``key`` (an announce key) or (sessionId, seq) makes its append idempotent.

    Attributes:
        session_id: whose transcript.
        activation: number of the activation that wrote it; rows of a lower one are refused after a newer one began.
        seq: position within that activation, from 0; -1 for rows that only have a key.
        role: ``user``, ``assistant``, ``tool``, ``system``.
        text: the content.
        at: wall-clock seconds.
        key: idempotency key, or `None`.
        meta: small JSON-ready dict, e.g. provenance.
    """

    session_id: str
    activation: int
    seq: int
    role: str
    text: str
    at: float
    key: str | None = None
    meta: dict[str, Any] | None = None


# --------------------------------------------------------------------------- up: events


@compact
@dataclass(frozen=True, slots=True)
class Hello:
    """A session process is there (PROTOCOL.md 7.1). ``handle`` is opaque."""

    actor: str
    node: str
    pid: int
    handle: Any = None


@compact
@dataclass(frozen=True, slots=True)
class Join:
    """A client other than a session process is there; ``root`` is the key of its driver's root.

    ``leased`` is False for the starter of an owned runtime (PROTOCOL.md 2.5). ``on_lost``: ``stop`` or ``keep``.
    """

    client: str
    root: str
    agent_id: str
    leased: bool = True
    on_lost: str = "stop"
    host: str = ""
    pid: int = 0


@compact
@dataclass(frozen=True, slots=True)
class Bye:
    """A client leaves in order; what is un-ended under its root is stopped."""

    client: str


@compact
@dataclass(frozen=True, slots=True)
class Started:
    """A turn has lasted 5 ms; ``elapsed`` seconds so far (PROTOCOL.md 3.4)."""

    run: str
    activation: str
    elapsed: float = 0.0


@compact
@dataclass(frozen=True, slots=True)
class Refused:
    """The actor did not accept a start (PROTOCOL.md 3.4). ``why``: ``epoch``, ``stopped``, ``busy`` or a text."""

    run: str
    activation: str
    why: str


@compact
@dataclass(frozen=True, slots=True)
class Settled:
    """A turn has ended (PROTOCOL.md 4.1, 5.2).

    Attributes:
        outcome: how.
        state: JSON of ``turn.state`` to commit, or `None` for unchanged.
        rows: transcript rows not flushed yet.
        clean: the result of the check, so that the actor is free in the step that carries this.
        yielded: the turn ended by ``turn.yield_()``.
        follow_up: the agent asks for a further turn when its children have settled (PROTOCOL.md 5.3).
        runtime: seconds that the turn lasted, as its process measured.
        keeps: children whose large values the turn has taken and its program was not given; they are in this process.
    """

    run: str
    activation: str
    outcome: Outcome
    state: bytes | None = None
    rows: tuple[Row, ...] = ()
    clean: CleanCheck = field(default_factory=CleanCheck)
    yielded: bool = False
    follow_up: bool = False
    runtime: float = 0.0
    keeps: tuple[str, ...] = ()


@compact
@dataclass(frozen=True, slots=True)
class Paused:
    """The turn waits in join or map: its slot is free, its process kept."""

    run: str
    activation: str


@compact
@dataclass(frozen=True, slots=True)
class Resume:
    """The wait is over; the turn asks for a slot, ahead of new starts. ``wait``: its number, counted by the turn."""

    run: str
    activation: str
    wait: int = 0


@compact
@dataclass(frozen=True, slots=True)
class Got:
    """Receipt of downlink messages up to ``upto`` by ``receiver``, and of announces called on the actor (``runs``)."""

    receiver: str
    incarnation: int = 0
    upto: int = 0
    runs: tuple[str, ...] = ()


@compact
@dataclass(frozen=True, slots=True)
class Consumed:
    """Completions of these runs were given to a program: delivered (PROTOCOL.md 4.5)."""

    receiver: str
    runs: tuple[str, ...]


@compact
@dataclass(frozen=True, slots=True)
class Took:
    """The large value of ``run`` is in the requester's hands; its actor is free."""

    run: str


@compact
@dataclass(frozen=True, slots=True)
class Rows:
    """Rows flushed while the turn runs."""

    run: str
    activation: str
    rows: tuple[Row, ...]


@compact
@dataclass(frozen=True, slots=True)
class Progress:
    """Newest progress of a turn."""

    run: str
    activation: str
    text: str | None = None
    done: float | None = None
    total: float | None = None


@compact
@dataclass(frozen=True, slots=True)
class UsageAdded:
    """Tokens and cost to add to a run."""

    run: str
    activation: str
    usage: Usage


@compact
@dataclass(frozen=True, slots=True)
class MapDone:
    """A map has ended: one summary row in the caller's transcript (PROTOCOL.md 4.6)."""

    receiver: str
    map_id: str
    summary: str


@compact
@dataclass(frozen=True, slots=True)
class StopAsk:
    """Stop the subtree of a session, or of one run, under an id of the caller's.

    ``by`` is the session on whose behalf it is asked (its key), empty for the operator.
    """

    stop: str
    key: str
    run: str = ""
    by: str = ""


Event: TypeAlias = (
    Hello
    | Join
    | Bye
    | Started
    | Refused
    | Settled
    | Paused
    | Resume
    | Got
    | Consumed
    | Took
    | Rows
    | Progress
    | UsageAdded
    | MapDone
    | StopAsk
)


@compact
@dataclass(frozen=True, slots=True)
class Admit:
    """Ask for a run (PROTOCOL.md 3.1). Ids are minted by the courier and checked by the registry.

    Attributes:
        run, session_key, session_id: fresh ids of the child; for route ``ask`` the key of an existing or main session.
        route: ``spawn`` (announced), ``map`` (a value for the caller) or ``ask`` (a message to a top-level session).
        requester: session key that hears of the end. ``activation``: that of its running turn, empty for clients.
        agent_id: as asked for; `None` means the requester's own.
        timeout: run timeout in seconds; `None` means the configured one, 0 none.
        transcripts: ``all``, ``failed`` or ``none``: whether the child keeps a transcript.
        lane: lane of its own (a map's), with ``lane_width``; empty means the rule's.
    """

    run: str
    session_key: str
    session_id: str
    route: str
    requester: str
    task: str
    activation: str = ""
    agent_id: str | None = None
    input: Payload | None = None
    label: str | None = None
    timeout: float | None = None
    expects: bool = True
    lane: str = ""
    lane_width: int = 0
    index: int | None = None
    transcripts: str = "all"


@compact
@dataclass(frozen=True, slots=True)
class Step:
    """One step of one courier (PROTOCOL.md 1.1); the same (client, seq) may come again."""

    client: str
    seq: int
    events: tuple[Event, ...] = ()
    admits: tuple[Admit, ...] = ()


@compact
@dataclass(frozen=True, slots=True)
class DeliverTo:
    """The requester has a running turn: call ``deliver`` on its actor (PROTOCOL.md 4.4 a).

    ``handle`` comes along when this process has not been given that actor's handle before.
    """

    actor: str
    activation: str
    completion: Completion
    value: bytes | None = None
    held: int = 0
    handle: Any = None


@compact
@dataclass(frozen=True, slots=True)
class Verdict:
    """The registry's word on one event that needs one.

    Attributes:
        run: which run (for a stop: the stop's id).
        word: ``settled``, ``paused``, ``refused`` (stale: nothing was changed), ``ok``, ``marked``.
        state: the run's state now.
        mark: number of the stop mark, for ``marked``.
        deliver: where to announce, if to a running turn.
    """

    run: str
    word: str
    state: RunState | None = None
    mark: int = 0
    deliver: DeliverTo | None = None


@compact
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a step. ``word``: ``ok``, ``recovering`` (try again), ``stale`` (this process is to end),
    ``unavailable`` (the journal refuses; ``detail`` says why; try again)."""

    incarnation: int
    seq: int
    word: str = "ok"
    verdicts: tuple[Verdict, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    detail: str = ""
    down: tuple[tuple[str, tuple[tuple[int, Any], ...]], ...] = ()
    """Downlink messages that ride along, by receiver: (receiver, ((number, message), …))."""


# --------------------------------------------------------------------------- down


@compact
@dataclass(frozen=True, slots=True)
class Bound:
    """Which actor runs a child. ``handle`` travels once per requester. ``born``: the run's journal number; a stop goes down
    this handle only if its mark's number is higher, as it does not bind later runs (PROTOCOL.md 6.1)."""

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


DownMessage: TypeAlias = Bound | Completed | Resumed | Cancel | Stopped | Warn


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


# --------------------------------------------------------------------------- effects


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
