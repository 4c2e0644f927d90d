"""The window of a map: which items may be admitted now, and which results handed out (PROTOCOL.md 4.6).

It has no thread, clock or I/O of its own; a turn, a driver and the simulator share it. Its owner does this:

1. `MapWindow.results` takes what is ready, then `MapWindow.admit` says what to admit: at most ``width`` runs
   that have not ended plus ``ahead`` admitted ones; of the items pulled from the iterator, never more than
   4 × ``width`` are not handed out.
2. Each `Ticket` is admitted as a run. Its receipt comes back by `MapWindow.receipt` and the run's end by
   `MapWindow.settled`, in any order, the end even before the receipt.
3. A refusal by ``maxChildrenPerAgent`` is back-pressure: the item goes back to the front, and no more runs
   than were accepted are tried until one ends. One more is tried when a whole window of runs has ended
   since. If no run of the map is left to wait for, `MapWindow.starved` is true, and the owner calls
   `MapWindow.place_freed` when a child from elsewhere ends. Any other refusal is an error result in place;
   that of the first item, while nothing has been accepted, is also `MapWindow.forbidden`: a rule is against the map.
4. A run that failed, timed out or was lost is admitted anew, as a new run, up to ``retries`` times. A
   cancelled one is not: somebody wanted it to end.
5. An item that is known already, of an earlier try of a map that has a name, takes no ticket: its result stands in
   its place, and counts among those that are ready.
6. With ``on_error="raise"`` the first item without success ends the admitting; `MapWindow.take_stops` names
   the runs to stop, those whose receipts come later included.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import ErrorInfo, Receipt, Result

__all__ = ["BACK_PRESSURE", "MapStatistics", "MapWindow", "NotYet", "OnError", "Ticket"]

STOPPED = "stop"
"""The limit of an answer that a stop has overtaken: the item is cancelled."""
BACK_PRESSURE = "maxChildrenPerAgent"
"""The limit whose refusal means "later", not "no"."""
_NOT_HANDED_OUT = 4
_RETRIED = frozenset({ResultStatus.ERROR, ResultStatus.TIMEOUT, ResultStatus.LOST})


class OnError(StrEnum):
    """What a map does about an item that did not succeed."""

    COLLECT = "collect"
    """Its result stands in its place; the others go on."""
    RAISE = "raise"
    """Nothing more is admitted, the rest is stopped, and the caller gets the error."""


class NotYet(Exception):
    """Raised by an iterator of items that has none now and may have more later; it tells its owner when it has."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to admit one item; named again when its receipt comes.

    ``number`` is unique within the map, ``index`` the item's position from 0, ``attempt`` 0 for the first run.
    """

    number: int
    index: int
    attempt: int
    item: Any


@dataclass(frozen=True, slots=True)
class MapStatistics:
    """Where the items of a map are now, in counts: admitted without a receipt, accepted and not ended, to be
    admitted once more, ended and not handed out, handed out. ``ceiling``: most runs tried at once because of
    back-pressure, `None` without.
    """

    asked: int
    running: int
    again: int
    ready: int
    handed: int
    ceiling: int | None


class MapWindow:
    """Items in, tickets and results out; the module says in which order.

    Args:
        items: pulled one at a time, only when there is room; it may be endless.
        width: most runs at once that have not ended.
        retries: further runs of an item that did not succeed.
        ordered: hand results out in the order of the items, or as they come.
        ahead: runs admitted beyond ``width``, so that one is queued when another ends.
        on_error: see `OnError`.
        known: asked about each item, with its index, as it is pulled: its result if it is not to run.

    Raises:
        ValueError: a count is not a whole number, or too small.
    """

    def __init__(
        self,
        items: Iterable[Any],
        width: int,
        *,
        retries: int = 0,
        ordered: bool = True,
        ahead: int = 0,
        on_error: OnError | str = OnError.COLLECT,
        known: Callable[[int, Any], Result[Any] | None] | None = None,
    ) -> None:
        for name, count, least in (("width", width, 1), ("retries", retries, 0), ("ahead", ahead, 0)):
            if not isinstance(count, int) or isinstance(count, bool) or count < least:
                raise ValueError(f"{name} must be a whole number of {least} or more, not {count!r}")
        self._items = iter(items)
        self._most = width + ahead
        self._open = _NOT_HANDED_OUT * width
        self._retries = retries
        self._ordered = ordered
        self._on_error = OnError(on_error)
        self._known = known
        self._failure: Result[Any] | None = None
        self._broken: BaseException | None = None
        self._forbidden: Receipt | None = None
        self._begun = False
        self._exhausted = False
        self._stopped = False
        self._next_index = 0
        self._next_number = 0
        self._handed = 0
        self._again: list[tuple[int, int, Any]] = []  # a heap by index: the oldest item goes first
        self._asked: dict[int, tuple[Ticket, int]] = {}  # with the count of ends when it was asked
        self._running: dict[str, Ticket] = {}
        self._early: dict[str, Result[Any]] = {}  # ends whose receipts are not here yet
        self._in_place: dict[int, Result[Any]] = {}
        self._as_they_come: deque[Result[Any]] = deque()
        self._stops: list[str] = []
        self._ceiling: int | None = None
        self._ends = 0
        self._ends_since_try = 0

    # ------------------------------------------------------------------ admitting

    def admit(self) -> list[Ticket]:
        """The items to admit now; they count as admitted.

        Raises:
            Exception: what the iterator, or ``known``, raised; items pulled before it are returned first.
        """
        if self._broken is not None:
            raise self._broken
        tickets: list[Ticket] = []
        most = self._most if self._ceiling is None else min(self._most, self._ceiling)
        while not self._stopped and self.in_flight < most:
            if self._again:
                index, attempt, item = heapq.heappop(self._again)
            elif self._exhausted or self.in_flight + self._ready >= self._open:
                break
            else:
                result = None
                try:
                    item = next(self._items)
                    if self._known is not None:
                        result = self._known(self._next_index, item)
                except StopIteration:
                    self._exhausted = True
                    break
                except NotYet:
                    break
                except BaseException as exc:
                    if not tickets:
                        raise
                    self._broken = exc
                    break
                index, attempt = self._next_index, 0
                self._next_index += 1
                if result is not None:
                    self._finish(index, result)
                    continue
            ticket = Ticket(self._next_number, index, attempt, item)
            self._next_number += 1
            self._asked[ticket.number] = (ticket, self._ends)
            tickets.append(ticket)
        return tickets

    def receipt(self, ticket: Ticket, receipt: Receipt) -> None:
        """The answer to one admission; a second answer to the same ticket changes nothing."""
        _, ends_then = self._asked.pop(ticket.number, (None, -1))
        if ends_then < 0:
            return
        if receipt.accepted:
            self._begun = True
            self._running[receipt.run_id] = ticket
            if self._stopped:
                self._stops.append(receipt.run_id)
            if receipt.run_id in self._early:
                self.settled(receipt.run_id, self._early.pop(receipt.run_id))
        elif receipt.limit == BACK_PRESSURE and receipt.maximum != 0:
            if not self._stopped:
                heapq.heappush(self._again, (ticket.index, ticket.attempt, ticket.item))
            # a run that ended while the question was on its way may have freed a place that the answer
            # did not see yet: worth one more try, or the last item could wait for an end that has been
            self._press(self.in_flight + (1 if self._ends > ends_then else 0))
        else:
            kind = "SpawnForbidden" if receipt.status == "forbidden" else "SpawnError"
            why = receipt.error or f"the spawn was answered {receipt.status!r}"
            cancelled = receipt.limit == STOPPED
            if not cancelled and not self._begun and self._is_first(ticket.index):
                self._forbidden = self._forbidden or receipt
            self._finish(ticket.index, _refused("stopped" if cancelled else kind, why, cancelled=cancelled))
        if not self._asked:
            self._early.clear()

    def reject(self, ticket: Ticket, error: BaseException) -> None:
        """The item cannot even be asked for, e.g. `InvalidItem`: an error result in its place."""
        if self._asked.pop(ticket.number, None) is not None:
            self._finish(ticket.index, _refused(type(error).__name__, str(error)))

    def settled(self, run_id: str, result: Result[Any]) -> None:
        """The end of one run; a second end of the same run, or that of a foreign one, changes nothing."""
        ticket = self._running.pop(run_id, None)
        if ticket is None:
            if self._asked:
                self._early[run_id] = result
            return
        self._ends += 1
        self._ends_since_try += 1
        if self._ceiling is not None and self._ends_since_try >= self._ceiling:
            self._relieve()
        if result.status in _RETRIED and ticket.attempt < self._retries and not self._stopped:
            heapq.heappush(self._again, (ticket.index, ticket.attempt + 1, ticket.item))
        else:
            self._finish(ticket.index, result)

    def place_freed(self) -> None:
        """A child that is not this map's has ended: one more run may be tried under back-pressure."""
        self._ends += 1
        if self._ceiling is not None:
            self._relieve()

    def results(self) -> list[Result[Any]]:
        """What is ready and not handed out yet; with ``ordered`` up to the first item that is not."""
        if self._ordered:
            out: list[Result[Any]] = []
            while (result := self._in_place.pop(self._handed + len(out), None)) is not None:
                out.append(result)
        else:
            out = list(self._as_they_come)
            self._as_they_come.clear()
        self._handed += len(out)
        return out

    def stop(self) -> None:
        """Admit nothing more; the accepted runs are named by `take_stops`, the ends still come."""
        if not self._stopped:
            self._stopped = True
            self._again.clear()
            self._stops.extend(self._running)

    def take_stops(self) -> list[str]:
        """Ids of the runs to stop now; each is named once."""
        stops = [run_id for run_id in self._stops if run_id in self._running]
        self._stops.clear()
        return stops

    @property
    def done(self) -> bool:
        """True if nothing runs and nothing will, and all that is ready was handed out.

        In order, results behind an item that a stop left without one are never handed out; they do not count.
        """
        if self._stopped:
            return not self.in_flight and not (self._ready and not self._ordered)
        return self._exhausted and not self.in_flight and not self._again and not self._ready

    @property
    def in_flight(self) -> int:
        """Runs admitted and not ended."""
        return len(self._asked) + len(self._running)

    @property
    def failure(self) -> Result[Any] | None:
        """With ``on_error="raise"``: the first result without success."""
        return self._failure

    @property
    def forbidden(self) -> Receipt | None:
        """The refusal of the first item by a rule that time does not lift, if no item had been accepted then."""
        return self._forbidden

    @property
    def starved(self) -> bool:
        """True if an item waits for a place and no run of this map is left that could free one."""
        return bool(self._again) and self._ceiling == 0 and not self.in_flight

    def statistics(self) -> MapStatistics:
        """The counts of now."""
        return MapStatistics(
            len(self._asked), len(self._running), len(self._again), self._ready, self._handed, self._ceiling
        )

    @property
    def _ready(self) -> int:
        return len(self._in_place) + len(self._as_they_come)

    def _is_first(self, index: int) -> bool:
        """Whether no item before this one waits for an answer, or to be asked for again."""
        asked = min((ticket.index for ticket, _ in self._asked.values()), default=index)
        return index <= asked and not (self._again and self._again[0][0] < index)

    def _finish(self, index: int, result: Result[Any]) -> None:
        if result.index != index:
            result = replace(result, index=index)
        if self._ordered:
            self._in_place[index] = result
        else:
            self._as_they_come.append(result)
        if not result.ok and self._on_error is OnError.RAISE and self._failure is None:
            self._failure = result
            self.stop()

    def _press(self, ceiling: int) -> None:
        self._ceiling = ceiling if self._ceiling is None else min(self._ceiling, ceiling)
        self._ends_since_try = 0

    def _relieve(self) -> None:
        ceiling = (self._ceiling or 0) + 1
        self._ceiling = ceiling if ceiling < self._most else None
        self._ends_since_try = 0


def _refused(kind: str, message: str, *, cancelled: bool = False) -> Result[Any]:
    error = ErrorInfo(type=kind, message=message or kind, cause="stopped" if cancelled else "refused")
    return Result(status=ResultStatus.CANCELLED if cancelled else ResultStatus.ERROR, error=error)
