"""One `turn.map`: the window's items become children, their ends become results (PROTOCOL.md 4.6)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from openclaw_ray.agents._asking import accepted, item_request
from openclaw_ray.agents._waits import Call, Wait
from openclaw_ray.agents.port import SpawnRequest, TurnPort
from openclaw_ray.agents.text import bounded
from openclaw_ray.core.errors import InvalidItem, TaskTooLarge
from openclaw_ray.core.lifecycle import Cause, ResultStatus
from openclaw_ray.core.mapping import MapWindow, Ticket
from openclaw_ray.core.results import Completion, ErrorInfo, Receipt, Result

__all__ = ["TurnMap"]

_PATIENCE = 0.05  # seconds until a refusal that nothing known to us can lift is tried again


class TurnMap:
    """The state of a map of a turn; all but `_post` lives in the thread or loop that waits.

    Args:
        wait: where the map's owner waits between steps.
        elsewhere: run ids of unsettled children that are not this map's, each then told to `ended_elsewhere`.
        dismiss: stops runs whose ends nobody wants any more.
    """

    def __init__(
        self,
        port: TurnPort,
        window: MapWindow,
        agent_id: str,
        timeout: float | None,
        *,
        wait: Wait,
        elsewhere: Callable[[], Sequence[str]],
        dismiss: Callable[[Sequence[str]], None],
    ) -> None:
        self._port = port
        self._window = window
        self._agent_id = agent_id
        self._timeout = timeout
        self._wait = wait
        self._elsewhere = elsewhere
        self._dismiss = dismiss
        self._results: list[Result[Any]] = []
        self._given: list[str] = []
        self._lock = threading.Lock()
        self._over = False
        self._ended = False
        self._elsewhere()  # an end there may overtake a refusal here
        self.patience: float | None = None
        """Seconds after which `step` is to be called even if nothing has come; `None` is never."""

    def step(self) -> bool:
        """Take what is ready and admit what may be admitted; True if the map is over."""
        if self.patience is not None:
            self.patience = None
            self._window.place_freed()
        while True:
            self._results += self._window.results()
            tickets = self._window.admit()
            if not tickets:
                break
            self._ask(tickets)
        if self._given:
            self._port.consume(self._given)
            self._given = []
        self._dismiss(self._window.take_stops())
        if self._window.starved and not self._elsewhere():
            self.patience = _PATIENCE
        window = self._window
        return window.done or window.failure is not None or window.forbidden is not None

    def ended_elsewhere(self, run_id: str) -> None:
        """A child that is not this map's has settled."""
        self._window.place_freed()

    def finish(self) -> list[Result[Any]]:
        """The results in the order of the items.

        Raises:
            SpawnForbidden, SpawnError: the first item was refused, and with it the map.
            RunError: with ``on_error="raise"``, for the first item without success; the others are stopped.
        """
        if self._window.forbidden is not None:
            self.abandon()
            accepted(self._window.forbidden)
        failure = self._window.failure
        if failure is not None:
            self.abandon()
            failure.raise_for_status()
        self._end()
        return sorted(self._results, key=lambda result: result.index or 0)

    def abandon(self) -> None:
        """Nobody waits any more: what was admitted is stopped, also what is answered after this."""
        with self._lock:
            self._over = True
        self._wait.drain()
        self._window.stop()
        self._dismiss(self._window.take_stops())
        self._end()

    # ------------------------------------------------------------------ inside

    def _ask(self, tickets: list[Ticket]) -> None:
        asked: list[Ticket] = []
        requests: list[SpawnRequest] = []
        for ticket in tickets:
            try:
                requests.append(item_request(self._agent_id, ticket.item, ticket.index, self._timeout))
            except (InvalidItem, TaskTooLarge) as exc:
                self._window.reject(ticket, exc)
            else:
                asked.append(ticket)
        if requests:
            for ticket, future in zip(asked, self._port.spawn(requests), strict=True):
                future.add_done_callback(partial(self._answered, ticket))

    def _answered(self, ticket: Ticket, future: Future[Receipt]) -> None:
        self._post(partial(self._receipt, ticket, future), future)

    def _post(self, call: Call, answer: Future[Receipt] | None = None) -> None:
        """On whatever thread resolved the future: have the waiting side see it, if there still is one."""
        with self._lock:
            if not self._over:
                self._wait.put(call)
                return
        if answer is not None and answer.exception() is None and answer.result().accepted:
            self._dismiss([answer.result().run_id])

    def _receipt(self, ticket: Ticket, future: Future[Receipt]) -> None:
        error = future.exception()
        if error is not None:
            self._window.reject(ticket, error)
            return
        receipt = future.result()
        self._window.receipt(ticket, receipt)
        if receipt.accepted:
            ended = partial(self._post, partial(self._settled, receipt.run_id))
            self._port.completion(receipt.run_id).add_done_callback(lambda _: ended())

    def _settled(self, run_id: str) -> None:
        future: Future[Completion] = self._port.completion(run_id)
        error = future.exception()
        if self._window.failure is None:  # after it the rest has been dismissed, and consumed by that
            self._given.append(run_id)
        if error is None:
            self._window.settled(run_id, future.result().result)
            return
        info = ErrorInfo(type=type(error).__name__, message=bounded(str(error), 2_000), cause=Cause.VALUE_LOST)
        self._window.settled(run_id, Result(status=ResultStatus.LOST, error=info, run_id=run_id))

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._port.consume(self._given)
        counts = Counter(result.status.value for result in self._results)
        said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "nothing"
        self._port.map_done(f"map of {self._agent_id}: {len(self._results)} items ended: {said}")
