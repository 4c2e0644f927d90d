"""Messages that a turn may take while it runs, in its process (SPEC.md B2; `core.protocol.steered`).

1. One that came is asked for when the program looks, once; the registry's word decides whose it is.
2. The program has those that the word ``taken`` was said of, in the order in which they came.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future

from openclaw_ray.actors.courier_thread import CourierThread
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.messages import TAKEN, Steered, TakeSteered, Verdict

__all__ = ["Steers"]


class Steers:
    """Those of one turn."""

    def __init__(self, courier: CourierThread, run: str, activation: str) -> None:
        self.courier = courier
        self.run = run
        self.activation = activation
        self._lock = threading.Lock()
        self._there: dict[str, Steered] = {}
        self._asked: dict[str, tuple[Steered, Future[Told | None]]] = {}
        self._came: Future[None] = Future()

    def came(self) -> Future[None]:
        """Done as soon as there is one that was not asked for."""
        with self._lock:
            return self._came

    def take(self) -> list[Future[Told | None]]:
        """Ask for all that are there; each future gives the message, or `None` if it is somebody else's (1)."""
        with self._lock:
            there, self._there = self._there, {}
            asked = {name: (message, Future[Told | None]()) for name, message in there.items()}
            self._asked |= asked
            if self._came.done():
                self._came = Future()
        if asked:
            self.courier.post(*(TakeSteered(self.run, self.activation, name) for name in asked))
        return [future for _, future in asked.values()]

    def hear(self, message: Steered) -> None:
        """One came; again is nothing."""
        with self._lock:
            if message.activation != self.activation or message.message in self._asked:
                return
            self._there.setdefault(message.message, message)
            came = self._came
        if not came.done():
            came.set_result(None)

    def hear_verdict(self, verdict: Verdict) -> None:
        """The registry's word on one that was asked for (2)."""
        with self._lock:
            message, future = self._asked.get(verdict.run, (None, None))
        if message is None or future is None or future.done():
            return
        sender = "" if message.source is None else message.source.session_key
        future.set_result(Told(message.text, sender, message.message) if verdict.word == TAKEN else None)

    def fail(self, error: Exception) -> None:
        """No word will come, or none came for too long."""
        with self._lock:
            waiting = [future for _, future in self._asked.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
