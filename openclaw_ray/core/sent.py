"""What became of a message (SPEC.md B2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from openclaw_ray.core.compact import compact
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import Receipt, Result, camel_dict

__all__ = ["SendStatus", "Sent", "accepted_message", "noticed", "replied"]


class SendStatus(StrEnum):
    """The word for it. Source: SPEC.md B2."""

    OK = "ok"
    """A reply came within the wait."""
    NO_REPLY = "no_reply"
    """The turn ended well and said nothing."""
    ACCEPTED = "accepted"
    """It is in the inbox, or being worked on; the wait is over, the run is not."""
    TIMEOUT = "timeout"
    """The run itself came to its deadline."""
    ERROR = "error"
    """The run failed, was stopped, or nobody knows its outcome."""
    FORBIDDEN = "forbidden"
    """A rule refused it: visibility, agent-to-agent, the sandbox, or the bound of its chain."""
    QUEUED = "queued"
    """A notice: it is told with the target's next turn, and starts none."""


@compact
@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was accepted, and its reply if there is one yet.

    Attributes:
        status: the word; it never says that a message was lost, as none is.
        run_id: the run that handles it; `Runtime.result` with `receipt` has its outcome, then or later.
        session_key: who it was sent to.
        reply: the text of the first reply.
        result: the whole outcome, once it is there; of the operator's messages alone.
        error: why there is no reply.
        turns: turns of replies that the two sessions have taken after it.
        ended: why no more of them: ``limit reached``, ``chain bound``, ``reply_skip`` (or another token, as it is
            written in lower case), ``empty``, ``failed``, ``stopped``, ``one way``, ``steered``; `None` while it goes
            on.
        latest: the last text of the ping-pong.
        announce: what the target says in the end, if anything.
        pending: more of it is told later: the reply, or the end of the ping-pong.
        steered: the turn that ran has taken it; what that says is its own run's end, and no reply.
    """

    status: SendStatus
    run_id: str
    session_key: str
    reply: str | None = None
    result: Result[Any] | None = None
    error: str | None = None
    turns: int = 0
    ended: str | None = None
    latest: str | None = None
    announce: str | None = None
    pending: bool = False
    steered: bool = False

    @property
    def receipt(self) -> Receipt:
        """For `Runtime.result`."""
        return Receipt("accepted", self.run_id, self.session_key)

    def to_json(self) -> dict[str, Any]:
        """JSON form (``runId``, ``sessionKey``, ``reply``, ``delivery``)."""
        if self.status is SendStatus.QUEUED:
            notice = {"notification_id": self.run_id, "durability": "process", "run_started": False}
            return camel_dict({"status": "queued", "session_key": self.session_key, **notice})
        accepted = self.status is SendStatus.ACCEPTED
        later = self.pending or (accepted and not self.steered)
        told = {"status": "pending" if later else "skipped", "mode": "announce"}
        return camel_dict(
            {
                "status": self.status.value,
                "run_id": self.run_id,
                "session_key": self.session_key,
                "reply": self.reply,
                "message": "the turn ended without saying anything" if self.status is SendStatus.NO_REPLY else None,
                "error": self.error,
                "sent_before_error": True if self.status is SendStatus.TIMEOUT else None,
                "target_disposition": ("steered" if self.steered else "queued") if accepted else None,
                "delivery": told if self.status in (SendStatus.ACCEPTED, SendStatus.OK) else None,
                "turns": self.turns if self.ended is not None else None,
                "ended": self.ended,
                "latest": self.latest,
                "announce": self.announce,
            }
        )


_STATUS = {ResultStatus.OK: SendStatus.OK, ResultStatus.TIMEOUT: SendStatus.TIMEOUT}


def accepted_message(receipt: Receipt) -> Sent:
    """It is accepted, and nothing more is known yet."""
    return Sent(SendStatus.ACCEPTED, receipt.run_id, receipt.session_key, pending=True)


def noticed(receipt: Receipt) -> Sent:
    """A notice is there for the target's next turn."""
    return Sent(SendStatus.QUEUED, receipt.run_id, receipt.session_key)


def replied(receipt: Receipt, result: Result[Any]) -> Sent:
    """The run that handled it has ended so."""
    status = _STATUS.get(result.status, SendStatus.ERROR)
    if status is SendStatus.OK and not (result.text or "").strip():
        status = SendStatus.NO_REPLY
    error = result.error.message if result.error is not None else None
    return Sent(status, receipt.run_id, receipt.session_key, result.text, result, error)
