"""Between a channel and the registry: what is to be done there, one after the other, on a thread of its own.

1. A message of the registry's may come again after its crash; what was done is done once, and said again.
2. A courier's thread never waits for a channel.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from openclaw_ray.channels.channel import BindWish, CannotBind, Channel
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.policy import Sender
from openclaw_ray.core.protocol.messages import (
    Admit,
    BindThread,
    ChannelUp,
    DownMessage,
    Post,
    Posted,
    ThreadBound,
    ThreadOver,
    Unbind,
)
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.thread_commands import command_of

if TYPE_CHECKING:
    from openclaw_ray.actors.courier_thread import CourierThread

__all__ = ["ChannelDesk"]

_log = logging.getLogger("openclaw_ray")
_REMEMBERED = 4_096
"""How many things that were done are known again; what comes again was not confirmed, and so is new."""


@dataclass(frozen=True, slots=True)
class _Word:
    """Something of this process's own to be said."""

    conversation: str
    text: str


class ChannelDesk:
    """One client's channel.

    Args:
        channel: whose calls are made here.
        courier: of this process. ``client``, ``root``: who it is to the registry.
    """

    def __init__(self, channel: Channel, courier: CourierThread, client: str, root: str) -> None:
        self.channel = channel
        self._courier = courier
        self._client = client
        self._root = root
        self._where = (channel.name, channel.account)
        self._ids = RandomIds()
        self._work: queue.SimpleQueue[DownMessage | _Word | None] = queue.SimpleQueue()
        self._bound: dict[str, ThreadBound] = {}
        self._posted: dict[str, None] = {}
        self._thread = threading.Thread(target=self._run, name="openclaw-channel", daemon=True)

    def open(self) -> None:
        """Serve the channel from now on; the client has joined."""
        self._courier.post(ChannelUp(self._client, *self._where, self.channel.binds))
        self._thread.start()
        self.channel.open(self)

    def close(self, timeout: float) -> None:
        """No more calls of the channel, after those that are due."""
        self._work.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    # ------------------------------------------------------------------ from users

    def say(
        self, conversation: str, text: str, sender: Sender | Mapping[str, Any] | None = None
    ) -> Future[Receipt]:
        """See `Desk.say`."""
        wrote = None if sender is None else Sender.of(sender)
        if wrote is not None and wrote.channel is None:
            wrote = replace(wrote, channel=self.channel.name)
        future: Future[Receipt] = Future()
        if not text.strip():
            future.set_result(Receipt("error", error="there is nothing in it"))
            return future
        admit = Admit(
            self._ids.run_id(),
            "",
            self._ids.session_id(),
            "say",
            self._root,
            text,
            sender=wrote,
            conversation=conversation,
        )
        if command_of(text) is not None:
            future.add_done_callback(partial(self._command_done, conversation))
        self._courier.admit([(admit, future)])
        return future

    def _command_done(self, conversation: str, done: Future[Receipt]) -> None:
        """Say in the conversation what became of a command."""
        if done.exception() is None:
            receipt = done.result()
            self._work.put(_Word(conversation, str(receipt.note if receipt.accepted else receipt.error)))

    def leave(self, conversation: str) -> None:
        """See `Desk.leave`."""
        self._courier.post(ThreadOver(*self._where, conversation))

    # ------------------------------------------------------------------ from the registry

    def hear(self, message: DownMessage) -> bool:
        """A downlink message; False if it is not for a channel (2)."""
        if not isinstance(message, BindThread | Post | Unbind):
            return False
        self._work.put(message)
        return True

    def _run(self) -> None:
        while (message := self._work.get()) is not None:
            match message:
                case BindThread():
                    self._courier.post(self._bind(message))
                case Post():
                    if message.run not in self._posted:
                        _remember(self._posted, message.run, None)
                        self._do(self.channel.send, message.conversation, message.text)
                    self._courier.post(Posted(message.thread, message.run))
                case _Word():
                    self._do(self.channel.send, message.conversation, message.text)
                case Unbind():
                    self._do(self.channel.unbind, message.conversation, message.why)
                    self._bound.pop(message.thread, None)
                    self._courier.post(ThreadOver(*self._where, message.conversation, message.thread))
        self._do(self.channel.close)

    def _bind(self, asked: BindThread) -> ThreadBound:
        done = self._bound.get(asked.thread)
        if done is not None:
            return done
        wish = BindWish(
            asked.session_key,
            asked.agent_id,
            asked.label,
            asked.task,
            asked.requester_key,
            asked.current or None,
        )
        conversation, error = "", ""
        try:
            conversation = self.channel.bind(wish)
            if not isinstance(conversation, str) or not conversation:
                conversation, error = "", f"channel {self._where[0]!r} gave {conversation!r} as a conversation's id"
        except CannotBind as cannot:
            error = str(cannot) or f"channel {self._where[0]!r} cannot bind a conversation"
        except Exception as raised:  # noqa: BLE001 - a channel is somebody else's code: what it raises is the answer
            _log.exception("channel %s: bind", self._where[0])
            error = f"channel {self._where[0]!r}: {type(raised).__name__}: {raised}"
        done = ThreadBound(asked.thread, *self._where, conversation, error)
        _remember(self._bound, asked.thread, done)
        return done

    def _do(self, call: Callable[..., Any], *args: Any) -> None:
        try:
            call(*args)
        except Exception:  # noqa: BLE001 - so is this
            _log.exception("channel %s: %s", self._where[0], getattr(call, "__name__", "call"))


def _remember(done: dict[str, Any], key: str, value: Any) -> None:
    done[key] = value
    while len(done) > _REMEMBERED:
        del done[next(iter(done))]
