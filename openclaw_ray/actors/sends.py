"""Messages whose replies a program waits for, in its process (SPEC.md B2; `core.protocol.talking`, step 3).

1. A message that is waited for is open from before it is sent, so that no reply is too early.
2. Who waits leaves it once: with the reply, or without, because its time is over. The registry is told which; a reply
   that comes after that is not this program's any more.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future

from openclaw_ray.actors.courier_thread import CourierThread
from openclaw_ray.core.protocol.messages import Replied, SendOver
from openclaw_ray.core.sent import Sent

__all__ = ["Sends"]


class Sends:
    """Those of one turn or client; ``receiver`` is the downlink that it hears on."""

    def __init__(self, courier: CourierThread, receiver: str) -> None:
        self.courier = courier
        self.receiver = receiver
        self._lock = threading.Lock()
        self._open: dict[str, Future[Sent]] = {}

    def open(self, send: str) -> None:
        """It is about to be sent (1)."""
        with self._lock:
            self._open.setdefault(send, Future())

    def refused(self, send: str) -> None:
        """It was not accepted."""
        with self._lock:
            self._open.pop(send, None)

    def reply(self, send: str) -> Future[Sent]:
        """What becomes of it.

        Raises:
            KeyError: nobody waits for it here.
        """
        with self._lock:
            return self._open[send]

    def leave(self, send: str) -> bool:
        """The wait is over; True if the reply is there (2)."""
        with self._lock:
            future = self._open.pop(send, None)
        heard = future is not None and future.done() and future.exception() is None
        if future is not None:
            self.courier.post(SendOver(self.receiver, send, heard))
        return heard

    def hear(self, message: Replied) -> None:
        """A reply came; again, or too late, is nothing."""
        with self._lock:
            future = self._open.get(message.send)
        if future is not None and not future.done():
            future.set_result(message.sent)

    def fail(self, error: Exception) -> None:
        """Nothing more will come, or nothing came for too long."""
        with self._lock:
            waiting = list(self._open.values())
        for future in waiting:
            if not future.done():
                future.set_exception(error)
