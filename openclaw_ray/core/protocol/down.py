"""Down: what the registry says later, numbered per receiver and repeated until got (PROTOCOL.md 2).

1. A message gets the receiver's next number and stays until `Got` covers it.
2. It rides in the answer to that process's own step if there is one under way; else it goes by ``notify`` to a session
   actor, or by the hub's push to a client that polls.
3. One ``notify`` is in flight per receiver; what gathers meanwhile goes with the next. No `Got` within `RESEND`
   seconds: all that is unconfirmed goes again (to a polling client only what an answer carried: the hub keeps the
   rest for it).
4. Numbers are of this incarnation. A new one starts at 1 and says anew what follows from state.
"""

from __future__ import annotations

from openclaw_ray.core.protocol.messages import DownMessage, Got, Notify
from openclaw_ray.core.protocol.records import Receiver
from openclaw_ray.core.protocol.state import State

__all__ = ["RESEND", "Down"]

RESEND = 1.0
"""Seconds without `Got` after which a session actor is told again."""


class Down:
    """The numbered downlinks of one registry incarnation."""

    def __init__(self, state: State) -> None:
        self.s = state
        self._fresh: dict[str, None] = {}

    def open(self, receiver: str, client: str, actor: str = "") -> Receiver:
        """Begin a downlink: of a client (``receiver`` is its id) or of one activation on ``actor``."""
        found = self.s.receivers.get(receiver)
        if found is None:
            found = self.s.receivers[receiver] = Receiver(receiver, client, actor)
        return found

    def close(self, receiver: str) -> None:
        """End a downlink; what is unconfirmed on it is dropped (state decides what is said again elsewhere)."""
        self.s.receivers.pop(receiver, None)
        self._fresh.pop(receiver, None)
        self.s.release_claims(receiver=receiver)

    def tell(self, receiver: str, message: DownMessage) -> None:
        """Say something to a receiver; silently nothing if there is no such receiver any more."""
        found = self.s.receivers.get(receiver)
        if found is not None:
            found.last += 1
            found.unacked[found.last] = message
            self._fresh[receiver] = None

    def got(self, event: Got) -> list[DownMessage]:
        """A receiver confirms what it has; gives the messages that need no repeat any more."""
        found = self.s.receivers.get(event.receiver)
        if found is None or event.incarnation != self.s.incarnation:
            return []
        confirmed = [found.unacked.pop(n) for n in [n for n in found.unacked if n <= event.upto]]
        if event.upto >= found.sent:
            found.in_flight = False
            found.resend_at = None
            if found.unacked:
                self._fresh[found.id] = None
        return confirmed

    def ride(self, client: str) -> tuple[tuple[str, tuple[tuple[int, DownMessage], ...]], ...]:
        """Messages that go with the answer to a step of ``client`` (2)."""
        out = []
        for receiver in [r for r in self._fresh if self.s.receivers[r].client == client]:
            found = self.s.receivers[receiver]
            messages = tuple((n, m) for n, m in found.unacked.items() if n > found.sent)
            del self._fresh[receiver]
            if not messages:
                continue
            out.append((receiver, messages))
            found.sent = found.last
            found.in_flight = True
            found.resend_at = self.s.clock.mono() + RESEND
        return tuple(out)

    @property
    def client_waits(self) -> bool:
        """True if the next push has a message for a client."""
        return any(not self.s.receivers[r].actor for r in self._fresh)

    def gather(self) -> None:
        """Put what polling clients have not got in an answer into the next push to the hub (2)."""
        for receiver in list(self._fresh):
            found = self.s.receivers[receiver]
            if found.actor:
                continue
            for n, m in found.unacked.items():
                if n > found.sent:
                    self.s.to_hub(receiver, n, m)
            found.sent = found.last
            del self._fresh[receiver]

    def flush(self) -> None:
        """Send what has gathered to session actors that did not get it in an answer (2, 3)."""
        for receiver in list(self._fresh):
            found = self.s.receivers[receiver]
            if found.actor and self._may_send(found):
                if found.unacked:
                    self._notify(found)
                del self._fresh[receiver]

    @staticmethod
    def _may_send(found: Receiver) -> bool:
        """One message in flight per receiver (3)."""
        return not found.in_flight

    def due(self, now: float) -> None:
        """Repeat what was not confirmed in time (3); what a lost answer carried to a polling client goes by the hub."""
        for found in list(self.s.receivers.values()):
            if found.resend_at is None or found.resend_at > now:
                continue
            if not found.unacked:
                found.in_flight, found.resend_at = False, None
            elif found.actor:
                self._notify(found)
            else:
                found.in_flight, found.resend_at = False, None
                self.again(found.id)

    def again(self, client: str) -> None:
        """The hub is a new one: everything unconfirmed of a polling client goes again."""
        found = self.s.receivers.get(client)
        if found is not None and not found.actor:
            for n, m in found.unacked.items():
                self.s.to_hub(client, n, m)
            found.sent = found.last
            self._fresh.pop(client, None)

    def _notify(self, found: Receiver) -> None:
        self.s.effect(
            Notify(found.actor, found.id, self.s.incarnation, tuple(found.unacked.items()))
        )
        found.sent = found.last
        found.in_flight = True
        found.resend_at = self.s.clock.mono() + RESEND
