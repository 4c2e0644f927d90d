"""One message to another session, from what was asked for to what became of it: the steps of ``sessions_send`` and of
``turn.send`` (SPEC.md B2).

1. The message is admitted, or refused with the rule; nothing is left behind then.
2. A notice, a message that nobody waits for, and one that a waiting run goes on with (``waitFor``) end here: of the
   last the answer is that run's, and goes to who spawned it.
3. Else the turn waits for the reply without its slot. When the time is over it is ``accepted``: the reply is told
   later, once, with the next turn.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents.port import SpawnRequest, TurnPort
from openclaw_ray.agents.within import Within
from openclaw_ray.core.message import MessageMode, SendAsk
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.sent import Sent, accepted_message, noticed

if TYPE_CHECKING:
    from openclaw_ray.core.policy.rules import Sender

__all__ = ["SEND_SECONDS", "SendRequest", "send_request", "send_steps"]

SEND_SECONDS = 30.0
"""Seconds that a send waits for the reply if it does not say."""


@dataclass(frozen=True, slots=True)
class SendRequest:
    """One message: what is asked of the registry, and for how many ``seconds`` its sender waits."""

    spawn: SpawnRequest
    seconds: float

    @property
    def notice(self) -> bool:
        """It starts no turn."""
        return self.spawn.send is not None and self.spawn.send.mode == MessageMode.NOTIFY


def send_request(
    to: str | None,
    message: str,
    *,
    label: str | None = None,
    agent_id: str | None = None,
    timeout_seconds: float = SEND_SECONDS,
    mode: MessageMode | str | None = None,
    sender: Sender | Mapping[str, Any] | None = None,
) -> SendRequest:
    """A message, checked as far as that can be without the registry.

    Raises:
        ValueError: nobody is named, there is no text, the time is none, there is no such mode, or the sender does not
            say who it is.
    """
    if not isinstance(message, str) or not message.strip():
        raise ValueError("a message has a text")
    if not any((to, label, agent_id)):
        raise ValueError("to whom? give a session key, a session id, a label, or an agent id")
    seconds = timeout_seconds
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or math.isnan(seconds) or seconds < 0:
        raise ValueError(f"timeout_seconds is a number of seconds, 0 for not to wait, not {timeout_seconds!r}")
    word = "" if mode is None else MessageMode(mode).value
    wait = seconds > 0 and word != MessageMode.NOTIFY
    ask = SendAsk(to or "", label or "", agent_id or "", wait, word)
    wrote = None
    if sender is not None:
        from openclaw_ray.core.policy.rules import Sender  # turns have none

        wrote = Sender.of(sender)
    return SendRequest(SpawnRequest(message, expects=False, route="send", send=ask, sender=wrote), seconds)


def send_steps(port: TurnPort, request: SendRequest) -> Generator[Future[Any] | Within, Any, Sent | Receipt]:
    """What became of it; a receipt if it was refused."""
    receipt: Receipt = yield port.spawn([request.spawn])[0]
    if not receipt.accepted:
        return receipt
    if request.notice:
        return noticed(receipt)
    if request.seconds <= 0 or receipt.told:
        return accepted_message(receipt)
    reply, heard = port.reply(receipt.run_id), False
    try:
        if not reply.done():
            yield Within((reply,), request.seconds, frees_slot=True)
    finally:  # also if the program gives the wait up
        heard = port.leave_send(receipt.run_id)
    return reply.result() if heard else accepted_message(receipt)
