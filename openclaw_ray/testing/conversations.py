"""`Conversations`: a channel in memory, with which a test, or a program, plays the users (SPEC.md K 9)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from openclaw_ray.agents._asking import accepted
from openclaw_ray.channels import BindWish, CannotBind, Desk
from openclaw_ray.core.policy import Sender
from openclaw_ray.core.results import Receipt

__all__ = ["Conversation", "Conversations", "Said"]

_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class Said:
    """One line of a conversation. ``by``: ``user``, or ``agent`` for what a session answered."""

    by: str
    text: str


class Conversation:
    """One conversation, as its users see it.

    Attributes:
        id: what the runtime knows it by.
        title: of a thread, the label of the session that it was made for, or its agent.
        parent: the conversation that it is a thread of, or `None`.
        bound_to: key of the session that it was bound to, while it is; `None` before and after.
        ended: why the binding is over: ``idle``, ``max-age``, ``unbound``, ``deleted``, …; `None` while it is not.
    """

    def __init__(self, channel: Conversations, id: str, title: str, parent: Conversation | None = None) -> None:
        self.id = id
        self.title = title
        self.parent = parent
        self.bound_to: str | None = None
        self.ended: str | None = None
        self._channel = channel
        self._lines: list[Said] = []
        self._read = 0

    @property
    def lines(self) -> tuple[Said, ...]:
        """All that was said, in order."""
        with self._channel._news:
            return tuple(self._lines)

    @property
    def replies(self) -> tuple[str, ...]:
        """What sessions have said."""
        return tuple(line.text for line in self.lines if line.by == "agent")

    def say(
        self, text: str, timeout: float = _WITHIN, *, sender: Sender | Mapping[str, Any] | None = None
    ) -> Receipt:
        """Say something, and wait until it is on its way to a session; `reply` waits for the answer.

        Args:
            text: what is said, or a command as ``/focus helper``.
            timeout: seconds.
            sender: who says it, as `Desk.say` has it.

        Raises:
            ValueError: ``sender`` does not say who it is.
            SpawnError, SpawnForbidden: nobody hears it. `InboxFull`: too much waits already.
            TimeoutError: there is no word from the runtime within ``timeout`` seconds.
        """
        desk = self._channel._desk_or_raise()
        wrote = None if sender is None else Sender.of(sender)
        with self._channel._news:
            self._lines.append(Said("user", text))
        sent: Future[Receipt] = desk.say(self.id, text, wrote)
        return accepted(sent.result(timeout))

    def reply(self, timeout: float = _WITHIN) -> str:
        """The next thing that a session says here and that `reply` has not given yet; waited for.

        Raises:
            TimeoutError: nothing came within ``timeout`` seconds.
        """
        with self._channel._news:
            if not self._channel._news.wait_for(lambda: len(self._spoken()) > self._read, timeout):
                raise TimeoutError(f"nothing more was said in {self.title!r} within {timeout:g} s")
            self._read += 1
            return self._spoken()[self._read - 1]

    def ask(
        self, text: str, timeout: float = _WITHIN, *, sender: Sender | Mapping[str, Any] | None = None
    ) -> str:
        """`say`, then `reply`."""
        self.say(text, timeout, sender=sender)
        return self.reply(timeout)

    def leave(self) -> None:
        """Users are done with it: its binding is dropped, and the session lives on."""
        self._channel._desk_or_raise().leave(self.id)

    def _spoken(self) -> list[str]:
        return [line.text for line in self._lines if line.by == "agent"]


class Conversations:
    """A channel in memory, for `LocalRuntime`, `run_turn` and ``Runtime.start(channel=…)``.

    Example::

        import openclaw_ray as oc
        from openclaw_ray.testing import Conversations, LocalRuntime

        @oc.agent
        def main(turn: oc.SyncTurn) -> str:
            if turn.session.depth == 0:
                turn.spawn(task="be of help", label="helper", thread=True)
                return "I have called somebody"
            turn.state["heard"] = turn.state.get("heard", 0) + 1
            return f"{turn.session.label} has heard {turn.state['heard']}: {turn.text}"

        chat = Conversations()
        with LocalRuntime(agents=[main], channel=chat) as rt:
            desk = chat.open_conversation("desk")
            assert desk.ask("I need help") == "I have called somebody"
            thread = chat.thread("helper")
            assert thread.reply().startswith("helper has heard 1")
            assert thread.ask("are you there?") == "helper has heard 2: are you there?"

    Args:
        name, account: as in ``channels.<name>.accounts.<account>`` of the configuration.
        placement: ``child`` makes a thread for each session; ``current`` binds the conversation that the spawning turn
            answers in, and only that.
        binds: False for a channel that cannot bind any.
    """

    def __init__(
        self,
        name: str = "memory",
        account: str = "",
        *,
        placement: Literal["child", "current"] = "child",
        binds: bool = True,
    ) -> None:
        self.name = name
        self.account = account
        self.binds = binds
        self.placement = placement
        self.refuses: str | None = None
        """Set it, and no conversation is bound: that is the reason."""
        self._news = threading.Condition()
        self._all: dict[str, Conversation] = {}
        self._desk: Desk | None = None

    # ------------------------------------------------------------------ for users

    def open_conversation(self, title: str) -> Conversation:
        """A conversation of users that is no thread; nobody's, so the default agent's main session hears it."""
        with self._news:
            return self._made(title, None)

    def threads(self) -> tuple[Conversation, ...]:
        """The threads that were made for sessions, in the order of their making."""
        with self._news:
            return tuple(one for one in self._all.values() if one.ended is not None or one.bound_to is not None)

    def thread(self, title: str, timeout: float = _WITHIN) -> Conversation:
        """The newest conversation that was bound for a session of this label, or agent; waited for.

        Raises:
            TimeoutError: there is none within ``timeout`` seconds.
        """
        with self._news:
            if not self._news.wait_for(lambda: self._titled(title), timeout):
                raise TimeoutError(f"no thread {title!r} within {timeout:g} s")
            return self._titled(title)[-1]

    # ------------------------------------------------------------------ for the runtime

    def open(self, desk: Desk) -> None:
        """See `Channel.open`."""
        self._desk = desk

    def close(self) -> None:
        """See `Channel.close`."""
        with self._news:
            self._desk = None
            self._news.notify_all()

    def bind(self, wish: BindWish) -> str:
        """See `Channel.bind`."""
        with self._news:
            if self.refuses is not None:
                raise CannotBind(self.refuses)
            current = self._all.get(wish.current or "")
            mine = next((one for one in self._all.values() if one.bound_to == wish.session_key), None)
            if mine is None:
                if self.placement == "child":
                    mine = self._made(wish.label or wish.agent_id, current)
                elif current is None or current.bound_to is not None:
                    raise CannotBind("there is no conversation here that is free to be bound")
                else:
                    mine = current
            mine.bound_to, mine.ended = wish.session_key, None
            self._news.notify_all()
            return mine.id

    def unbind(self, conversation: str, why: str) -> None:
        """See `Channel.unbind`."""
        with self._news:
            one = self._all.get(conversation)
            if one is not None and one.bound_to is not None:
                one.bound_to, one.ended = None, why
            self._news.notify_all()

    def send(self, conversation: str, text: str) -> None:
        """See `Channel.send`."""
        with self._news:
            self._all[conversation]._lines.append(Said("agent", text))
            self._news.notify_all()

    # ------------------------------------------------------------------ inside

    def _made(self, title: str, parent: Conversation | None) -> Conversation:
        one = Conversation(self, f"{self.name}-{len(self._all) + 1}", title, parent)
        self._all[one.id] = one
        return one

    def _titled(self, title: str) -> list[Conversation]:
        return [one for one in self._all.values() if one.title == title and one.bound_to is not None]

    def _desk_or_raise(self) -> Desk:
        desk = self._desk
        if desk is None:
            raise RuntimeError("no runtime serves this channel: give it to one as channel=…, while that is open")
        return desk
