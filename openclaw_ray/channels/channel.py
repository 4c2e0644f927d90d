"""What a channel is to a runtime: conversations that are bound, spoken in and left (SPEC.md K 9, R124).

Give one to ``Runtime.start(channel=…)``. It lives in that process, and so do its calls: none is made from an agent's
turn. `openclaw_ray.testing.Conversations` is one in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from openclaw_ray.core.policy import Sender
from openclaw_ray.core.results import Receipt

__all__ = ["BindWish", "CannotBind", "Channel", "Desk"]


class CannotBind(Exception):
    """Raised by a channel that has no conversation to give; the text is told to who spawned."""


@dataclass(frozen=True, slots=True)
class BindWish:
    """The child that a conversation is wanted for.

    Attributes:
        session_key, agent_id, label, task: what it will be. It is not there yet, and may still be refused.
        requester_key: the session that spawns it.
        current: the conversation that the spawning turn answers in; `None` if none.
    """

    session_key: str
    agent_id: str
    label: str | None
    task: str
    requester_key: str
    current: str | None


class Desk(Protocol):
    """The runtime's side of a channel: what users do goes here, from any thread."""

    def say(
        self, conversation: str, text: str, sender: Sender | Mapping[str, Any] | None = None
    ) -> Future[Receipt]:
        """A user has said something. To the session that the conversation is bound to, else to the main session of the
        default agent. The receipt says whether it is heard; the answer comes by `Channel.send`.

        ``/focus``, ``/unfocus``, ``/agents``, ``/session idle`` and ``/session max-age`` are no messages: they show or
        change whose the conversation is (SPEC.md B8). Their answer comes in the same way.

        Args:
            conversation: the channel's id of it.
            text: what was said.
            sender: who said it, as the channel knows: `turn.sender` of the turn that answers, and what
                ``tools.toolsBySender`` goes by (SPEC.md E6). Without ``channel`` it is of this channel. `None` where
                the channel cannot tell; then nobody is kept from changing what others have bound.

        Raises:
            ValueError: ``sender`` does not say who it is.
        """

    def leave(self, conversation: str) -> None:
        """Users are done with it: the session that it is bound to lives on without."""


class Channel(Protocol):
    """A place where users talk. Its methods are called one at a time, on a thread of the runtime's; each may take its
    time. What it raises is logged, and counts as done.

    Attributes:
        name: what ``channels.<name>`` in the configuration is about.
        account: which account there; empty for the only one.
        binds: it can make conversations for sessions, or bind those there are.
    """

    @property
    def name(self) -> str: ...

    @property
    def account(self) -> str: ...

    @property
    def binds(self) -> bool: ...

    def open(self, desk: Desk) -> None:
        """The runtime is there."""

    def close(self) -> None:
        """The runtime has ended."""

    def bind(self, wish: BindWish) -> str:
        """A conversation for a session: a new one below the current one, or the current one itself, as the channel
        does it. Gives its id, which names it for ever. Asked again for the same session, it is the same one.

        Raises:
            CannotBind: there is none.
        """

    def unbind(self, conversation: str, why: str) -> None:
        """It is the session's no more; ``why`` is a word of `openclaw_ray.core.thread_rules.ThreadEnd`."""

    def send(self, conversation: str, text: str) -> None:
        """Say this there."""
