"""PROTOCOL.md 4.6, End: the window of a map."""

from __future__ import annotations

from openclaw_ray.core import mapping
from openclaw_ray.core.lifecycle import DeliveryState, ResultStatus
from openclaw_ray.core.mapping import MapWindow
from openclaw_ray.core.protocol.messages import MapDone
from openclaw_ray.core.results import Receipt, Result
from rules.hand import Hand, without

# ------------------------------------------------------------------ 4.6 map


def test_results_of_a_map_need_no_announce_and_leave_one_summary_row() -> None:
    """4.6"""
    hand = Hand(actors=2)
    parent = hand.start("parent")
    item = parent.child("item", route="map")
    item.settle()
    assert hand.run("item").delivery is DeliveryState.NOT_REQUIRED
    parent.consume("item")
    parent.say(MapDone(parent.activation, "m1", "1 item, 1 ok"))
    hand.push()
    assert [(row.key, row.text) for row in hand.rows] == [("map:v1:m1", "1 item, 1 ok")]


OK: Result[object] = Result(ResultStatus.OK, "text")


def window(width: int) -> MapWindow:
    return MapWindow(iter(range(1000)), width, ahead=2)


def test_a_map_has_no_more_runs_in_flight_than_its_width_and_one_steps_worth() -> None:
    """4.6"""
    map_ = window(4)
    assert len(map_.admit()) == 6
    assert map_.admit() == []


def test_a_map_holds_no_more_than_four_times_its_width_that_were_not_handed_out() -> None:
    """4.6: a caller that does not read, or a first item that does not end, holds the others back."""

    def schedule() -> int:
        map_, pulled = window(4), 0
        while tickets := map_.admit():
            pulled += len(tickets)
            for ticket in tickets:
                map_.receipt(ticket, Receipt("accepted", f"r{ticket.index}"))
                if ticket.index:
                    map_.settled(f"r{ticket.index}", OK)
            if pulled > 100:
                break
        return pulled

    assert schedule() == 16
    with without(mapping, "_NOT_HANDED_OUT", 1_000):
        assert schedule() > 100


def test_a_turns_map_takes_a_refusal_by_max_children_as_back_pressure() -> None:
    """4.6"""

    def schedule() -> int:
        map_ = window(1)
        first, second, *_ = map_.admit()
        map_.receipt(first, Receipt("accepted", "r0"))
        map_.receipt(second, Receipt("forbidden", limit="maxChildrenPerAgent", value=5, maximum=5))
        map_.settled("r0", OK)
        return map_.admit()[0].index

    assert schedule() == 1, "the same item again"
    with without(mapping, "BACK_PRESSURE", "nothing"):
        assert schedule() > 1, "an error in its place"
