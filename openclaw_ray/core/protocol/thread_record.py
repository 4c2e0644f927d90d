"""The record of one conversation that belongs to a session, from the wish for it to its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from openclaw_ray.core.protocol.records import Record, _live, journaled
from openclaw_ray.core.protocol.up import Admit
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.thread_rules import Bindings, ThreadEnd

__all__ = ["Thread", "ThreadKind", "ThreadState", "home_thread"]


class ThreadState(StrEnum):
    """Where a binding stands."""

    BINDING = "binding"
    """Its child is not admitted yet; its channel was asked."""
    BOUND = "bound"
    """What users say there goes to the session, and what that answers comes back."""
    ENDING = "ending"
    """It is over, and its channel is to be told so."""
    OVER = "over"
    """Nothing more is to be done for it."""


class ThreadKind(StrEnum):
    """What a conversation is for its session."""

    SESSION = "session"
    """The child is a conversation: it lives as long as the binding, and its requester is not told of its end."""
    RUN = "run"
    """The child has one task, whose end is told to both."""
    HOME = "home"
    """A conversation that belongs to nobody else: the default agent's main session hears what is said, and answers."""


@journaled
@dataclass(slots=True)
class Thread(Record):
    """One conversation of a session.

    Attributes:
        id: of a spawn: its run's; else made of the conversation.
        channel, account: where the conversation is.
        session, agent: whose it is, or is to be.
        used: wall-clock seconds of the last word from either side; ``created``: of its beginning.
        conversation: the channel's id of it; empty while it is not bound.
        requester: who spawns. ``admit``, ``client``: what it asked, and in whose step, until that is decided.
        waiter: the downlink that the receipt is said on until it is got. ``receipt``: what was decided.
        current: the conversation that the requester's turn was part of.
        posts: (run, text) of what is still to be said there.
        binder: who has bound it by command, as `Sender.identity`; empty where nobody has, or the channel does not say.
        idle_hours, max_age_hours: set for it alone; `None` for what is configured.
    """

    id: str
    channel: str
    account: str
    session: str
    agent: str
    kind: ThreadKind
    created: float
    used: float
    state: ThreadState = ThreadState.BINDING
    conversation: str = ""
    requester: str = ""
    admit: Admit | None = None
    client: str = ""
    waiter: str = ""
    receipt: Receipt | None = None
    current: str = ""
    why: str = ""
    posts: tuple[tuple[str, str], ...] = ()
    binder: str = ""
    idle_hours: float | None = None
    max_age_hours: float | None = None
    # memory alone
    said: set[str] = _live(factory=set)
    """What was said of it to its channel, or to the waiter, in this incarnation; the downlinks repeat that."""

    @property
    def bound(self) -> bool:
        """What is said there goes to the session."""
        return self.state is ThreadState.BOUND

    @property
    def keeps(self) -> bool:
        """Its session is not archived by time while it is bound (SPEC.md H6)."""
        return self.bound and self.kind is ThreadKind.SESSION

    def lasting(self, bindings: Bindings) -> Bindings:
        """``bindings`` with what was set for it alone."""
        idle = bindings.idle_hours if self.idle_hours is None else self.idle_hours
        age = bindings.max_age_hours if self.max_age_hours is None else self.max_age_hours
        return replace(bindings, idle_hours=idle, max_age_hours=age)

    def say(self, run: str, text: str, now: float) -> None:
        """Have it said there, once for each run; the caller writes the record."""
        self.used = now
        if text and all(run != said for said, _ in self.posts):
            self.posts = (*self.posts, (run, text))

    def close(self, why: ThreadEnd) -> None:
        """It is over; its channel is still to be told."""
        self.state = ThreadState.ENDING
        self.why = why.value


def home_thread(channel: str, account: str, conversation: str, session: str, agent: str, now: float) -> Thread:
    """A conversation that is bound to nobody, for as long as ``session`` answers there."""
    return Thread(
        f"home:{channel}:{account}:{conversation}",
        channel,
        account,
        session,
        agent,
        ThreadKind.HOME,
        now,
        now,
        ThreadState.BOUND,
        conversation,
    )
