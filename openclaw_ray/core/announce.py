"""What a finished child hands up, to whom, in which order and how often it is tried (SPEC.md F).

Status comes from the runtime, never from the child's text. The text handed up is the last thing that the
child said in its last turn. How it reads is in `openclaw_ray.core.announce_text`, whose names are found here
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from openclaw_ray.core.announce_text import (
    HEADING,
    NO_OUTPUT,
    AnnounceStatus,
    announce_status,
    completion_block,
    duration,
    freeze_text,
    reply_instruction,
    stats_line,
    status_label,
    token_count,
)
from openclaw_ray.core.keys import is_subagent
from openclaw_ray.core.tokens import Token, TokenContext, silence

__all__ = [
    "HEADING",
    "LADDER",
    "NO_OUTPUT",
    "AnnounceStatus",
    "Finding",
    "Handover",
    "RetryLadder",
    "Route",
    "Selection",
    "SessionLink",
    "announce_status",
    "completion_block",
    "duration",
    "findings_order",
    "freeze_text",
    "idempotency_key",
    "reply_instruction",
    "route",
    "select_result",
    "stats_line",
    "status_label",
    "token_count",
]

_SCANNED: Final = 100  # messages looked at, the newest (SPEC.md F3)
_TOOL_CALLS: Final = frozenset({"toolCall", "tool_use", "toolUse", "functionCall", "function_call"})


class Handover(StrEnum):
    """Whether a result is handed up."""

    DELIVER = "deliver"
    """The requester hears of it."""
    SUPPRESS = "suppress"
    """Nothing is told; the delivery record says ``not_required``."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is handed up.

    Attributes:
        status: from the runtime.
        status_label: readable status, one line.
        result: the text handed up, `NO_OUTPUT` if there is none.
        delivery: whether it is handed up at all.
        missing: True if the run succeeded without delivering any output.
        partial: what was visible of a run that did not end by itself; never an answer.
    """

    status: AnnounceStatus
    status_label: str
    result: str
    delivery: Handover
    missing: bool = False
    partial: str | None = None


# --------------------------------------------------------------------------- which text


def select_result(
    status: AnnounceStatus | str,
    messages: Sequence[Mapping[str, Any]],
    *,
    error: str | None = None,
    expects_completion: bool = True,
    killed: bool = False,
) -> Selection:
    """What a child that ended so, with this transcript, hands up (SPEC.md F1, F3).

    1. Of the newest 100 messages those after the last input count: a user's, or another session's.
    2. The last visible assistant text is the answer; a message that also calls tools is not one, and takes
    back
       what was said before it. Tool results and reasoning are never taken for an answer.
    3. A run that succeeded hands up its answer. Exactly ``ANNOUNCE_SKIP`` suppresses the announce. Exactly
       ``NO_REPLY`` settles nothing: the requester hears of a missing deliverable.
    4. A run that did not succeed hands up its status; what it had said is only ``partial``. One that timed
    out
       amid tool calls tells how many there were.
    5. A killed run, and one whose completion nobody expects, hands up nothing.

    Args:
        status: from the runtime.
        messages: transcript rows as OpenClaw writes them, oldest first.
        error: why it failed.
        expects_completion: ``expectsCompletionMessage`` of the spawn.
        killed: True if it was stopped by hand.
    """
    word = AnnounceStatus(status)
    said, calls = _last_said(messages)
    token = silence(said, TokenContext.ANNOUNCE).token
    answer = said if token is None else None
    quiet = killed or not expects_completion or (word is AnnounceStatus.OK and token is Token.ANNOUNCE_SKIP)
    succeeded = word is AnnounceStatus.OK
    result = answer if succeeded else None
    if word is AnnounceStatus.TIMEOUT and said is None and calls:
        result = f"{calls} tool call{'' if calls == 1 else 's'}, no visible output"
    return Selection(
        status=word,
        status_label=status_label(word, error),
        result=result or NO_OUTPUT,
        delivery=Handover.SUPPRESS if quiet else Handover.DELIVER,
        missing=succeeded and answer is None,
        partial=None if succeeded else answer,
    )


def _last_said(messages: Sequence[Mapping[str, Any]]) -> tuple[str | None, int]:
    """The last visible text and the number of tool calls after the last input."""
    said: str | None = None
    calls = 0
    for message in messages[-_SCANNED:]:
        if _is_input(message):
            said, calls = None, 0
        elif message.get("role") == "assistant":
            blocks = _blocks(message)
            called = sum(1 for block in blocks if block.get("type") in _TOOL_CALLS)
            calls += called
            texts = (block.get("text") for block in blocks if block.get("type") == "text")
            text = "".join(part for part in texts if isinstance(part, str)).strip()
            if called:
                said = None
            elif text:
                said = text
    return said, calls


def _is_input(message: Mapping[str, Any]) -> bool:
    provenance = message.get("provenance")
    foreign = isinstance(provenance, Mapping) and provenance.get("kind") == "inter_session"
    return foreign or message.get("role") == "user"


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)]


# --------------------------------------------------------------------------- in which order, how often


@dataclass(frozen=True, slots=True)
class Finding:
    """One ended run of a child. Times in any one unit; ``ended_at`` is `None` while it is not known."""

    run_id: str
    child_session_key: str
    created_at: float
    ended_at: float | None = None
    generation: int = 0


def findings_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as they are told: the newest run of each child session, by (created, ended, key) (SPEC.md F5,
    B3).

    Of runs that were created at the same time the higher generation is the newer one.
    """
    newest: dict[str, Finding] = {}
    for finding in findings:
        known = newest.get(finding.child_session_key)
        age = (finding.created_at, finding.generation)
        if known is None or age >= (known.created_at, known.generation):
            newest[finding.child_session_key] = finding
    return sorted(newest.values(), key=_told)


def _told(finding: Finding) -> tuple[float, float, str]:
    ended = float("inf") if finding.ended_at is None else finding.ended_at
    return finding.created_at, ended, finding.child_session_key


def idempotency_key(child_session_key: str, run_id: str) -> str:
    """The key under which a completion is delivered at most once, the same in each retry (SPEC.md F6)."""
    return f"announce:v1:{child_session_key}:{run_id}"


@dataclass(frozen=True, slots=True)
class RetryLadder:
    """Waits between attempts of one delivery, in seconds; one attempt more than waits (SPEC.md F6)."""

    waits: tuple[float, ...] = (5.0, 10.0, 20.0)

    def wait_after(self, failed: int) -> float | None:
        """Seconds until the next attempt after ``failed`` ones (1 or more) failed; `None` is giving up."""
        return self.waits[failed - 1] if 0 < failed <= len(self.waits) else None

    def times(self) -> tuple[float, ...]:
        """Seconds after the first attempt at which attempts are made if all before them fail."""
        at, moments = 0.0, [0.0]
        for wait in self.waits:
            at += wait
            moments.append(at)
        return tuple(moments)


LADDER: Final = RetryLadder()
"""5, 10, 20 seconds."""


# --------------------------------------------------------------------------- to whom


@dataclass(frozen=True, slots=True)
class SessionLink:
    """Whether a session is there to be told, and who asked for it."""

    exists: bool
    requester: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Whom a completion goes to.

    Attributes:
        target: session key, or `None` if nobody is left to tell.
        deliver: True if the target's reply goes on to the user's channel: it is a top-level session.
        fallback: True if the target is not the requester itself, which is gone.
    """

    target: str | None
    deliver: bool = False
    fallback: bool = False


def route(requester_key: str, link: Callable[[str], SessionLink | None]) -> Route:
    """The requester if it is there, else its requester, and so on (SPEC.md F5).

    Args:
        requester_key: a normalised key.
        link: looks a key up; `None` for one that is not known.
    """
    key: str | None = requester_key
    seen: set[str] = set()
    while key and key not in seen:
        seen.add(key)
        found = link(key)
        if found is None:
            break
        if found.exists:
            return Route(key, deliver=not is_subagent(key), fallback=key != requester_key)
        key = found.requester
    return Route(None)
