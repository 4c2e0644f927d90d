"""A map under a client's root: `MapWindow` driven by one thread that waits for receipts and ends (PROTOCOL.md 4.6).

1. Items are pulled as there is room; results are handed out in order, or as they come.
2. An end is consumed with the step after it was handed to the window, so memory stays flat however long the map is.
3. Leaving early, by an exception or by closing the iterator, stops what is un-ended.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from openclaw_ray.actors.requester import Requester
from openclaw_ray.agents._asking import item_request, run_timeout
from openclaw_ray.core.errors import InvalidItem, OpenClawRayError, TaskTooLarge
from openclaw_ray.core.mapping import MapWindow, OnError, Ticket
from openclaw_ray.core.protocol.messages import MapDone
from openclaw_ray.core.results import Completion, Receipt, Result
from openclaw_ray.runtime.named_map import NamedMap

__all__ = ["RootMap", "root_map", "root_steps"]

MOST_AHEAD = 256
"""Runs admitted beyond the width: one step's worth (PROTOCOL.md 1.1)."""
_PATIENCE = 0.05  # seconds

_Happening = tuple[str, Any, Future[Any]]


def root_map(requester: Requester, agent_id: str, items: Iterable[Any], **options: Any) -> Iterator[Result[Any]]:
    """Results of ``agent_id`` over ``items``, waited for in the thread that iterates; see `root_steps`."""
    return _results(*root_steps(requester, agent_id, items, **options))


def _results(job: RootMap, steps: Generator[Result[Any] | None, None, None]) -> Iterator[Result[Any]]:
    with contextlib.closing(steps):
        for result in steps:
            if result is None:
                job.wait()
            else:
                yield result


def root_steps(
    requester: Requester,
    agent_id: str,
    items: Iterable[Any],
    *,
    map_id: str,
    width: int,
    timeout: float | None,
    retries: int,
    ordered: bool,
    on_error: OnError,
    transcripts: str,
    named: NamedMap | None = None,
) -> tuple[RootMap, Generator[Result[Any] | None, None, None]]:
    """The map and its steps: results of ``agent_id`` over ``items``, `None` wherever something must be waited for.

    Nothing starts before the first step is asked for; closing the steps early stops what is un-ended.

    Raises:
        RunError: with ``on_error="raise"``, for the first item without success; the others are stopped.
        MapInUse: ``named``, and another map of that name is at work.
        RuntimeClosed, RuntimeUnavailable: the runtime went away.
        ValueError: at once, if an option is not as it may be.
    """
    # enough is queued for an actor that becomes free to find its next run in the answer to its own step
    ahead = min(3 * width, MOST_AHEAD)
    known = None if named is None else named.known
    window = MapWindow(
        items, width, retries=retries, ordered=ordered, ahead=ahead, on_error=on_error, known=known
    )
    seconds = run_timeout(timeout, "timeout")
    job = RootMap(requester, window, agent_id, seconds, f"map:{map_id}", width, transcripts, named)
    wake = getattr(items, "wake", None)
    if callable(wake):  # a feed: it raises NotYet when it has nothing, and calls back when it has
        wake(job.item_came)
    return job, _steps(job, window, MapDone(requester.receiver, map_id, f"map of {agent_id}"))


def _steps(job: RootMap, window: MapWindow, done: MapDone) -> Generator[Result[Any] | None, None, None]:
    over = False
    job.begin()
    try:
        while True:
            for result in window.results():
                job.handed(result)
                yield result
            job.admit()
            failure = window.failure
            if failure is not None:
                failure.raise_for_status()
            if window.done:
                break
            ready = window.results()
            if not ready:
                yield None
            for result in ready:
                job.handed(result)
                yield result
        over = True
    finally:
        if not over:
            job.abandon()
        job.end(done)


class RootMap:
    """The happenings of one map, taken one after the other by the thread or loop that iterates.

    Attributes:
        ring: called after each happening, from any thread; for a loop, which does not `wait`.
    """

    def __init__(
        self,
        requester: Requester,
        window: MapWindow,
        agent_id: str,
        timeout: float | None,
        lane: str,
        width: int,
        transcripts: str,
        named: NamedMap | None,
    ) -> None:
        self._requester = requester
        self._window = window
        self._agent_id = agent_id
        self._timeout = timeout
        self._lane = lane
        self._width = width
        self._transcripts = transcripts
        self._named = named
        self._count = self._reused = 0
        self._happenings: queue.SimpleQueue[_Happening] = queue.SimpleQueue()
        self._unanswered: dict[int, Future[Receipt]] = {}
        self.ring: Callable[[], None] | None = None

    def begin(self) -> None:
        """Nothing was asked for yet: a name is claimed first."""
        if self._named is not None:
            self._named.begin()

    def handed(self, result: Result[Any]) -> None:
        """One more is handed out."""
        self._count += 1
        if self._named is not None:
            self._reused += result.reused
            self._named.handed(result.index)

    def admit(self) -> None:
        """Ask for what the window has room for."""
        while tickets := self._window.admit():
            requests, asked = [], []
            for ticket in tickets:
                try:
                    request = item_request(self._agent_id, ticket.item, ticket.index, self._timeout)
                    if self._named is not None:
                        request = replace(request, item=self._named.item(ticket.index))
                    requests.append(request)
                    asked.append(ticket)
                except (InvalidItem, TaskTooLarge) as error:
                    self._window.reject(ticket, error)
            futures = self._requester.spawn(
                requests, lane=self._lane, lane_width=self._width, transcripts=self._transcripts
            )
            for ticket, future in zip(asked, futures, strict=True):
                self._unanswered[ticket.number] = future
                future.add_done_callback(lambda f, t=ticket: self._happened(("receipt", t, f)))  # type: ignore[misc]

    def item_came(self) -> None:
        """The feed has an item, or has ended; from any thread."""
        self._happened(("item", None, Future()))

    def _happened(self, happening: _Happening) -> None:
        self._happenings.put(happening)
        if self.ring is not None:
            self.ring()

    @property
    def patience(self) -> float | None:
        """Seconds after which to go on even if nothing has happened; `None` is never."""
        return _PATIENCE if self._window.starved else None

    def wait(self) -> None:
        """Take the next happening, and all that came with it."""
        try:
            self._take(self._happenings.get(timeout=self.patience))
        except queue.Empty:
            self._window.place_freed()  # children from elsewhere hold all places: try again now and then
            return
        while not self._happenings.empty():
            self._take(self._happenings.get())

    def take(self) -> bool:
        """Take all that has happened; False if that is nothing, and then places may be free again."""
        if self._happenings.empty():
            self._window.place_freed()
            return False
        while not self._happenings.empty():
            self._take(self._happenings.get())
        return True

    def _take(self, happening: _Happening) -> None:
        kind, subject, future = happening
        if kind == "item":
            return
        error = future.exception()
        if kind == "receipt":
            del self._unanswered[subject.number]
            self._receipt(subject, future, error)
            return
        if error is not None:
            raise error
        done: Completion = future.result()
        self._requester.consume((subject,))
        self._window.settled(subject, done.result)

    def _receipt(self, ticket: Ticket, future: Future[Receipt], error: BaseException | None) -> None:
        if error is not None:
            if isinstance(error, OpenClawRayError):
                raise error
            self._window.reject(ticket, InvalidItem(ticket.index, f"it cannot be pickled: {error}"))
            return
        receipt = future.result()
        self._window.receipt(ticket, receipt)
        if receipt.accepted:
            run = receipt.run_id
            end = self._requester.completion(run)
            end.add_done_callback(lambda f, r=run: self._happened(("end", r, f)))  # type: ignore[misc]

    def abandon(self) -> None:
        """Nobody waits any more: stop what is un-ended, what is still being asked for included (3)."""
        self._window.stop()
        self._requester.dismiss(self._window.take_stops())
        for future in self._unanswered.values():
            future.add_done_callback(self._not_wanted)

    def _not_wanted(self, future: Future[Receipt]) -> None:
        if future.exception() is None and (receipt := future.result()).accepted:
            self._requester.dismiss((receipt.run_id,))

    def end(self, done: MapDone) -> None:
        """One summary row; a name is free again."""
        of_before = f", {self._reused} of them from an earlier try" if self._reused else ""
        done = replace(done, summary=f"{done.summary}: {self._count} items handed out{of_before}")
        if self._named is not None:
            self._named.end(done)
        else:
            self._requester.courier.post(done)
