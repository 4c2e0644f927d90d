"""What a turn says: the rows of its transcript, until they are on their way.

1. Rows gather and go with the turn's end. One that lasts sends them within `ROWS_WITHIN`, so that a process that dies
   takes no whole message older than that along (SCENARIOS.md 70); much text goes at once.
2. The newest ones that were sent are kept, as the hub may not have them yet when the program looks at its history.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.protocol.messages import Row, Rows

if TYPE_CHECKING:
    from openclaw_ray.actors.courier_thread import CourierThread
    from openclaw_ray.core.protocol.messages import Spec

__all__ = ["ROWS_WITHIN", "TurnRows"]

ROWS_WITHIN = 0.5
"""Seconds after which a transcript row is on its way, should the turn last as long."""
_FLUSH_BYTES = 64 * 1024
_RECENT = 256
"""Rows that are on their way, at most, without the hub's having them."""


class TurnRows:
    """The rows of one turn."""

    def __init__(self, courier: CourierThread, spec: Spec) -> None:
        self._courier = courier
        self._spec = spec
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._recent: deque[Row] = deque(maxlen=_RECENT)
        self._bytes = 0
        self._said = 0
        self._next = 0
        self._armed = False
        self._lasts = False

    def append(self, role: str, text: str, meta: dict[str, Any] | None) -> None:
        """Say something; nothing is kept of a turn without a transcript."""
        spec = self._spec
        if spec.transcripts == "none":
            return
        with self._lock:
            self._rows.append(Row(spec.session_id, spec.number, self._next, role, text, time.time(), None, meta))
            self._next += 1
            self._bytes += len(text)
            self._said += len(text)
            full = self._bytes > _FLUSH_BYTES
        if full:
            self.send()
        elif self._lasts:
            self._send_soon()

    def number(self) -> int:
        """The next number of something that the turn does."""
        with self._lock:
            self._next += 1
            return self._next

    def lasts(self) -> None:
        """The turn goes on for a while: rows are not to wait for its end (1)."""
        self._lasts = True
        self._send_soon()

    def send(self) -> None:
        """What was said so far goes up."""
        with self._lock:
            self._armed = False
            if self._spec.transcripts != "all" or not self._rows:
                return
            flush = tuple(self._rows)
            self._rows, self._bytes = [], 0
            self._recent.extend(flush)
        self._courier.post(Rows(self._spec.run, self._spec.activation, flush))

    def take(self) -> tuple[Row, ...]:
        """What was not sent; it goes with the turn's end."""
        with self._lock:
            rest, self._rows = tuple(self._rows), []
        return rest

    def own(self) -> list[Row]:
        """What this turn has said and may not be on disk (2)."""
        with self._lock:
            return [*self._recent, *self._rows]

    def unsent(self) -> list[Row]:
        """What this turn has said and not sent."""
        with self._lock:
            return list(self._rows)

    def sizes(self) -> tuple[int, int]:
        """Characters that were not sent, and all that were said."""
        with self._lock:
            return self._bytes, self._said

    def _send_soon(self) -> None:
        with self._lock:
            arm = self._spec.transcripts == "all" and bool(self._rows) and not self._armed
            self._armed = self._armed or arm
        if arm:
            self._courier.alarm("rows", ROWS_WITHIN, self.send)
