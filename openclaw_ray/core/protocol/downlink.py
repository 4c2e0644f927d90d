"""Down: what the registry says later, and what a turn starts with (PROTOCOL.md 2, 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_ray.core.compact import compact
from openclaw_ray.core.message import MessageSource, News
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.parts import Payload
from openclaw_ray.core.protocol.permits import Permit
from openclaw_ray.core.protocol.thread_words import Admitted, BindThread, Post, Unbind
from openclaw_ray.core.results import Completion, StopReport
from openclaw_ray.core.sent import Sent
from openclaw_ray.core.session_facts import SessionFacts

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import AttachmentLimits
    from openclaw_ray.core.policy.rules import Sender
    from openclaw_ray.core.thread_rules import Bindings

__all__ = [
    "Bound",
    "Cancel",
    "Completed",
    "DownMessage",
    "Replied",
    "Resumed",
    "Spec",
    "Steered",
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


@compact
@dataclass(frozen=True, slots=True)
class Replied:
    """What became of a message whose sender waits; said until it is confirmed by `SendOver`."""

    send: str
    sent: Sent


@compact
@dataclass(frozen=True, slots=True)
class Steered:
    """A message that the running turn may take (`steered`): the run ``message`` that waits behind it."""

    message: str
    activation: str
    text: str
    source: MessageSource | None = None


DownMessage: TypeAlias = (
    Bound
    | Completed
    | Resumed
    | Cancel
    | Stopped
    | Warn
    | Permit
    | Replied
    | Steered
    | Admitted
    | BindThread
    | Post
    | Unbind
)


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
        source: where the message that it starts with came from, if from another session.
        news: what the session is to hear besides: how its own messages ended, notices to it.
        told: the messages that a run which waited for one is started with, oldest first; ``text`` is the newest.
        depth_cap: a session at this depth spawns nothing.
        attachments: bounds of what its spawns may hand on as files; `None` where that is not enabled.
        sender: who wrote ``text``, if that was told.
        bindings: thread bindings that hold for its spawns; `None` where no channel could bind a conversation.
        conversation: the one that its answer is said in; empty for none.
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
    source: MessageSource | None = None
    news: tuple[News, ...] = ()
    told: tuple[Told, ...] = ()
    depth_cap: int = 0
    attachments: AttachmentLimits | None = None
    sender: Sender | None = None
    bindings: Bindings | None = None
    conversation: str = ""
