"""What became of a message (SPEC.md B2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import Receipt, Result, camel_dict

__all__ = ["SendStatus", "Sent", "accepted_message", "replied"]


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


@dataclass(frozen=True, slots=True)
class Sent:
    """An accepted message, and its reply if there is one yet.

    Attributes:
        status: the word; it never says that a message was lost, as none is.
        run_id: the run that handles it; `Runtime.result` with `receipt` has its outcome, then or later.
        session_key: who it was sent to.
        reply: the text of the reply.
        result: the whole outcome, once it is there.
        error: why there is no reply.
    """

    status: SendStatus
    run_id: str
    session_key: str
    reply: str | None = None
    result: Result[Any] | None = None
    error: str | None = None

    @property
    def receipt(self) -> Receipt:
        """For `Runtime.result`."""
        return Receipt("accepted", self.run_id, self.session_key)

    def to_json(self) -> dict[str, Any]:
        """JSON form (``runId``, ``sessionKey``, ``reply``, ``delivery``)."""
        pending = self.status is SendStatus.ACCEPTED
        return camel_dict(
            {
                "status": self.status.value,
                "run_id": self.run_id,
                "session_key": self.session_key,
                "reply": self.reply,
                "error": self.error,
                "target_disposition": "queued" if pending else None,
                "delivery": {"status": "pending"} if pending else None,
            }
        )


_STATUS = {ResultStatus.OK: SendStatus.OK, ResultStatus.TIMEOUT: SendStatus.TIMEOUT}


def accepted_message(receipt: Receipt) -> Sent:
    """It is accepted, and nothing more is known yet."""
    return Sent(SendStatus.ACCEPTED, receipt.run_id, receipt.session_key)


def replied(receipt: Receipt, result: Result[Any]) -> Sent:
    """The run that handled it has ended so."""
    status = _STATUS.get(result.status, SendStatus.ERROR)
    if status is SendStatus.OK and not (result.text or "").strip():
        status = SendStatus.NO_REPLY
    error = result.error.message if result.error is not None else None
    return Sent(status, receipt.run_id, receipt.session_key, result.text, result, error)
