"""The registry's records, and how they go into the journal.

A record is mutable in memory and is written whole, as a pickled tuple of its fields, in the transaction of the step
that changed it. Fields that are worked out from other records, or that hold live handles, come last and are not
journaled.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from openclaw_ray.core.audience import Stamp
from openclaw_ray.core.handoff import HandOff
from openclaw_ray.core.lifecycle import DeliveryState, PauseReason, RunState
from openclaw_ray.core.message import Talk
from openclaw_ray.core.named_map import MapItem
from openclaw_ray.core.protocol.batch import Waits
from openclaw_ray.core.protocol.messages import Outcome, Payload
from openclaw_ray.core.protocol.permits import Asked
from openclaw_ray.core.protocol.restart import Restart
from openclaw_ray.core.results import Usage
from openclaw_ray.core.session_facts import SessionFacts

if TYPE_CHECKING:
    from openclaw_ray.core.policy.rules import Senders

__all__ = [
    "Actor",
    "Claim",
    "Client",
    "Mark",
    "Receiver",
    "Record",
    "ReuseClass",
    "Run",
    "Session",
    "journaled",
    "thaw",
]

ReuseClass: TypeAlias = tuple[str, str, str, tuple[tuple[str, Any], ...]]
"""One frozen key, compared as a whole: (bundle, credentials, sandbox, resources). PROTOCOL.md 7.6."""


class Record:
    """Base of journaled records: ``FIELDS`` are the journaled ones, in order."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()
    _GET: ClassVar[attrgetter[Any]]

    def freeze(self) -> bytes:
        """The journaled form."""
        return pickle.dumps(self._GET(self), protocol=5)


def journaled(cls: type[Any]) -> type[Any]:
    """Have a record class know which of its fields are journaled."""
    names = tuple(f.name for f in fields(cls) if f.metadata.get("journal", True))
    cls.FIELDS = names
    cls._GET = attrgetter(*names)
    return cls


def thaw(cls: type[Any], data: bytes) -> Any:
    """The record that ``data`` is the frozen form of. One of an older version lacks the newest fields, the last ones.

    Raises:
        ValueError: it has more fields than this version knows.
    """
    values = pickle.loads(data)
    if len(values) > len(cls.FIELDS):
        raise ValueError(f"{cls.__name__} of {len(values)} fields: the journal is of a newer version")
    return cls(**dict(zip(cls.FIELDS, values, strict=False)))


def _live(default: Any = None, factory: Any = None) -> Any:
    """A field of memory alone."""
    if factory is not None:
        return field(default_factory=factory, metadata={"journal": False})
    return field(default=default, metadata={"journal": False})


@dataclass(slots=True)
class Run(Record):
    """One run. Times: ``created``, ``started``, ``ended`` are wall-clock seconds; ``deadline`` is of the machine's
    monotonic clock, which a registry crash does not reset."""

    id: str
    seq: int
    session: str
    session_id: str
    agent: str
    route: str
    requester: str
    parent: str
    root: str
    depth: int
    reserve_depth: int
    task: str
    created: float
    lane: str
    lane_width: int
    klass: ReuseClass
    timeout: float = 0.0
    expects: bool = True
    label: str | None = None
    input: Payload | None = None
    index: int | None = None
    transcripts: str = "all"
    client: str = ""
    state: RunState = RunState.QUEUED
    pause: PauseReason | None = None
    kind: str = "task"
    generation: int = 0
    slot: int = -1
    """The generation that holds a lane slot, -1 for none."""
    turns: int = 0
    activation: str = ""
    actor: str = ""
    ran_on: str = ""
    """The actor of its newest turn."""
    started: float | None = None
    ended: float | None = None
    deadline: float | None = None
    confirmed: bool = False
    """The actor has spoken of this activation: a start needs no repeat."""
    yielded: bool = False
    resuming: bool = False
    """Its turn waits no longer for children, but for a slot."""
    wait: int = -1
    """The number of the wait that its turn has asked to end, -1 for none yet."""
    mark: int = 0
    """Number of the stop mark on this run, 0 for none (PROTOCOL.md 6.1); negative if it binds this run alone. An ended
    message's run: the mark that it ended under."""
    mark_reason: str = "stopped"
    forced: bool = False
    expired: bool = False
    outcome: Outcome | None = None
    held_by: str = ""
    """The actor that still holds this run's large value."""
    delivery: DeliveryState = DeliveryState.NOT_REQUIRED
    deliver_to: str = ""
    """Session key whose program is to hear of the end; empty when nobody waits any more."""
    fallback: bool = False
    attempts: int = 0
    warm: bool = False
    given: tuple[str, ...] = ()
    """Child runs whose completions went into the running turn's start."""
    follow_up: bool = False
    """Its last turn asked for a further one when the children have settled (PROTOCOL.md 5.3)."""
    ended_below: int = 0
    """Runs below that are terminal; a stop's report counts by it."""
    progress: tuple[str | None, float | None, float | None] | None = None
    usage: Usage = field(default_factory=Usage)
    below_usage: Usage = field(default_factory=Usage)
    task_name: str | None = None
    item: MapItem | None = None
    """What it is to a map that has a name."""
    interrupted: str = ""
    """Where it stood when the runtime went down, while it is held until the next start decides (`resuming.Held`)."""
    failed_attempts: int = 0
    """Receivers that died with its completion, or refused it."""
    last_error: str | None = None
    """What the last of them came to."""
    permits: tuple[Asked, ...] = ()
    """What its turn wants of rate limits, or holds of them (`limiting`)."""
    talk: Talk | None = None
    """Its place among messages; `None` for most."""
    born_turn: int = 0
    """The turn of its parent's that spawned it, 0 for none: it was spawned on that session's behalf."""
    waits: Waits | None = None
    """What it waits for without a turn (`yielding`); `None` if it has never yielded."""
    restart: Restart | None = None
    """Its place among the runs of a task that was steered (`steering`); `None` if it was not."""
    suspended_at: float | None = None
    """Wall-clock seconds at which its delivery was suspended."""
    senders: Senders | None = None
    """Who wrote what it answers, as far as that was told; `None` for most."""
    post: str = ""
    """The thread that its answer is said in, besides; empty for none."""
    # memory alone
    children: dict[str, None] = _live(factory=dict)
    unsettled: int = _live(0)
    live_below: int = _live(0)
    granted_at: float = _live(0.0)
    resend_at: float | None = _live()
    grace_at: float | None = _live()
    kill_at: float | None = _live()
    give_up_at: float | None = _live()
    asked_at: float | None = _live()
    redeliver_at: float | None = _live()
    hand_off: HandOff | None = _live()
    """The hand-off that its receiver has not accepted yet."""
    parking: str = _live("")
    """The actor that the pool was asked to take its large value from."""
    called_by: str = _live("")
    """The child's actor that calls ``deliver`` for it, until that is confirmed."""

    @property
    def terminal(self) -> bool:
        """True in a final state."""
        return self.state.terminal

    @property
    def in_turn(self) -> bool:
        """True while a process has a turn of it: granted and not yet ended, waiting ones included."""
        return bool(self.actor) and not self.terminal


@dataclass(slots=True)
class Session(Record):
    """One session. ``number`` counts its activations; ``state_json`` is the committed ``turn.state``."""

    key: str
    session_id: str
    agent: str
    depth: int
    requester: str
    root: str
    role: str
    created: float
    label: str | None = None
    state: str = "passive"
    number: int = 0
    state_json: bytes | None = None
    client: str = ""
    """Of a driver's root: whose it is."""
    host_rows: int = 0
    """Rows that the registry itself has written to the transcript."""
    ended: float | None = None
    task_name: str | None = None
    cleanup: str = "keep"
    """``delete``: archived as soon as its requester has been told of its end."""
    archive_at: float | None = None
    """Wall-clock seconds at which it is to be archived, once it has ended; `None` for not by itself."""
    resumes: tuple[float, ...] = ()
    """Wall-clock times of its last resumes after restarts."""
    wedged_at: float | None = None
    """It has a tombstone: it is not resumed again by itself (SPEC.md H5)."""
    wedged_reason: str | None = None
    revivals: int = 0
    """How often it was activated again for its children's ends after its process had died (`reviving`)."""
    facts: SessionFacts | None = None
    """What was settled about it at its birth."""
    revision: int = 0
    """How often it was begun anew under its key."""
    stamp: Stamp | None = None
    """What the host wrote on it when it was spawned (`audiences`)."""
    aborted: bool = False
    """Its last run was stopped, or the runtime went down in it (SPEC.md G1, H5)."""
    last_run: str = ""
    """Id of its newest run."""
    # memory alone
    run: str = _live("")
    """The run that owns the session now (one at a time)."""
    waiting: list[str] = _live(factory=list)
    """Further runs of this session, in order: the serial lane."""
    pending: dict[str, None] = _live(factory=dict)
    """Child runs whose completions its program has not been given."""
    active: int = _live(0)
    """Children that count against maxChildrenPerAgent (SPEC.md C, 1b)."""
    labels: dict[str, str] | None = _live()
    """Label -> the newest child run that has it; `None` until the first labelled child of this incarnation."""


@dataclass(slots=True)
class Actor(Record):
    """One session process. ``epoch`` counts its grants (PROTOCOL.md 3.2)."""

    id: str
    epoch: int = 0
    state: str = "growing"
    """``growing``, ``idle``, ``lent`` (tries code that is to be registered), ``bound``, ``releasing`` (holds a value),
    ``dying``."""
    klass: ReuseClass | None = None
    resources: tuple[tuple[str, Any], ...] = ()
    node: str = ""
    pid: int = 0
    run: str = ""
    activation: str = ""
    activations: int = 0
    kill_why: str = ""
    """Why it is not to be used again; empty if it may."""
    # memory alone
    handle: Any = _live()
    born_at: float = _live(0.0)
    idle_at: float = _live(0.0)
    known: bool = _live(False)
    """It has answered to this incarnation of the registry (a Hello, a report, an event)."""
    lent_to: str = _live("")
    kill_at: float | None = _live()
    keeps: bool = _live(False)
    """Large values of children of its last turn are in it (PROTOCOL.md 4.3)."""


@dataclass(slots=True)
class Client(Record):
    """One process with a courier: its last step and the answer to it (PROTOCOL.md 1.2)."""

    id: str
    seq: int = 0
    answer: bytes = b""
    root: str = ""
    leased: bool = True
    on_lost: str = "stop"
    host: str = ""
    pid: int = 0
    channel: tuple[str, str, bool] | None = None
    """The channel that it serves: its name, the account, and whether it can bind conversations."""
    # memory alone
    gone: bool = _live(False)
    known_handles: set[str] = _live(factory=set)


@dataclass(slots=True)
class Mark(Record):
    """One stop: the mark's number, who asked, and the runs under it (PROTOCOL.md 6)."""

    seq: int
    stop: str
    key: str
    client: str
    reason: str = "stopped"
    finished: int = 0
    runs: tuple[str, ...] = ()
    rows: tuple[tuple[str, str, str], ...] = ()
    """(session key, run id, outcome word) of the runs that have ended since, and of those that had before and were
    still in memory; ``finished`` counts the others that had."""
    done: bool = False
    alone: bool = False
    """It binds the runs that carry it and nothing below them."""
    kept: bool = False
    """Somebody who did not ask for the stop may ask for its report: it stays in the journal."""
    # memory alone
    open: set[str] = _live(factory=set)


@dataclass(slots=True)
class Claim(Record):
    """One try at a map that has a name: its own id, its client, and the downlink that it ends with."""

    map_id: str
    claim: str
    client: str
    receiver: str


@dataclass(slots=True)
class Receiver:
    """The numbered downlink of one client or activation (PROTOCOL.md 2.2); rebuilt by each incarnation."""

    id: str
    client: str
    actor: str = ""
    last: int = 0
    unacked: dict[int, Any] = field(default_factory=dict)
    sent: int = 0
    in_flight: bool = False
    resend_at: float | None = None


for _cls in (Run, Session, Actor, Client, Mark, Claim):
    journaled(_cls)
