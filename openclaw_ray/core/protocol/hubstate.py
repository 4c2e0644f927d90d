"""What the hub holds: messages for clients that poll, their leases, the newest events (PROTOCOL.md 2, 7.4).

1. The registry pushes a `HubBatch` under its incarnation. One of an older incarnation is dropped; the first
   of a newer one clears what is held, for its numbers begin anew and what is unacknowledged comes again.
2. Messages are numbered per client. Pushed again, they are known by their number and kept once; one whose first way,
   the answer to a step, was lost comes later than those above it.
3. A client takes what is above its cursor, its highest number seen. The answer to a poll may be lost, so what
   it carries is kept until a later poll of that client comes with a higher cursor. A cursor of another
   incarnation confirms nothing.
4. Nothing is ever dropped for lack of room. Above `CLIENT_BOUND` messages the statistics name the client, and
   the registry is to push no more for it until they no longer do.
5. A poll is a client's sign of life. The hub only tells who is silent; the registry decides what that means.
6. Watchers of events that fell behind `EVENT_BOUND`, or that begin before what this hub has heard, read the
   journal.

No clock, no I/O: the caller gives the time and does the waiting. Not safe for threads; the hub is one event
loop.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from openclaw_ray.core.compact import compact

__all__ = ["CLIENT_BOUND", "EVENT_BOUND", "TAKE_BOUND", "HubBatch", "HubState", "HubStatistics", "Pushed"]

CLIENT_BOUND = 10_000
"""Messages held for one client above which it is reported as a cause to hold back."""
EVENT_BOUND = 10_000
"""Newest events held in memory."""
TAKE_BOUND = 512
"""Messages in one answer."""


@compact
@dataclass(frozen=True, slots=True)
class HubBatch:
    """One push of the registry to the hub.

    Attributes:
        messages: per client, (number, `DownMessage`), rising.
        rows: (row number in the journal, agent id, pickled `Row`), rising; for the transcripts.
        begins: (session id, activation number) of activations that are new. They hold for what comes *after*
            this batch: its rows are appended first, as those of an earlier activation may be among them. When
            all that is unacknowledged is pushed again in several batches, the begins belong into the last.
        events: (seq, pickled `Event`), rising; they are passed on as they are.
    """

    messages: Mapping[str, Sequence[tuple[int, Any]]] = field(default_factory=dict)
    rows: Sequence[tuple[int, str, bytes]] = ()
    begins: Sequence[tuple[str, int]] = ()
    events: Sequence[tuple[int, Any]] = ()


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push changed.

    Attributes:
        accepted: False if it was of an older incarnation: nothing of it counts, its rows neither.
        anew: True if it was the first of its incarnation.
        clients: those who have something new to take.
        events: how many events were new.
    """

    accepted: bool
    anew: bool = False
    clients: tuple[str, ...] = ()
    events: int = 0


@dataclass(frozen=True, slots=True)
class HubStatistics:
    """A hub's state.

    Attributes:
        incarnation: of the registry it heard last; 0 before the first push.
        clients: those with messages held. ``leases``: those watched.
        queued: messages held. ``largest``: those of the client with the most.
        over: clients with more than `CLIENT_BOUND`: hold back.
        pushes, stale: pushes that counted, and those of older incarnations.
        repeated: messages and events that came again.
        events: events held, from ``first_event`` to ``last_event`` (0 if there are none).
    """

    incarnation: int
    clients: int
    leases: int
    queued: int
    largest: int
    over: tuple[str, ...]
    pushes: int
    stale: int
    repeated: int
    events: int
    first_event: int
    last_event: int


class _Queue:
    """One client's messages, rising by number; ``last`` is the highest that was ever in it."""

    __slots__ = ("confirmed", "messages")

    def __init__(self) -> None:
        self.messages: deque[tuple[int, Any]] = deque()
        self.confirmed = 0

    def add(self, number: int, message: Any) -> bool:
        """Keep a message once, in the order of the numbers; False if it is known already."""
        if number <= self.confirmed:
            return False
        if not self.messages or number > self.messages[-1][0]:
            self.messages.append((number, message))
            return True
        # what went with an answer that was lost comes late, below numbers that are here already
        place = bisect_left(self.messages, number, key=lambda numbered: numbered[0])
        if self.messages[place][0] == number:
            return False
        self.messages.insert(place, (number, message))
        return True


class HubState:
    """The rules of the hub; see the module's text.

    Args:
        events: how many of the newest events to hold.
    """

    def __init__(self, *, events: int = EVENT_BOUND) -> None:
        self._most_events = events
        self._queues: dict[str, _Queue] = {}
        self._heard: dict[str, float] = {}
        self._events: deque[tuple[int, Any]] = deque()
        self._floor: int | None = None  # events above this seq are all held; None before the first
        self._incarnation = self._pushes = self._stale = self._repeated = 0

    @property
    def incarnation(self) -> int:
        """Of the registry whose numbers are held; 0 before the first push."""
        return self._incarnation

    # ------------------------------------------------------------------ from the registry

    def push(self, incarnation: int, batch: HubBatch) -> Pushed:
        """Take in one push. The caller appends the rows, if it was accepted."""
        if incarnation < self._incarnation:
            self._stale += 1
            return Pushed(accepted=False)
        anew = incarnation > self._incarnation
        if anew:
            self._incarnation = incarnation
            self._queues.clear()
            self._events.clear()
            self._floor = None
        self._pushes += 1
        woken = tuple(
            client for client, messages in batch.messages.items() if self._enqueue(client, messages)
        )
        return Pushed(True, anew, woken, self._add_events(batch.events))

    def forget(self, client: str) -> None:
        """The registry has done with this client: its messages and its lease go."""
        self._queues.pop(client, None)
        self._heard.pop(client, None)

    def _enqueue(self, client: str, messages: Iterable[tuple[int, Any]]) -> bool:
        queue = self._queues.get(client)
        if queue is None:
            queue = self._queues[client] = _Queue()
        added = 0
        for number, message in messages:
            if queue.add(number, message):
                added += 1
            else:
                self._repeated += 1
        return added > 0

    def _add_events(self, events: Iterable[tuple[int, Any]]) -> int:
        added = 0
        for seq, event in events:
            if self._floor is None:
                self._floor = seq - 1
            elif seq <= (self._events[-1][0] if self._events else self._floor):
                self._repeated += 1
                continue
            self._events.append((seq, event))
            added += 1
            if len(self._events) > self._most_events:
                self._floor = self._events.popleft()[0]
        return added

    # ------------------------------------------------------------------ from the clients

    def take(self, client: str, incarnation: int, cursor: int) -> list[tuple[int, Any]]:
        """The next messages above ``cursor``, `TAKE_BOUND` at most, rising; those up to it are confirmed.

        Args:
            cursor: the highest number that the client has seen.
            incarnation: of the registry that the cursor's numbers are from. If it is older than what is held,
                the cursor counts as 0; if it is newer, there is nothing to take until that registry pushes.
        """
        queue = self._queues.get(client)
        if queue is None or incarnation > self._incarnation:
            return []
        if incarnation == self._incarnation:
            queue.confirmed = max(queue.confirmed, cursor)
            while queue.messages and queue.messages[0][0] <= cursor:
                queue.messages.popleft()
        return list(islice(queue.messages, TAKE_BOUND))

    def touch(self, client: str, now: float) -> None:
        """A sign of life: its lease runs from ``now`` (seconds of any steady clock)."""
        self._heard[client] = max(now, self._heard.get(client, now))

    def expect(self, client: str, now: float) -> None:
        """Watch a client that has not polled this hub yet: its lease begins, unless it runs already.

        Without it a client that dies while the hub is away would never be missed.
        """
        self._heard.setdefault(client, now)

    def silent(self, now: float, lease: float) -> list[str]:
        """Clients unheard of for more than ``lease`` seconds, longest silent first; told until `forget`."""
        gone = [(heard, client) for client, heard in self._heard.items() if now - heard > lease]
        return [client for _, client in sorted(gone)]

    # ------------------------------------------------------------------ events

    def events_after(self, seq: int, limit: int | None = None) -> list[Any] | None:
        """Events above ``seq``, rising; `None` if some of them may be in the journal only.

        Args:
            limit: how many at most; all by default.
        """
        if self._floor is None or seq < self._floor:
            return None
        if not self._events or seq >= self._events[-1][0]:
            return []
        start = bisect_right(self._events, seq, key=lambda numbered: numbered[0])
        stop = len(self._events) if limit is None else start + limit
        return [event for _, event in islice(self._events, start, stop)]

    def statistics(self) -> HubStatistics:
        """A snapshot."""
        sizes = {client: len(queue.messages) for client, queue in self._queues.items() if queue.messages}
        return HubStatistics(
            incarnation=self._incarnation,
            clients=len(sizes),
            leases=len(self._heard),
            queued=sum(sizes.values()),
            largest=max(sizes.values(), default=0),
            over=tuple(client for client, size in sizes.items() if size > CLIENT_BOUND),
            pushes=self._pushes,
            stale=self._stale,
            repeated=self._repeated,
            events=len(self._events),
            first_event=self._events[0][0] if self._events else 0,
            last_event=self._events[-1][0] if self._events else 0,
        )
