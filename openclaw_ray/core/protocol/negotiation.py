"""The ping-pong after a message: whose turn it is next, and when it is over (SPEC.md B2; DESIGN.md 6). Pure.

1. The target's first reply is what the sender asked for. If it is none (empty, a token, a failure), that is the end.
2. Turn 1 is the requester's, turn 2 the target's, and so on: each is a run of that session, and gets the other's last
   text with a prompt that says who talks, which turn of how many it is, and how to stop.
3. It ends with a reply that is empty or nothing but a control token, with a turn that did not succeed, with the limit,
   or with the bound of the chain; each by its own name.
4. If there was a turn, the target is asked for one last text, the announce; ``ANNOUNCE_SKIP``, an empty text and a
   failure say nothing. It is no turn of the ping-pong.
5. A stop of either side ends it at once, as does whatever ends one of the two sessions for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.tokens import TokenContext, silence

__all__ = ["Action", "Move", "Phase", "Said", "Why", "announce_prompt", "heard_text", "next_move", "reply_prompt"]

_QUOTED = 2_000  # characters of what was said before that a prompt repeats


class Phase(StrEnum):
    """Where a negotiation stands."""

    REPLY = "reply"
    """The target has the first message."""
    TURNS = "turns"
    """The two take turns."""
    ANNOUNCE = "announce"
    """The target is asked for its last text."""
    OVER = "over"
    """Nothing more will be said."""


class Why(StrEnum):
    """Why it ended; a control token ends it by its own name in lower case."""

    LIMIT = "limit reached"
    """``maxPingPongTurns`` turns were taken."""
    CHAIN = "chain bound"
    """The chain that it belongs to has no more hops."""
    EMPTY = "empty"
    """A reply said nothing."""
    FAILED = "failed"
    """A turn did not succeed, or one side is not there any more."""
    STOPPED = "stopped"
    """One side was stopped."""
    ONE_WAY = "one way"
    """There is no ping-pong between these two."""
    STEERED = "steered"
    """The turn that ran has taken the message: there is no reply to it."""


class Action(StrEnum):
    """What comes next."""

    REQUESTER = "requester"
    """A turn of the requester's."""
    TARGET = "target"
    """A turn of the target's."""
    ANNOUNCE = "announce"
    """The target's last text."""
    OVER = "over"
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a turn ended, and what it said."""

    state: RunState
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """What comes next, and why nothing more of the ping-pong does, if so."""

    action: Action
    why: str | None = None


def next_move(phase: Phase, turns: int, limit: int, chain_left: int, said: Said) -> Move:
    """What follows from the end of a turn.

    Args:
        phase: in which it was.
        turns: turns of replies taken, that one included.
        limit: ``maxPingPongTurns`` for these two.
        chain_left: hops that the chain has left.
        said: what came of the turn.
    """
    if phase in (Phase.ANNOUNCE, Phase.OVER):
        return Move(Action.OVER)
    why = _silent(said)
    if why is None:
        if turns >= limit:
            why = Why.LIMIT
        elif chain_left <= 0:
            why = Why.CHAIN
        else:
            return Move(Action.REQUESTER if turns % 2 == 0 else Action.TARGET)
    ends = turns == 0 or why in (Why.FAILED, Why.STOPPED)
    return Move(Action.OVER if ends else Action.ANNOUNCE, why)


def _silent(said: Said) -> str | None:
    if said.state is RunState.CANCELLED:
        return Why.STOPPED
    if said.state is not RunState.SUCCEEDED:
        return Why.FAILED
    if not (said.text or "").strip():
        return Why.EMPTY
    token = silence(said.text, TokenContext.A2A).token
    return None if token is None else token.value.lower()


def heard_text(said: Said) -> str | None:
    """The announce, if it is one (4)."""
    if said.state is not RunState.SUCCEEDED or not (said.text or "").strip():
        return None
    exact = silence(said.text, TokenContext.ANNOUNCE).silent or silence(said.text, TokenContext.A2A).silent
    return None if exact else said.text


def reply_prompt(own: str, other: str, turn: int, most: int) -> str:
    """What the one whose turn it is is told (2)."""
    return (
        f"You are {own}. This message is from the session {other}, not from a user. It is turn {turn} of at most "
        f"{most} in which the two of you answer each other; what you answer goes to it. "
        "To end the exchange, answer exactly REPLY_SKIP."
    )


def announce_prompt(own: str, other: str, message: str, first: str | None, latest: str | None) -> str:
    """What the target is told in the end (4)."""
    return (
        f"You are {own}. Your exchange with the session {other} is over.\n"
        f"It had asked: {message[:_QUOTED]}\nYou answered first: {(first or '(nothing)')[:_QUOTED]}\n"
        f"The latest word was: {(latest or '(nothing)')[:_QUOTED]}\n"
        "Say in one message what is to be made known of it. If nothing is, answer exactly ANNOUNCE_SKIP."
    )
