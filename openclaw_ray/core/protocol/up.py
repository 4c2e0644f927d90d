"""Up: what couriers say to the registry, and its answers (PROTOCOL.md 1, 3.1, 4, 5, 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_ray.core.compact import compact
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.named_map import MapItem
from openclaw_ray.core.protocol.downlink import Spec
from openclaw_ray.core.protocol.parts import CleanCheck, Outcome, Payload, Row
from openclaw_ray.core.protocol.permits import BackOff, LimitAsk, LimitDone
from openclaw_ray.core.protocol.thread_words import ChannelUp, Posted, ThreadBound, ThreadOver
from openclaw_ray.core.results import Completion, Receipt, Usage
from openclaw_ray.core.session_facts import ChildAsk

if TYPE_CHECKING:
    from openclaw_ray.core.policy.rules import Sender

__all__ = [
    "TAKEN",
    "Admit",
    "Answer",
    "Blocked",
    "Bye",
    "Consumed",
    "DeliverTo",
    "Event",
    "Got",
    "Hello",
    "Join",
    "MapDone",
    "Paused",
    "Progress",
    "Refused",
    "Resume",
    "Rows",
    "SendOver",
    "Settled",
    "Started",
    "Step",
    "StopAsk",
    "TakeSteered",
    "Took",
    "UsageAdded",
    "Verdict",
]


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
    """A turn has lasted 5 ms; ``elapsed`` seconds so far (PROTOCOL.md 3.4).

    ``heard``: its program is at work, with what the start carried; False while its agent is still being loaded.
    """

    run: str
    activation: str
    elapsed: float = 0.0
    heard: bool = True


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
        waits_for: ``message`` if the yield waits for one (SPEC.md B3).
        acknowledgment: what its program would have a user told meanwhile, for the watchers.
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
    waits_for: str = ""
    acknowledgment: str = ""


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
class Blocked:
    """A turn called a tool that its rules deny it; counted, nothing else. ``rule``: the step that decided."""

    run: str
    activation: str
    tool: str
    rule: str


@compact
@dataclass(frozen=True, slots=True)
class MapDone:
    """A map has ended: one summary row in the caller's transcript (PROTOCOL.md 4.6), none for an empty ``summary``.

    ``claim``: that of a map that has a name, which is free then.
    """

    receiver: str
    map_id: str
    summary: str
    claim: str = ""


@compact
@dataclass(frozen=True, slots=True)
class StopAsk:
    """Stop the subtree of a session, or of one run, under an id of the caller's.

    ``by`` is the session on whose behalf it is asked (its key), empty for the operator. ``scope``: ``tree`` (the
    session with all that waits for it, and everything below), ``session`` (messages that are in line behind its present
    run stay), ``run`` (its present run alone; what that has spawned goes on).
    """

    stop: str
    key: str
    run: str = ""
    by: str = ""
    scope: str = "tree"


@compact
@dataclass(frozen=True, slots=True)
class SendOver:
    """Who waited for the reply to its message ``send`` waits no more: its program has the reply (``heard``), or its
    time is over, and it is to be told later."""

    receiver: str
    send: str
    heard: bool


TAKEN = "taken"
"""Word of the `Verdict` on a `TakeSteered` that the turn has got; else ``refused``."""


@compact
@dataclass(frozen=True, slots=True)
class TakeSteered:
    """The turn asks for a message that it was told of (`steered`)."""

    run: str
    activation: str
    message: str


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
    | Blocked
    | MapDone
    | StopAsk
    | LimitAsk
    | LimitDone
    | BackOff
    | SendOver
    | TakeSteered
    | ChannelUp
    | ThreadBound
    | Posted
    | ThreadOver
)


@compact
@dataclass(frozen=True, slots=True)
class Admit:
    """Ask for a run (PROTOCOL.md 3.1). Ids are minted by the courier and checked by the registry.

    Attributes:
        run, session_key, session_id: fresh ids of the child; for route ``ask`` the key of an existing or main session.
        route: ``spawn`` (announced), ``map`` (a value for the caller), ``ask`` (the operator's message, which is told
            its end), ``send`` (one session's message to another) or ``say`` (a user's word in a conversation).
        requester: session key that hears of the end. ``activation``: that of its running turn, empty for clients.
        agent_id: as asked for; `None` means the requester's own.
        timeout: run timeout in seconds; `None` means the configured one, 0 none.
        transcripts: ``all``, ``failed`` or ``none``: whether the child keeps a transcript.
        lane: lane of its own (a map's), with ``lane_width``; empty means the rule's.
        label, task_name: what lists show; a label is one un-ended child's of its requester's.
        item: what it is to a map that has a name.
        cleanup: ``delete`` has the session archived once its end was heard of.
        ask: what is asked for beyond that.
        send: of a message: to whom and how.
        steers: the run or session that is to be interrupted, for route ``steer`` (`steering`); ``task`` is the message.
        sender: who wrote the message, as the operator vouches.
        conversation: of route ``say``: where it was said, by the id of the channel that the client serves.
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
    task_name: str | None = None
    item: MapItem | None = None
    cleanup: str = "keep"
    ask: ChildAsk | None = None
    send: SendAsk | None = None
    steers: str = ""
    sender: Sender | None = None
    conversation: str = ""


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
    start: tuple[int, Spec] | None = None
    """The actor that stepped was granted a run by its own step: (epoch, what to start), as `Start` would have it. Lost
    with a lost answer, as a call may be: the registry asks after it (PROTOCOL.md 3.4)."""
