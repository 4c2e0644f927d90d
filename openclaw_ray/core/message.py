"""Messages between sessions: how one is asked for, what its receiver knows of it, and its place in a causal chain.

Every message is an envelope of one *chain*: all that follows from one first message, with a count of *hops*. A message
that a turn sends, and a turn of a ping-pong, are one hop further than the message that the turn was started by. No
chain goes on beyond `HOPS_MOST`, whatever its agents answer (DESIGN.md 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from openclaw_ray.core.compact import compact
from openclaw_ray.core.sent import Sent

__all__ = ["HOPS_MOST", "MessageMode", "MessageSource", "News", "SendAsk", "SourceKind", "Talk", "heir"]

HOPS_MOST = 6
"""Hops of a chain: a message and the five turns of replies that there can be after it (SPEC.md A3)."""


class MessageMode(StrEnum):
    """What becomes of a message at its target. Source: SPEC.md B2."""

    NOTIFY = "notify"
    """No turn: the target's next one, whatever starts it, is told of it."""
    STEER = "steer"
    """Into the turn that runs, at the point where its program takes it (``turn.messages()``); else as ``followup``."""
    FOLLOWUP = "followup"
    """A turn of its own after the one that runs."""
    RESUME = "resume"
    """The same, and the target must have done something before: it is not made for it."""


class SourceKind(StrEnum):
    """Where a message came from."""

    INTER_SESSION = "inter_session"
    """Another session, or the operator for it."""


@compact
@dataclass(frozen=True, slots=True)
class MessageSource:
    """Where the message that a turn was started by came from: it is no user's text (SPEC.md B2).

    Attributes:
        session_key: of the session that said it.
        exchange: id of the negotiation that it belongs to: that of the run that its first message was.
        turn: number of the turn of replies, 0 for the first message.
        most: turns of replies that there can be.
        hops: of the chain.
        step: ``message``, ``reply`` (a turn of the ping-pong) or ``announce`` (its last word).
        prompt: what a model is told of its part: who talks, turn k of how many, how to stop.
        tool: what it was said with.
    """

    session_key: str
    exchange: str
    turn: int = 0
    most: int = 0
    hops: int = 0
    step: str = "message"
    prompt: str = ""
    tool: str = "sessions_send"

    @property
    def provenance(self) -> dict[str, str]:
        """As the transcript's row has it."""
        return {
            "kind": SourceKind.INTER_SESSION.value,
            "sourceSessionKey": self.session_key,
            "sourceTool": self.tool,
        }


@compact
@dataclass(frozen=True, slots=True)
class News:
    """What a session hears with its next turn, once: how a message of its own ended, or a notice to it.

    Attributes:
        exchange: id.
        source: whose word it is.
        text: the reply, or the notice.
        sent: how the message ended; `None` for a notice.
    """

    exchange: str
    source: MessageSource
    text: str
    sent: Sent | None = None


@compact
@dataclass(frozen=True, slots=True)
class SendAsk:
    """One message, as asked for (SPEC.md B2).

    Attributes:
        target: session key, its alias, or session id; empty if it is named otherwise.
        label: of the target.
        agent_id: with a label, whose session; alone, the agent whose main session is meant.
        wait: whether the sender waits for the reply.
        mode: see `MessageMode`; empty is ``followup``.
    """

    target: str = ""
    label: str = ""
    agent_id: str = ""
    wait: bool = False
    mode: str = ""


@compact
@dataclass(frozen=True, slots=True)
class Talk:
    """A run's place among messages.

    Attributes:
        exchange: whose turn it is, empty for none.
        chain, hops: of the envelope that started it.
        news: exchanges whose news its start carried, until its program has had them.
    """

    exchange: str = ""
    chain: str = ""
    hops: int = 0
    news: tuple[str, ...] = ()


def heir(talk: Talk | None) -> Talk | None:
    """What a run that another one makes has of its chain: a child's messages are of it, too."""
    return Talk("", talk.chain, talk.hops) if talk is not None and talk.chain else None
