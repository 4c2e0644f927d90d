"""Ends of runs that another requester hears of: one watcher for all of a client's callers that wait (DESIGN.md 5).

1. Who waits asks the registry once by itself; only then it joins the watcher, which asks once more.
2. The watcher is a thread that lives as long as somebody waits. It follows the runtime's events, and asks the registry
   for a run when an event says that it has ended: what a thousand callers cost is what one costs.
3. A run that was steered ends, and another goes on in its place: the registry says so, and is asked at each look from
   then on.
4. A hub or registry that is away is asked again; a runtime that has been closed ends all waits.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openclaw_ray.core.errors import RuntimeClosed
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.messages import Completed

if TYPE_CHECKING:
    from openclaw_ray.core.events import Event
    from openclaw_ray.runtime.looking import RuntimeView

__all__ = ["OthersEnds"]

_POLL = 1.0
_AGAIN_AFTER = 0.1


@dataclass(slots=True)
class _Wait:
    end: Future[Completed] = field(default_factory=Future)
    callers: int = 0
    asked: bool = False


class OthersEnds:
    """The waits of one client."""

    def __init__(self, view: RuntimeView) -> None:
        self._view = view
        self._lock = threading.Lock()
        self._waits: dict[str, _Wait] = {}
        self._at_work = False

    def join(self, run_id: str) -> Future[Completed]:
        """The end to come; each `join` needs a `leave`."""
        with self._lock:
            wait = self._waits.setdefault(run_id, _Wait())
            wait.callers += 1
            if not self._at_work:
                self._at_work = True
                threading.Thread(target=self._watch, name="openclaw-others", daemon=True).start()
            return wait.end

    def leave(self, run_id: str) -> None:
        """A caller waits no longer."""
        with self._lock:
            wait = self._waits.get(run_id)
            if wait is not None:
                wait.callers -= 1
                if wait.callers <= 0:
                    del self._waits[run_id]

    # ------------------------------------------------------------------ the watcher

    def _watch(self) -> None:
        seq = -1
        while self._wanted():
            try:
                seq = self._look(seq)
            except RuntimeClosed as error:
                self._fail(error)
            except Exception:  # noqa: BLE001 - of Ray's many words for a part that is away, none ends a wait
                if self._view._closed:
                    self._fail(RuntimeClosed(self._view.name))
                time.sleep(_AGAIN_AFTER)

    def _wanted(self) -> bool:
        with self._lock:
            self._at_work = any(not wait.end.done() for wait in self._waits.values())
            return self._at_work

    def _look(self, seq: int) -> int:
        view = self._view
        if seq < 0:
            seq = view._query("last_event")
        with self._lock:
            new = [run for run, wait in self._waits.items() if not wait.asked]
        for run in new:
            self._ask(run)
        with view._watching:
            events = view._events_after(seq, _POLL)
        for event in events:
            seq = event.seq
            if self._ends_a_wait(event):
                self._ask(str(event.run_id), said_to_end=True)
        return seq

    def _ends_a_wait(self, event: Event) -> bool:
        if event.kind != "run" or not event.state or not RunState(event.state).terminal:
            return False
        with self._lock:
            return event.run_id in self._waits

    def _ask(self, run_id: str, *, said_to_end: bool = False) -> None:
        with self._lock:
            wait = self._waits.get(run_id)
        if wait is None or wait.end.done():
            return
        try:
            ended = self._view._query("ended", run_id, *self._view._bound)
        except KeyError as error:
            wait.end.set_exception(error)
            return
        wait.asked = True
        if ended is not None:
            wait.end.set_result(ended)
        elif said_to_end:
            wait.asked = False

    def _fail(self, error: Exception) -> None:
        with self._lock:
            waits = list(self._waits.values())
        for wait in waits:
            if not wait.end.done():
                wait.end.set_exception(error)
