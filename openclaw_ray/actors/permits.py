"""What a turn wants of rate limits, on its way to the registry and back (`openclaw_ray.core.protocol.limiting`)."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from openclaw_ray.actors.courier_thread import CourierThread
from openclaw_ray.core.protocol.messages import BackOff, LimitAsk, LimitDone, Permit

__all__ = ["Permits"]


class Permits:
    """The requests of one turn; each is named by its activation and a number."""

    def __init__(self, courier: CourierThread, run: str, activation: str) -> None:
        self._courier = courier
        self._run = run
        self._activation = activation
        self._lock = threading.Lock()
        self._asked = 0
        self._open: dict[str, Future[Permit]] = {}

    def ask(self, name: str, cost: float) -> tuple[str, Future[Permit]]:
        """Get in line; the future has the registry's word."""
        future: Future[Permit] = Future()
        with self._lock:
            self._asked += 1
            ask = f"{self._activation}:{self._asked}"
            self._open[ask] = future
        self._courier.post(LimitAsk(self._run, self._activation, ask, name, cost))
        return ask, future

    def done(self, ask: str) -> None:
        """Give back, or want nothing any more."""
        with self._lock:
            self._open.pop(ask, None)
        self._courier.post(LimitDone(self._run, self._activation, ask))

    def back_off(self, name: str, seconds: float) -> None:
        """Have nobody let in for so long."""
        self._courier.post(BackOff(self._run, self._activation, name, seconds))

    def hear(self, permit: Permit) -> None:
        """The registry's word; one that comes again is no news."""
        with self._lock:
            future = self._open.pop(permit.ask, None)
        if future is not None:
            future.set_result(permit)

    def fail(self, error: Exception) -> None:
        """No word will come, or none came for too long."""
        with self._lock:
            waiting, self._open = list(self._open.values()), {}
        for future in waiting:
            future.set_exception(error)
