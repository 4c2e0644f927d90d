"""The record of one message between sessions and of the ping-pong after it; it lives until all is said and heard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openclaw_ray.core.message import MessageSource, News
from openclaw_ray.core.protocol.negotiation import Phase, announce_prompt, reply_prompt
from openclaw_ray.core.protocol.records import Record, journaled
from openclaw_ray.core.sent import SendStatus, Sent

if TYPE_CHECKING:
    from openclaw_ray.core.policy.rules import Sender

__all__ = ["Exchange"]


@journaled
@dataclass(slots=True)
class Exchange(Record):
    """One message and what follows from it.

    Attributes:
        id: that of the run that its first message was.
        chain, hops: of its first message.
        requester, target: session keys.
        limit: turns of replies that these two may take.
        sender_run: the run that sent it; empty if the operator did, for the requester.
        waiter: the activation (or client) that waits for the reply now; empty for none.
        whole: its waiter waits for the end of all of it, not for the first reply.
        told: its waiter was told.
        heard: the waiter's program has the reply.
        hearer: session key that hears of the end; empty when nobody does.
        run: the run that has the turn now.
        who: senders behind the run that sent it; what the requester does of it is still for them.
        at: (channel, account, conversation) that the turn which sent it answers in; empty for none.
    """

    id: str
    chain: str
    hops: int
    requester: str
    target: str
    message: str
    limit: int
    created: float
    sender_run: str = ""
    waiter: str = ""
    whole: bool = False
    told: bool = False
    heard: bool = False
    hearer: str = ""
    run: str = ""
    phase: Phase = Phase.REPLY
    turns: int = 0
    status: SendStatus = SendStatus.ACCEPTED
    first: str | None = None
    latest: str | None = None
    error: str | None = None
    why: str | None = None
    announce: str | None = None
    unstuck: bool = False
    """Its waiter was told not to wait any more, before there was a reply."""
    one_way: bool = False
    """There is no ping-pong between these two."""
    notice: bool = False
    """It is a notice: nothing but news for its target."""
    who: tuple[Sender, ...] = ()
    steer: bool = False
    """The turn that runs may take its first message."""
    steered: bool = False
    """It has."""
    at: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Nothing more will be said."""
        return self.phase is Phase.OVER

    def source(self) -> MessageSource:
        """What the one whose turn it is knows of the message."""
        if self.phase is Phase.ANNOUNCE:
            prompt = announce_prompt(self.target, self.requester, self.message, self.first, self.latest)
            return self._source(self.requester, "announce", prompt)
        if self.phase is Phase.TURNS:
            own, other = (self.requester, self.target) if self.turns % 2 else (self.target, self.requester)
            return self._source(other, "reply", reply_prompt(own, other, self.turns, self.limit))
        return self._source(self.requester, "message", "")

    def _source(self, other: str, step: str, prompt: str) -> MessageSource:
        return MessageSource(other, self.id, self.turns, self.limit, self.hops + self.turns, step, prompt)

    def sent(self) -> Sent:
        """How it stands, as its sender hears it."""
        taken = self.turns - (self.phase is Phase.TURNS)
        return Sent(
            self.status,
            self.id,
            self.target,
            self.first,
            None,
            self.error,
            taken,
            self.why,
            self.latest if taken else None,
            self.announce,
            not self.over,
            self.steered,
        )

    def news(self) -> News:
        """What its hearer is told with its next turn."""
        if self.notice:
            return News(self.id, self._source(self.requester, "message", ""), self.message)
        text = self.announce or self.latest or self.first or self.error or ""
        return News(self.id, self._source(self.target, "announce", ""), text, self.sent())
