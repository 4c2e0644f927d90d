"""The courier: all talk of one process with the registry (PROTOCOL.md 1, 2). Pure: it says what to send, it is told
what came.

1. One step is in flight; what gathers meanwhile goes into the next: that is the batching. At most `MOST` events and
   `MOST_ADMITS` admits a step.
2. No answer, or an unavailable registry: the same step again, same seq. ``recovering``: the same.
3. Downlink messages come by answers, polls and notifies, in any order and more than once; each is handed on once.
   `Got` goes with the next step, or by itself after `ACK_AFTER` seconds.
4. A new incarnation numbers anew: the count starts again with it. Completions are handed on once by run id whatever the
   way they came.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from openclaw_ray.core.clock import Clock
from openclaw_ray.core.protocol.messages import Admit, Answer, Completed, DownMessage, Event, Got, Step, Verdict
from openclaw_ray.core.results import Receipt

__all__ = ["ACK_AFTER", "MOST", "MOST_ADMITS", "REMEMBER", "Courier"]

MOST = 256
"""Events in one step."""
MOST_ADMITS = 16
"""Admits in one step: each may start a session at once, so they, not the events, decide how long a step keeps the
registry from all others (DESIGN.md 14: 5 ms)."""
ACK_AFTER = 0.02
"""Seconds that a `Got` waits for a step to ride in."""
REMEMBER = 65_536
"""Completions remembered as handed on; a repeat is at most half a minute late (PROTOCOL.md 4.5)."""


@dataclass
class _Counter:
    """What has come on one downlink of one incarnation."""

    incarnation: int = 0
    upto: int = 0
    ahead: set[int] = field(default_factory=set)
    acked: int = 0

    def first_time(self, number: int) -> bool:
        """Note a number; False if it was there before."""
        if number <= self.upto or number in self.ahead:
            return False
        self.ahead.add(number)
        while self.upto + 1 in self.ahead:
            self.upto += 1
            self.ahead.discard(self.upto)
        return True


class Courier:
    """What one process owes and is owed; guarded by its shell's lock."""

    def __init__(self, client: str, clock: Clock) -> None:
        self.client = client
        self.clock = clock
        self.seq = 0
        self.incarnation = 0
        self.in_flight: Step | None = None
        self.stale = False
        self._events: deque[Event] = deque()
        self._admits: deque[tuple[Admit, Any]] = deque()
        self._sent_admits: list[Any] = []
        self._counters: dict[str, _Counter] = {}
        self._ack_at: float | None = None
        self._heard: OrderedDict[str, None] = OrderedDict()
        self._announced: list[str] = []

    # ------------------------------------------------------------------ up

    def post(self, event: Event) -> None:
        """Send an event with the next step."""
        self._events.append(event)

    def admit(self, admit: Admit, token: Any) -> None:
        """Ask for a run with the next step; `answered` gives ``token`` back with the receipt."""
        self._admits.append((admit, token))

    def drop_unsent(self, activation: str) -> list[Any]:
        """Take back admits of a stopped turn that no step has carried yet (PROTOCOL.md 6.4); gives their tokens."""
        dropped = [token for admit, token in self._admits if admit.activation == activation]
        self._admits = deque(x for x in self._admits if x[0].activation != activation)
        return dropped

    def poke(self) -> None:
        """Send a step even if nothing is to be said: by its answer, or by none, it is known how the registry is."""
        if self._ack_at is None:
            self._ack_at = self.clock.mono()

    @property
    def pending(self) -> bool:
        """True while something waits for the next step."""
        return bool(self._events or self._admits)

    def waiting_tokens(self, *, forget: bool) -> list[Any]:
        """Tokens of all admits without a receipt; ``forget`` drops those that no step has carried."""
        tokens = [*self._sent_admits, *(token for _, token in self._admits)]
        if forget:
            self._admits.clear()
        return tokens

    def next_step(self) -> Step | None:
        """The next step to send, `None` while one is in flight or nothing is to be said (1)."""
        if not self.idle() or self.stale:
            return None
        due = self._ack_at is not None and self._ack_at <= self.clock.mono()
        if not (self._events or self._admits or due):
            return None
        events: list[Event] = self._gots()
        while self._events and len(events) < MOST:
            events.append(self._events.popleft())
        admits: list[Admit] = []
        self._sent_admits = []
        # admits never overtake an event: they go only with the last of what was posted before them
        while not self._events and self._admits and len(admits) < MOST_ADMITS:
            admit, token = self._admits.popleft()
            admits.append(admit)
            self._sent_admits.append(token)
        self.seq += 1
        self.in_flight = Step(self.client, self.seq, tuple(events), tuple(admits))
        return self.in_flight

    def idle(self) -> bool:
        """True while no step is in flight (1)."""
        return self.in_flight is None

    @staticmethod
    def is_final(answer: Answer) -> bool:
        """False for an answer that means: the same step again (2)."""
        return answer.word not in ("recovering", "unavailable")

    def look(self) -> None:
        """Send a step although there is nothing to say: one who only waits hears by its answer if he was given up."""
        self._ack_at = self.clock.mono()

    def wait_until(self) -> float | None:
        """When `next_step` may have something without being woken, on the monotonic clock."""
        return self._ack_at if self.in_flight is None and not self.stale else None

    def _gots(self) -> list[Event]:
        gots: list[Event] = []
        runs, self._announced = tuple(self._announced), []
        for receiver, counter in self._counters.items():
            if counter.upto > counter.acked or (runs and not gots):
                gots.append(Got(receiver, counter.incarnation, counter.upto, runs))
                counter.acked = counter.upto
                runs = ()
        if runs:
            gots.append(Got("", self.incarnation, 0, runs))
        self._ack_at = None
        return gots

    # ------------------------------------------------------------------ answers

    def answered(
        self, answer: Answer
    ) -> tuple[tuple[Verdict, ...], list[tuple[Any, Receipt]], list[tuple[str, DownMessage]]] | None:
        """The answer to the step in flight: verdicts, receipts by token, new messages by receiver.

        `None` if the same step is to be sent again (2).
        """
        step = self.in_flight
        if step is None or answer.seq != step.seq:
            return (), [], []
        if not self.is_final(answer):
            return None
        if answer.word == "stale":
            self.stale = True
        self.in_flight = None
        self.incarnation = max(self.incarnation, answer.incarnation)
        receipts = list(zip(self._sent_admits, answer.receipts, strict=False))
        self._sent_admits = []
        messages: list[tuple[str, DownMessage]] = []
        for receiver, numbered in answer.down:
            messages += [(receiver, m) for m in self.down(receiver, answer.incarnation, numbered)]
        return answer.verdicts, receipts, messages

    # ------------------------------------------------------------------ down

    def cursor(self, receiver: str) -> tuple[int, int]:
        """(incarnation, highest number without a gap below it): what a poll asks for."""
        counter = self._counters.get(receiver)
        return (counter.incarnation, counter.upto) if counter else (0, 0)

    def down(
        self, receiver: str, incarnation: int, numbered: Iterable[tuple[int, DownMessage]]
    ) -> list[DownMessage]:
        """Messages that came, by whatever way; gives those that are new (3, 4)."""
        counter = self._counters.setdefault(receiver, _Counter(incarnation))
        if incarnation > counter.incarnation:
            counter = self._counters[receiver] = _Counter(incarnation)
        elif incarnation < counter.incarnation:
            return []
        fresh = []
        seen_again = False
        for number, message in numbered:
            if not counter.first_time(number):
                seen_again = True
                continue
            if isinstance(message, Completed) and not self.first_heard(message.run):
                continue
            fresh.append(message)
        if seen_again:
            counter.acked = min(counter.acked, counter.upto - 1)
        if counter.upto > counter.acked and self._ack_at is None:
            self._ack_at = self.clock.mono() + ACK_AFTER
        return fresh

    def announced(self, run: str) -> bool:
        """An announce called on this actor; True if it is new. It is confirmed by run id."""
        self._announced.append(run)
        if self._ack_at is None:
            self._ack_at = self.clock.mono() + ACK_AFTER
        return self.first_heard(run)

    def first_heard(self, run: str) -> bool:
        """Note that a completion is here; False if it was before."""
        if run in self._heard:
            return False
        self._heard[run] = None
        while len(self._heard) > REMEMBER:
            self._heard.popitem(last=False)
        return True

    def close_receiver(self, receiver: str) -> None:
        """A turn has ended: nothing more comes on its downlink."""
        self._counters.pop(receiver, None)


