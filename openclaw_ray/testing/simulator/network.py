"""Calls between processes, with the habits of Ray's and worse ones.

1. Calls of one (sender, receiver, concurrency group) arrive in order; others overtake each other as they like. A
   `Habits.hostile` network reorders within one, too, and delivers copies.
2. A call runs although its caller has died since, unless it went down with it.
3. An answer may be lost: the caller sees "unavailable" and cannot know whether the call ran.
4. A call to a dead session process fails as dead, one to a named process that restarts as unavailable; one-way calls
   just vanish.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, TypeVar

from openclaw_ray.core.protocol.hubstate import HubBatch
from openclaw_ray.testing.simulator.process import Process
from openclaw_ray.testing.simulator.world import World

__all__ = ["Habits", "Later", "Lost", "Meddling", "Network"]

P = ParamSpec("P")
T = TypeVar("T")

_WITH_ITS_SENDER = 0.004
"""Seconds before its sender's death in which a sent call may still go down with it."""


class Lost(StrEnum):
    """Why there is no answer."""

    UNAVAILABLE = "unavailable"
    """Nobody knows whether the call ran."""
    DIED = "died"
    """The receiver is dead for good."""


class Later:
    """What a handler returns that will answer later."""

    def __init__(self) -> None:
        self._reply: Callable[[Any], None] | None = None

    def bind(self, reply: Callable[[Any], None]) -> None:
        """Where the answer goes."""
        self._reply = reply

    def answer(self, value: object) -> None:
        """Answer now; a second time changes nothing."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply(value)


@dataclass(frozen=True, slots=True)
class Habits:
    """How a network behaves.

    Attributes:
        slow: share of calls that take up to 0.3 s. ``stuck``: share that takes up to 5 s.
        lost_answers: share of answers that are lost.
        hostile: reorder within one sender, receiver and group.
        copies: share of calls that arrive twice.
    """

    slow: float = 0.05
    stuck: float = 0.0
    lost_answers: float = 0.0
    hostile: bool = False
    copies: float = 0.0


@dataclass(slots=True)
class Meddling:
    """What a directed schedule does to one call: the ``nth`` of its kind, to or from these processes.

    Attributes:
        kind: name of the receiver's handler without ``on_`` (``start``, ``stop``, ``step``, ``notify`` …).
        nth: which one of those that fit, from 1; 0 means each.
        to, sender: names of processes, or their beginnings; empty for any.
        delay: seconds that it takes instead.
        drop: it never arrives. ``lose_answer``: it runs, but its answer is lost.
        copies: how many more times it arrives, ``copy_delay`` seconds after the first.
    """

    kind: str
    nth: int = 1
    to: str = ""
    sender: str = ""
    delay: float | None = None
    drop: bool = False
    lose_answer: bool = False
    copies: int = 0
    copy_delay: float = 0.0
    seen: int = 0

    def takes(self, kind: str, sender: str, to: str) -> bool:
        """Whether this call is the one."""
        if kind != self.kind or not to.startswith(self.to) or not sender.startswith(self.sender):
            return False
        self.seen += 1
        return self.nth in (0, self.seen)


class Network:
    """All calls between the processes of one schedule."""

    def __init__(self, world: World, habits: Habits, meddling: list[Meddling] | None = None) -> None:
        self.world = world
        self.habits = habits
        self.meddling = meddling or []
        self.processes: dict[str, Process] = {}
        self.calls = 0
        self._last: dict[tuple[str, str, str], float] = {}

    def calm(self) -> None:
        """From now on nothing is lost, late or doubled."""
        self.habits = Habits(slow=0.0)

    def find(self, name: str) -> Process | None:
        """The live process of that name."""
        found = self.processes.get(name)
        return found if found is not None and found.alive else None

    def tell(
        self,
        sender: Process,
        to: str,
        group: str,
        method: Callable[Concatenate[Any, P], object],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """A one-way call."""
        assert not kwargs
        self._send(sender, to, group, method, args, None)

    def ask(
        self,
        sender: Process,
        to: str,
        group: str,
        reply: Callable[[T | Lost], None],
        method: Callable[Concatenate[Any, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """A call with an answer: ``reply`` gets it, or why there is none, if the sender still lives then."""
        assert not kwargs
        self._send(sender, to, group, method, args, reply)

    def delay(self) -> float:
        """How long the next call takes."""
        r = self.world.random.random
        habits, dice = self.habits, r()
        if dice < habits.stuck:
            return 5.0 * r()
        if dice < habits.stuck + habits.slow:
            return 0.3 * r()
        return 0.0003 + 0.003 * r()

    # ------------------------------------------------------------------ on the way

    def _send(
        self,
        sender: Process,
        to: str,
        group: str,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        reply: Callable[[Any], None] | None,
    ) -> None:
        self.calls += 1
        delay, lose, copies, copy_delay = self.delay(), False, 0, 0.0
        if self.meddling:
            kind = method.__name__.removeprefix("on_")
            for meddling in self.meddling:
                if meddling.takes(kind, sender.name, to):
                    self.world.note(f"meddling with {kind} {sender.name} → {to}")
                    if meddling.drop:
                        return
                    delay = delay if meddling.delay is None else meddling.delay
                    lose, copies, copy_delay = meddling.lose_answer, meddling.copies, meddling.copy_delay
        elif self.habits.copies and self.world.random.random() < self.habits.copies:
            copies, copy_delay = 1, self.delay() * 4
        when = self.world.now + delay
        if not self.habits.hostile:
            key = (sender.name, to, group)
            when = max(when, self._last.get(key, 0.0))
            self._last[key] = when
        self.world.at(when, self._arrive, sender, to, method, args, reply, self.world.now, lose)
        if copies and reply is not None and group != "step":
            reply = None  # a step is answered each time; of other calls the caller knows one answer only
        for i in range(copies):
            late = when + copy_delay * (i + 1)
            self.world.at(late, self._arrive, sender, to, method, args, reply, self.world.now, lose)

    def _arrive(
        self,
        sender: Process,
        to: str,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        reply: Callable[[Any], None] | None,
        sent_at: float,
        lose: bool,
    ) -> None:
        world = self.world
        if not sender.alive and sender.died_at - sent_at < _WITH_ITS_SENDER and world.random.random() < 0.5:
            return
        process = self.processes.get(to)

        def lost() -> None:
            if reply is not None:
                self._answer(sender, reply, Lost.DIED if to.startswith("session") else Lost.UNAVAILABLE)

        if process is None:
            lost()
        else:
            process.receive(self._run, process, sender, method, args, reply, lose, lost=lost)

    def _run(
        self,
        process: Process,
        sender: Process,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        reply: Callable[[Any], None] | None,
        lose: bool,
    ) -> None:
        if self.world.log is not None:
            shown = ", ".join(_short(a) for a in args)
            self.world.note(f"{sender.name} → {process.name}: {method.__name__.removeprefix('on_')}({shown})")
        value = method(process, *args)
        if reply is None:
            return
        if isinstance(value, Later):
            value.bind(lambda late: self._answer_or_not(process, sender, reply, late, lose))
        else:
            self._answer_or_not(process, sender, reply, value, lose)

    def _answer_or_not(
        self, process: Process, sender: Process, reply: Callable[[Any], None], value: Any, lose: bool
    ) -> None:
        dice = self.habits.lost_answers
        if not process.alive or lose or (dice and self.world.random.random() < dice):
            value = Lost.UNAVAILABLE
        self._answer(sender, reply, value)

    def _answer(self, sender: Process, reply: Callable[[Any], None], value: Any) -> None:
        self.world.after(self.delay(), sender.receive, reply, value)


def _short(value: object) -> str:
    if isinstance(value, HubBatch):
        rows = [
            f"{row.session_id}: {getattr(row, 'text', 'archive')}"
            for row in (pickle.loads(data) for _, _, data in value.rows)
        ]
        return f"messages {dict(value.messages)}, rows {rows}, begins {list(value.begins)}"
    text = str(value)
    return text if len(text) <= 400 else text[:399] + "…"
