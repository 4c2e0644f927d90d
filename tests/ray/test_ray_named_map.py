"""`Runtime.map` with a ``map_id``: what a later try takes over, and what it runs (DESIGN.md 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


def test_a_later_try_runs_what_failed_and_what_is_new_alone(rt: oc.Runtime, gate: Gate) -> None:
    place = str(gate.place)
    items = [(place, 1 if index in (2, 5) else 0) for index in range(8)]
    first = rt.map("flaky", items, map_id=place)
    assert [r.index for r in first if not r.ok] == [2, 5]
    more = [*items, (place, 0)]
    only = rt.map("flaky", more, map_id=place, failed_only=True)
    assert [r.index for r in only if not r.reused] == [2, 5, 8]
    assert [r.text for r in only] == ["try 1", "try 1", "try 2", "try 1", "try 1", "try 2", "try 1", "try 1", None]
    assert only[8].status is oc.ResultStatus.CANCELLED
    assert only[8].error is not None
    assert (only[8].error.type, only[8].error.cause) == ("NotTried", "not_tried")
    last = rt.map("flaky", more, map_id=place)
    assert [r.index for r in last if not r.reused] == [8]
    assert all(r.ok for r in last)
    assert [r.run_id for r in last][:8] == [r.run_id for r in only][:8]
    assert [len(gate.lines(f"tries-{index}")) for index in range(9)] == [1, 1, 2, 1, 1, 2, 1, 1, 1]


def test_another_content_agent_or_position_is_another_item(rt: oc.Runtime, gate: Gate) -> None:
    name = str(gate.place)
    rt.map("echo", ["a", "b", "c"], map_id=name)
    assert [r.reused for r in rt.map("echo", ["a", "c", "B"], map_id=name)] == [True, False, False]
    assert [r.reused for r in rt.map("async_echo", ["a"], map_id=name)] == [False]
    assert [r.reused for r in rt.map("echo", ["a", "b", "c"], map_id=name)] == [True] * 3


def test_values_come_back_and_one_that_was_not_journaled_is_made_again(rt: oc.Runtime, gate: Gate) -> None:
    name, items = str(gate.place), ["dict", "result", "none", "array"]
    first = rt.map("make_value", items, map_id=name)
    again = rt.map("make_value", items, map_id=name)
    assert [r.reused for r in again] == [True, True, True, False]
    assert [(r.text, r.value, r.missing) for r in again[:3]] == [(r.text, r.value, r.missing) for r in first[:3]]
    assert int(again[3].value.sum()) == int(first[3].value.sum())
    [*_, lost] = rt.map("make_value", items, map_id=name, failed_only=True)
    assert lost.error is not None
    assert (lost.status, lost.error.type) == (oc.ResultStatus.ERROR, "ValueLost")


def test_an_item_with_a_reference_in_it_is_run_by_each_try(rt: oc.Runtime, gate: Gate) -> None:
    import ray

    reference = ray.put([1, 2])
    for _ in range(2):
        [result] = rt.map("give_back", [[reference]], map_id=str(gate.place))
        assert result.ok
        assert not result.reused


def test_two_at_a_time_are_refused_and_what_one_has_left_is_run_by_the_next(rt: oc.Runtime, gate: Gate) -> None:
    name = str(gate.place)
    stream = rt.imap("first_waits", [gate.place] * 4, width=4, ordered=False, map_id=name)
    next(stream)
    with pytest.raises(oc.MapInUse, match="two at once would run its items twice"):
        rt.map("first_waits", [gate.place] * 4, map_id=name)
    stream.close()
    eventually(lambda: not rt.runs(agent="first_waits", state=["queued", "running"]), 10)
    gate.open()
    results = rt.map("first_waits", [gate.place] * 4, map_id=name)
    assert all(result.ok for result in results)
    assert not results[0].reused, "it was stopped"


def test_a_turn_may_map_under_a_name(rt: oc.Runtime, gate: Gate) -> None:
    [result] = rt.map("mapping_again", [(rt.name, str(gate.place))])
    assert result.raise_for_status().value == [[False] * 3, [True] * 3]


def test_a_name_that_is_none_is_refused(rt: oc.Runtime) -> None:
    with pytest.raises(ValueError, match="failed_only needs the map_id"):
        rt.imap("echo", ["a"], failed_only=True)
    with pytest.raises(ValueError, match="map_id is a name"):
        rt.imap("echo", ["a"], map_id="")
