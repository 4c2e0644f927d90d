"""What a channel's process and the registry say to each other of conversations (`threads`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from openclaw_ray.core.compact import compact
from openclaw_ray.core.results import Receipt

__all__ = ["BINDING", "Admitted", "BindThread", "ChannelUp", "Post", "Posted", "ThreadBound", "ThreadOver", "Unbind"]

BINDING: Final = "binding"
"""Status of a receipt that is still open: its child is being bound. Programs never see it."""


@compact
@dataclass(frozen=True, slots=True)
class ChannelUp:
    """Up: this client serves a channel from now on. ``binds``: it can bind conversations."""

    client: str
    channel: str
    account: str = ""
    binds: bool = True


@compact
@dataclass(frozen=True, slots=True)
class ThreadBound:
    """Up: what became of a `BindThread`: a conversation, or why there is none."""

    thread: str
    channel: str
    account: str = ""
    conversation: str = ""
    error: str = ""


@compact
@dataclass(frozen=True, slots=True)
class Posted:
    """Up: what was to be said in a conversation was, or cannot be."""

    thread: str
    run: str


@compact
@dataclass(frozen=True, slots=True)
class ThreadOver:
    """Up: the conversation is not the session's any more: its users have dropped it, or, with the ``thread`` that it
    named, an `Unbind` was done."""

    channel: str
    account: str
    conversation: str
    thread: str = ""


@compact
@dataclass(frozen=True, slots=True)
class BindThread:
    """Down: make or bind a conversation for a child that is to be; said until it is confirmed.

    Attributes:
        thread: names the binding.
        session_key, agent_id, label, task: the child.
        requester_key: who spawns it.
        current: the conversation that the requester's turn is part of; empty for none.
    """

    thread: str
    session_key: str
    agent_id: str
    requester_key: str
    task: str = ""
    label: str | None = None
    current: str = ""


@compact
@dataclass(frozen=True, slots=True)
class Post:
    """Down: say this in the conversation; ``run`` is the one that it is the end of."""

    thread: str
    conversation: str
    session_key: str
    run: str
    text: str


@compact
@dataclass(frozen=True, slots=True)
class Unbind:
    """Down: the conversation is not the session's any more. ``why``: a word of `ThreadEnd`."""

    thread: str
    conversation: str
    session_key: str
    why: str


@compact
@dataclass(frozen=True, slots=True)
class Admitted:
    """Down, to who spawned: the receipt that was still open while its child was being bound."""

    run: str
    receipt: Receipt
