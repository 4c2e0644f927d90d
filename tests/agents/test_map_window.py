"""`MapWindow`: rules by example, then a model of a registry that answers, ends and refuses in any order."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.mapping import BACK_PRESSURE, MapWindow, OnError, Ticket
from openclaw_ray.core.results import Receipt, Result

OK, ERROR, TIMEOUT, CANCELLED, LOST = ResultStatus


def accept(window: MapWindow, ticket: Ticket) -> str:
    run_id = f"run-{ticket.number}"
    window.receipt(ticket, Receipt("accepted", run_id, f"key-{ticket.number}"))
    return run_id


def refuse(window: MapWindow, ticket: Ticket, maximum: int = 5) -> None:
    window.receipt(ticket, Receipt("forbidden", error="full", limit=BACK_PRESSURE, maximum=maximum))


def end(window: MapWindow, run_id: str, status: ResultStatus = OK) -> None:
    window.settled(run_id, Result(status=status, text=run_id, run_id=run_id))


def indices(things: list[Any]) -> list[int]:
    return [thing.index for thing in things]


# ---------------------------------------------------------------------- by example


def test_an_item_that_is_known_takes_no_ticket_and_its_result_its_place() -> None:
    window = MapWindow("abcdef", 1, known=lambda index, item: None if item in "bd" else Result(text=item, reused=True))
    [second] = window.admit()
    assert (second.index, second.item) == (1, "b")
    assert [(r.index, r.text) for r in window.results()] == [(0, "a")]
    end(window, accept(window, second))
    [fourth] = window.admit()
    end(window, accept(window, fourth))
    assert window.admit() == []
    found = window.results()
    assert [(r.index, r.reused) for r in found] == [(1, False), (2, True), (3, False), (4, True)]
    assert window.admit() == []
    assert indices(window.results()) == [5]
    assert window.done


def test_known_items_are_pulled_no_further_ahead_than_others() -> None:
    source = itertools.count()
    window = MapWindow(source, 2, known=lambda index, item: Result(text=str(index)))
    assert window.admit() == []
    assert indices(window.results()) == list(range(8))
    assert next(source) == 8


def test_a_known_item_without_success_stops_a_map_that_raises() -> None:
    lost = Result(status=CANCELLED)
    window = MapWindow("abc", 3, on_error="raise", known=lambda index, item: lost if item == "b" else None)
    [first] = window.admit()
    assert window.failure == Result(status=CANCELLED, index=1)
    run = accept(window, first)
    assert window.take_stops() == [run]


def test_what_asking_for_a_known_item_raises_comes_after_the_tickets_before_it() -> None:
    def known(index: int, item: object) -> None:
        if index == 2:
            raise ConnectionError("the journal is away")

    window = MapWindow("abcdef", 4, known=known)
    assert indices(window.admit()) == [0, 1]
    with pytest.raises(ConnectionError, match="away"):
        window.admit()


def test_no_more_than_width_runs_are_admitted_at_once() -> None:
    window = MapWindow("abcdef", 2)
    tickets = window.admit()
    assert [ticket.item for ticket in tickets] == ["a", "b"]
    assert window.admit() == []
    end(window, accept(window, tickets[0]))
    assert indices(window.admit()) == [2]


def test_runs_ahead_are_admitted_beyond_the_width() -> None:
    assert len(MapWindow(range(100), 2, ahead=3).admit()) == 5


def test_items_are_pulled_only_when_there_is_room() -> None:
    pulled = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            pulled.append(number)
            yield number

    window = MapWindow(items(), 3)
    window.admit()
    assert pulled == [0, 1, 2]


def test_results_are_handed_out_in_order_of_the_items() -> None:
    window = MapWindow("abc", 3)
    runs = [accept(window, ticket) for ticket in window.admit()]
    end(window, runs[2])
    assert window.results() == []
    end(window, runs[0])
    assert indices(window.results()) == [0]
    end(window, runs[1])
    assert indices(window.results()) == [1, 2]


def test_unordered_results_are_handed_out_as_they_come() -> None:
    window = MapWindow("abc", 3, ordered=False)
    runs = [accept(window, ticket) for ticket in window.admit()]
    end(window, runs[2])
    assert indices(window.results()) == [2]


def test_a_slow_first_item_stalls_the_admitting_at_four_times_the_width() -> None:
    window = MapWindow(itertools.count(), 2)
    first, *others = window.admit()
    accept(window, first)
    while others:
        end(window, accept(window, others.pop()))
        others += window.admit()
    assert window.statistics().ready == 4 * 2 - 1
    assert window.statistics().running == 1


def test_a_completion_may_come_before_its_receipt() -> None:
    window = MapWindow("a", 1)
    (ticket,) = window.admit()
    end(window, "run-0")
    assert window.results() == []
    accept(window, ticket)
    assert indices(window.results()) == [0]
    assert window.admit() == []
    assert window.done


def test_a_second_end_and_a_second_receipt_change_nothing() -> None:
    window = MapWindow("ab", 1)
    (ticket,) = window.admit()
    run_id = accept(window, ticket)
    end(window, run_id)
    end(window, run_id, ERROR)
    accept(window, ticket)
    assert [result.status for result in window.results()] == [OK]
    assert window.in_flight == 0


@pytest.mark.parametrize("status", [ERROR, TIMEOUT, LOST])
def test_a_run_without_success_is_run_again_as_a_new_run(status: ResultStatus) -> None:
    window = MapWindow("ab", 1, retries=1)
    (first,) = window.admit()
    end(window, accept(window, first), status)
    (again,) = window.admit()
    assert (again.index, again.attempt, again.item) == (0, 1, "a")
    assert again.number != first.number
    end(window, accept(window, again), status)
    assert [result.status for result in window.results()] == [status]
    assert indices(window.admit()) == [1]


def test_a_cancelled_run_is_not_run_again() -> None:
    window = MapWindow("a", 1, retries=3)
    end(window, accept(window, window.admit()[0]), CANCELLED)
    assert [result.status for result in window.results()] == [CANCELLED]


def test_a_refusal_by_the_children_cap_is_waited_out() -> None:
    window = MapWindow("abcd", 4)
    one, two, three, four = window.admit()
    run_id, _ = accept(window, one), accept(window, three)
    refuse(window, four)
    refuse(window, two)
    assert window.admit() == []
    end(window, run_id)
    assert indices(window.admit()) == [1]
    assert not window.starved


def test_one_more_place_is_tried_after_a_whole_window_of_ends() -> None:
    window = MapWindow(itertools.count(), 4)
    tickets = window.admit()
    running = [accept(window, ticket) for ticket in tickets[:2]]
    for ticket in tickets[2:]:
        refuse(window, ticket)
    end(window, running[0])
    (third,) = window.admit()
    running = [running[1], accept(window, third)]
    end(window, running[0])
    assert len(window.admit()) == 2
    assert window.statistics().ceiling == 3


def test_a_refusal_that_an_end_has_overtaken_is_tried_again_at_once() -> None:
    window = MapWindow("abc", 2)
    one, two = window.admit()
    end(window, accept(window, one))
    refuse(window, two)
    assert indices(window.admit()) == [1]


def test_a_map_without_runs_of_its_own_waits_for_a_place_from_elsewhere() -> None:
    window = MapWindow("a", 2)
    refuse(window, window.admit()[0])
    assert window.starved
    assert window.admit() == []
    window.place_freed()
    assert not window.starved
    assert indices(window.admit()) == [0]


def test_a_cap_of_no_children_is_a_refusal_like_any_other() -> None:
    window = MapWindow("a", 1)
    refuse(window, window.admit()[0], maximum=0)
    assert [result.status for result in window.results()] == [ERROR]


@pytest.mark.parametrize(("status", "kind"), [("forbidden", "SpawnForbidden"), ("error", "SpawnError")])
def test_any_other_refusal_is_an_error_result_in_place_and_is_not_retried(status: str, kind: str) -> None:
    window = MapWindow("a", 1, retries=2)
    window.receipt(window.admit()[0], Receipt(status, error="unknown agent", limit="allowAgents"))
    (result,) = window.results()
    assert (result.index, result.status) == (0, ERROR)
    assert result.error is not None
    assert (result.error.type, result.error.message, result.error.cause) == (kind, "unknown agent", "refused")


@pytest.mark.parametrize(
    ("before", "refused", "forbidden"), [("", 0, True), ("reject", 1, True), ("accept", 1, False), ("wait", 1, False)]
)
def test_a_refusal_is_one_of_the_map_only_if_no_item_before_it_was_accepted_or_waits(
    before: str, refused: int, forbidden: bool
) -> None:
    window = MapWindow("abc", 3)
    tickets = window.admit()
    if before == "reject":
        window.reject(tickets[0], ValueError("empty"))
    elif before == "accept":
        accept(window, tickets[0])
    window.receipt(tickets[refused], Receipt("forbidden", error="unknown agent", limit="allowAgents"))
    assert (window.forbidden is not None) == forbidden


def test_neither_a_full_house_nor_a_stop_is_a_refusal_of_the_map() -> None:
    window = MapWindow("ab", 2)
    one, two = window.admit()
    refuse(window, one)
    window.receipt(two, Receipt("forbidden", error="stopping", limit="stop"))
    assert window.forbidden is None


def test_an_item_that_cannot_be_asked_for_is_an_error_result_in_place() -> None:
    window = MapWindow("ab", 2)
    one, two = window.admit()
    window.reject(one, ValueError("empty"))
    end(window, accept(window, two))
    assert [result.status for result in window.results()] == [ERROR, OK]


def test_on_error_raise_stops_admitting_and_names_the_runs_to_stop() -> None:
    window = MapWindow(itertools.count(), 3, on_error="raise")
    one, two, three = window.admit()
    first, second = accept(window, one), accept(window, two)
    end(window, first, ERROR)
    assert window.failure is not None
    assert window.failure.index == 0
    assert window.admit() == []
    assert window.take_stops() == [second]
    assert window.take_stops() == []
    third = accept(window, three)
    assert window.take_stops() == [third]
    assert not window.done
    end(window, second, CANCELLED)
    end(window, third, CANCELLED)
    window.results()
    assert window.done


def test_a_run_that_ended_by_itself_need_not_be_stopped() -> None:
    window = MapWindow("ab", 2)
    run_id = accept(window, window.admit()[0])
    window.stop()
    end(window, run_id)
    assert window.take_stops() == []


def test_what_the_iterator_raises_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[str]:
        yield "a"
        raise OSError("disk")

    window = MapWindow(items(), 3)
    assert indices(window.admit()) == [0]
    with pytest.raises(OSError, match="disk"):
        window.admit()


def test_an_empty_map_is_done_at_once() -> None:
    window = MapWindow([], 3)
    assert window.admit() == []
    assert window.done


@pytest.mark.parametrize(
    "counts",
    [{"width": 0}, {"width": True}, {"width": 1.5}, {"width": 1, "retries": -1}, {"width": 1, "ahead": -1}],
)
def test_counts_that_cannot_be_are_refused(counts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="whole number"):
        MapWindow([], **counts)


def test_an_unknown_word_for_on_error_is_refused() -> None:
    with pytest.raises(ValueError, match="ignore"):
        MapWindow([], 1, on_error="ignore")


# ---------------------------------------------------------------------- by model


class Registry:
    """Answers and ends in an order that hypothesis draws; messages may overtake each other."""

    def __init__(self, draw: st.DataObject, window: MapWindow, cap: int, others: int, bad: set[int]) -> None:
        self.draw = draw
        self.window = window
        self.cap = cap
        self.others = others
        self.bad = bad
        self.asked: list[Ticket] = []
        self.receipts: list[tuple[Ticket, Receipt]] = []
        self.active: dict[str, Ticket] = {}
        self.ends: list[tuple[str, Result[Any]]] = []
        self.accepted: Counter[int] = Counter()
        self.outcomes: dict[int, list[ResultStatus]] = {}
        self.runs: set[str] = set()

    def moves(self) -> list[str]:
        return [
            *(["decide"] if self.asked else []),
            *(["receipt"] if self.receipts else []),
            *(["end"] if self.active else []),
            *(["completion"] if self.ends else []),
            *(["other ends"] if self.others else []),
        ]

    def move(self) -> bool:
        moves = self.moves()
        if not moves:
            return False
        move = self.draw.draw(st.sampled_from(moves))
        if move == "decide":
            self.decide(self.asked.pop(self.pick(self.asked)))
        elif move == "receipt":
            self.window.receipt(*self.receipts.pop(self.pick(self.receipts)))
        elif move == "end":
            run_id = self.draw.draw(st.sampled_from(sorted(self.active)))
            ticket = self.active.pop(run_id)
            status = self.draw.draw(st.sampled_from(ResultStatus))
            self.outcomes.setdefault(ticket.index, []).append(status)
            self.ends.append((run_id, Result(status=status, run_id=run_id)))
        elif move == "completion":
            self.window.settled(*self.ends.pop(self.pick(self.ends)))
        else:
            self.others -= 1
            if self.draw.draw(st.booleans()):  # the owner may not have been listening
                self.window.place_freed()
        return True

    def decide(self, ticket: Ticket) -> None:
        if ticket.index in self.bad:
            self.receipts.append((ticket, Receipt("error", error="no")))
        elif len(self.active) + self.others >= self.cap:
            self.receipts.append((ticket, Receipt("forbidden", error="full", limit=BACK_PRESSURE, maximum=self.cap)))
        else:
            run_id = f"run-{ticket.number}"
            self.active[run_id] = ticket
            self.runs.add(run_id)
            self.accepted[ticket.index] += 1
            self.receipts.append((ticket, Receipt("accepted", run_id, run_id)))

    def pick(self, things: list[Any]) -> int:
        return self.draw.draw(st.integers(0, len(things) - 1))


@settings(max_examples=300, deadline=None)
@given(
    draw=st.data(),
    count=st.integers(0, 14),
    width=st.integers(1, 4),
    ahead=st.integers(0, 3),
    retries=st.integers(0, 2),
    ordered=st.booleans(),
    cap=st.integers(1, 6),
    others=st.integers(0, 6),
    bad=st.sets(st.integers(0, 13), max_size=3),
)
def test_every_item_has_one_result_whatever_the_order_of_messages(
    draw: st.DataObject,
    count: int,
    width: int,
    ahead: int,
    retries: int,
    ordered: bool,
    cap: int,
    others: int,
    bad: set[int],
) -> None:
    pulled = 0

    def items() -> Iterator[int]:
        nonlocal pulled
        for number in range(count):
            pulled += 1
            yield number

    window = MapWindow(items(), width, retries=retries, ordered=ordered, ahead=ahead)
    registry = Registry(draw, window, cap, others, bad)
    handed: list[Result[Any]] = []
    for _ in range(10_000):
        handed += window.results()
        registry.asked += window.admit()
        assert window.in_flight <= width + ahead
        assert pulled - len(handed) <= 4 * width
        if window.done:
            break
        if window.starved and not registry.others:
            window.place_freed()  # the owner's patience
        else:
            # a window that can neither admit nor wait for anything would hang here
            assert registry.move()
    assert window.done
    assert Counter(result.index for result in handed) == Counter(range(count))
    if ordered:
        assert indices(handed) == list(range(count))
    for result in handed:
        assert result.index is not None
        if result.index in bad:
            assert result.status is ERROR
            assert registry.accepted[result.index] == 0
            continue
        seen = registry.outcomes[result.index]
        assert result.status is seen[-1]
        assert len(seen) == registry.accepted[result.index] <= retries + 1
        assert not {OK, CANCELLED} & set(seen[:-1])
        assert len(seen) == retries + 1 or seen[-1] in (OK, CANCELLED)
    statistics = window.statistics()
    assert (statistics.asked, statistics.running, statistics.again, statistics.ready) == (0, 0, 0, 0)
    assert statistics.handed == count
    assert not window._early


@settings(max_examples=200, deadline=None)
@given(
    draw=st.data(),
    width=st.integers(1, 4),
    ahead=st.integers(0, 2),
    retries=st.integers(0, 1),
    cap=st.integers(1, 4),
)
def test_after_a_failure_nothing_is_admitted_and_every_run_is_ended_or_named(
    draw: st.DataObject, width: int, ahead: int, retries: int, cap: int
) -> None:
    window = MapWindow(range(30), width, ahead=ahead, retries=retries, on_error=OnError.RAISE)
    registry = Registry(draw, window, cap, 0, set())
    stops: list[str] = []
    ended: set[str] = set()
    for _ in range(10_000):
        window.results()
        tickets = window.admit()
        assert not (tickets and window.failure)
        registry.asked += tickets
        stops += window.take_stops()
        if window.done:
            break
        if window.starved:
            window.place_freed()
        else:
            assert registry.move()
    ended = registry.runs
    assert window.done
    assert len(stops) == len(set(stops))
    assert set(stops) <= ended
    assert window.failure is None or not window.failure.ok


def test_memory_stays_flat_over_many_items() -> None:
    window = MapWindow(itertools.count(), 4, ahead=4)
    peak = 0
    for _ in range(5_000):
        for ticket in window.admit():
            end(window, accept(window, ticket))
            end(window, f"run-{ticket.number}")  # again
        window.results()
        held = (window._asked, window._running, window._early, window._in_place, window._stops, window._again)
        peak = max(peak, sum(len(part) for part in held))
    assert peak <= 16
