"""Messages of a client: to any session, in its own name or in a session's (SPEC.md B2)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from typing import Any

from openclaw_ray.agents._asking import accepted
from openclaw_ray.agents.sending import SEND_SECONDS, SendRequest, send_request
from openclaw_ray.core.errors import ProtocolRefused
from openclaw_ray.core.keys import main_key, normalise_agent_id, normalise_key
from openclaw_ray.core.message import MessageMode
from openclaw_ray.core.policy import Sender
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.sent import Sent, accepted_message, noticed
from openclaw_ray.runtime.client import TurnClient
from openclaw_ray.runtime.requests import Requests

__all__ = ["Sending"]


class Sending(Requests):
    """The talking part of a runtime."""

    def send(
        self,
        to: str | None,
        message: str,
        timeout_seconds: float = SEND_SECONDS,
        *,
        label: str | None = None,
        agent_id: str | None = None,
        mode: MessageMode | str | None = None,
        requester: str | None = None,
        sender: Sender | Mapping[str, Any] | None = None,
    ) -> Sent:
        """Send a message to a session, and wait for the reply. It is the target's from then on: it goes on when this
        client leaves.

        A busy session takes it after the turn that runs; those of one sender in their order, each once. A sub-agent
        that has ended is activated again, with its transcript and state; one whose run waits for a message goes on with
        it (``waitFor``): that run's answer is its requester's, so there is no reply to wait for.

        Args:
            to: agent id (its main session, made if need be), session key, or session id.
            message: the text of a turn of kind ``message``.
            timeout_seconds: how long to wait. 0 does not wait at all. What was accepted is handled either way;
                ``rt.result(sent.receipt)`` has the reply later.
            label: of the session, instead of ``to``. ``agent_id``: with a label, whose session; alone, as ``to``.
            mode: ``notify`` starts no turn: the target's next one is told. ``steer`` is for the turn that runs, if its
                program takes it. See `MessageMode`.
            requester: session that it is from, if not this client: that session's rules hold, and the two of them go
                on by ``maxPingPongTurns``; then the wait is for the end of all of it.
            sender: who wrote the message, if it came in from somewhere; see `Runtime.ask`. A session's message has
                none, nor has a notice.

        Returns:
            ``ok`` with the reply, ``accepted`` if it has not come yet, ``queued`` for a notice, or how it ended
            otherwise. `Sent.turns` and `Sent.ended` tell of the turns after the reply.

        Raises:
            InboxFull: ``ray.inbox.max`` messages wait there already; this one was not stored.
            SpawnForbidden: the requester may not use that session, or there can be no sender.
            SpawnError: no such agent or session.
            ValueError: an argument cannot be as it is.
        """
        request = send_request(
            to,
            message,
            label=label,
            agent_id=agent_id,
            timeout_seconds=timeout_seconds,
            mode=mode,
            sender=sender,
        )
        receipt = accepted(self._sending(request, requester).result())
        if request.notice:
            return noticed(receipt)
        if request.seconds <= 0 or receipt.told:
            return accepted_message(receipt)
        sends = self._client.requester.sends
        reply, heard = sends.reply(receipt.run_id), False
        try:
            with contextlib.suppress(FutureTimeout):
                reply.result(request.seconds)
        finally:
            heard = sends.leave(receipt.run_id)
        return self._with_result(reply.result()) if heard else accepted_message(receipt)

    def _leave_unheard(self, asked: Future[Receipt]) -> None:
        """Nobody waits for this message's reply any more."""
        if asked.exception() is None and asked.result().accepted:
            self._client.requester.sends.leave(asked.result().run_id)

    def _with_result(self, sent: Sent) -> Sent:
        """With the whole outcome of the run that handled it."""
        if sent.steered:
            return sent
        ended = self._query("ended", sent.run_id, *self._bound)
        return sent if ended is None else replace(sent, result=self._client.requester.read(ended).result)

    def _sending(self, request: SendRequest, requester: str | None) -> Future[Receipt]:
        """The receipt to come of one message; ``requester`` is the session that it is from, `None` for this client.

        Raises:
            ProtocolRefused: a session's own runtime sends for that session alone.
        """
        self._open()
        asker = self._client.requester
        if requester is not None:
            agent = normalise_agent_id(requester)
            key = main_key(agent) if agent is not None else normalise_key(requester)
            if key != asker.key:
                if isinstance(self._client, TurnClient):
                    raise ProtocolRefused("requester", f"{asker.key} sends for itself alone, not for {key}")
                sends = asker.sends
                asker = type(asker)(self._client.courier, key, self._client.id, "", key.split(":")[1])
                asker.sends = sends  # the reply comes to this client
        return asker.spawn([request.spawn], key="")[0]
