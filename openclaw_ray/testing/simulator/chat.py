"""The channel that a simulated client serves: conversations of users, bound, spoken in and unbound by messages.

It follows the contract of `channels.desk`: what comes again is done once and said again; what is to be done is done in
the order in which it came. Conversation 0 is the users' own; the others were made for sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.client import ClientProcess

__all__ = ["Chat", "Word"]

_WHERE = ("chat", "")
_TAKES = 0.02
"""Most seconds that the channel takes to bind a conversation."""
_REFUSES = 0.1
"""Share of the conversations that it cannot bind."""


class Word:
    """One thing that a user has said, until it is known what became of it."""

    def __init__(self, run: str, conversation: str, command: bool) -> None:
        self.run = run
        self.conversation = conversation
        self.command = command
        self.receipt: Receipt | None = None


class Chat:
    """The channel of one client."""

    def __init__(self, host: ClientProcess) -> None:
        self.host = host
        self.watch = host.cluster.monitor.threads
        self.conversations = ["desk"]
        self._bound: dict[str, ThreadBound] = {}
        self._posted: set[str] = set()

    def serve(self) -> None:
        """Say that it is there."""
        self.host.post(ChannelUp(self.host.name, *_WHERE))

    # ------------------------------------------------------------------ from users

    def say(self, number: int, text: str, *, command: bool = False) -> Word:
        """A user's word in a conversation; the caller pumps the courier."""
        world = self.host.world
        conversation = self.conversations[number % len(self.conversations)]
        word = Word(world.mint("w"), conversation, command)
        admit = Admit(word.run, "", world.mint("s"), "say", self.host.root, text, conversation=conversation)
        self.host.admit(admit, (self, word))
        return word

    def answered(self, word: Word, receipt: Receipt) -> None:
        """What became of it."""
        word.receipt = receipt
        if receipt.accepted and not word.command:
            self.watch.accepted(word.run, receipt)
        self.host.script.poke()

    def leave(self, number: int) -> None:
        """Users are done with a conversation."""
        self.host.post(ThreadOver(*_WHERE, self.conversations[number % len(self.conversations)]))

    # ------------------------------------------------------------------ from the registry

    def hear(self, message: DownMessage) -> bool:
        """A downlink message; False if it is not for a channel."""
        match message:
            case BindThread():
                self.host.after(_TAKES * self.host.world.random.random(), self._bind, message)
            case Post():
                if message.run not in self._posted:
                    self._posted.add(message.run)
                    self.watch.said(self.host.name, message)
                self.host.post(Posted(message.thread, message.run))
            case Unbind():
                self.watch.unbound(self.host.name, message)
                self._bound.pop(message.thread, None)
                self.host.post(ThreadOver(*_WHERE, message.conversation, message.thread))
            case _:
                return False
        return True

    def _bind(self, asked: BindThread) -> None:
        done = self._bound.get(asked.thread)
        if done is None:
            conversation, error = "", "it cannot"
            if self.host.world.random.random() >= _REFUSES:
                conversation, error = f"thread-{len(self.conversations)}", ""
                self.conversations.append(conversation)
            done = self._bound[asked.thread] = ThreadBound(asked.thread, *_WHERE, conversation, error)
        self.host.post(done)
