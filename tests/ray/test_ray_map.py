"""`Runtime.map` and `imap` (PROTOCOL.md 4.6; DESIGN.md 7)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import openclaw_ray as oc
from openclaw_ray.core.errors import InvalidItem, RunFailed, TaskTooLarge, UnknownAgent
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_at_rest, unheard_runs

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


def peak(stays: list[list[float]]) -> int:
    """Most stays at one time."""
    moments = sorted([(began, 1) for began, _ in stays] + [(ended, -1) for _, ended in stays])
    return max(itertools.accumulate(change for _, change in moments))


def test_results_stand_in_the_order_of_the_items(rt: oc.Runtime, gate: Gate) -> None:
    results = rt.map("hand_over", [gate.place] * 8, width=4)
    assert [result.value for result in results] == list(range(8))
    assert [result.index for result in results] == list(range(8))


def test_unordered_results_come_as_they_end(rt: oc.Runtime, gate: Gate) -> None:
    stream = rt.imap("first_waits", [gate.place] * 4, width=4, ordered=False)
    assert {next(stream).index for _ in range(3)} == {1, 2, 3}
    gate.open()
    assert [result.index for result in stream] == [0]


def test_async_and_plain_agents_give_the_same(rt: oc.Runtime) -> None:
    items = ["one", "two", "three"]
    assert [r.text for r in rt.map("echo", items)] == [r.text for r in rt.map("async_echo", items)] == items


def test_no_more_than_width_run_at_once_and_as_many_do(rt: oc.Runtime, gate: Gate) -> None:
    results = rt.map("meet", [(gate.place, 3)] * 12, width=3)
    assert all(result.ok for result in results)
    assert peak([result.value for result in results]) == 3


def test_an_item_that_fails_is_run_again_as_often_as_asked(rt: oc.Runtime, gate: Gate) -> None:
    [result] = rt.map("flaky", [(gate.place, 2)], retries=2)
    assert result.text == "try 3"
    runs = gate.lines("tries-0")
    assert len(set(runs)) == 3
    assert result.run_id == runs[-1]


def test_without_enough_retries_the_last_error_stands(rt: oc.Runtime, gate: Gate) -> None:
    [result] = rt.map("flaky", [(gate.place, 2)], retries=1)
    assert result.status is oc.ResultStatus.ERROR
    assert result.error is not None
    assert result.error.message == "try 2"


def test_on_error_raise_stops_the_others_and_starts_nothing_more(rt: oc.Runtime, gate: Gate) -> None:
    before = unheard_runs(rt)
    items = [(gate.place, 2)] * 50
    with pytest.raises(RunFailed, match=r"item 0.*LookupError.*the first one"):
        rt.map("first_fails", items, width=3, on_error="raise")
    assert_at_rest(rt, unheard=before)
    started = set(gate.entered)
    assert {"0", "1", "2"} <= started
    assert len(started) <= 6  # those that ran, and one queued for each of them


def test_no_items_give_no_results(rt: oc.Runtime) -> None:
    assert rt.map("echo", []) == []
    assert list(rt.imap("echo", iter(()))) == []


def test_items_are_pulled_only_as_there_is_room(rt: oc.Runtime) -> None:
    before = unheard_runs(rt)
    pulled = 0

    def endless() -> Iterator[str]:
        nonlocal pulled
        for pulled in itertools.count(1):
            yield f"item {pulled}"

    stream = rt.imap("echo", endless(), width=4)
    for number in range(1, 41):
        assert next(stream).text == f"item {number}"
        assert pulled <= number + 4 * 4
    stream.close()
    assert_at_rest(rt, unheard=before)


def test_closing_a_stream_early_stops_what_runs(rt: oc.Runtime, gate: Gate) -> None:
    before = unheard_runs(rt)
    stream = rt.imap("first_goes", [gate.place] * 30, width=3, ordered=False)
    assert next(stream).index == 0
    stream.close()
    assert_at_rest(rt, unheard=before)
    ended = {row["state"] for row in rt.runs(agent="first_goes", limit=100) if row["index"] > 0}
    assert ended == {"cancelled"}
    assert len(gate.entered) < 10


def test_an_iterator_that_raises_ends_the_map_with_its_error(rt: oc.Runtime) -> None:
    before = unheard_runs(rt)

    def broken() -> Iterator[str]:
        yield "one"
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        rt.map("echo", broken())
    assert_at_rest(rt, unheard=before)


def test_other_items_than_text_have_a_bounded_repr_as_text(rt: oc.Runtime) -> None:
    item = {"rows": list(range(100_000)), "name": "a table"}
    [result] = rt.map("input_kind", [item])
    assert result.value["type"] == "dict"
    assert result.value["text"].startswith("{'name': 'a table', 'rows': [0, 1, 2,")
    assert len(result.value["text"]) <= 200


def test_an_unpicklable_item_is_an_error_in_place(rt: oc.Runtime) -> None:
    good, bad, last = rt.map("give_back", [1, threading.Lock(), 3])
    assert (good.value, last.value) == (1, 3)
    assert bad.status is oc.ResultStatus.ERROR
    assert bad.index == 1
    assert bad.error is not None
    assert bad.error.type == InvalidItem.__name__
    assert "cannot be pickled" in bad.error.message
    assert "lock" in bad.error.message


def test_an_empty_text_is_an_error_in_place(rt: oc.Runtime) -> None:
    first, empty, _ = rt.map("echo", ["a", "  ", "b"])
    assert first.ok
    assert empty.error is not None
    assert empty.error.type == InvalidItem.__name__
    assert "nothing to do" in empty.error.message


def test_a_task_text_over_a_megabyte_is_refused_with_the_remedy(rt: oc.Runtime) -> None:
    just, over = "x" * (1 << 20), "x" * ((1 << 20) + 1)
    fits, refused = rt.map("input_kind", [just, over])
    assert fits.ok
    assert refused.error is not None
    assert refused.error.type == TaskTooLarge.__name__
    assert "input=" in refused.error.message
    with pytest.raises(TaskTooLarge, match="input="):
        rt.spawn("x" * 50_000_000, "echo")


def test_the_same_fifty_megabytes_work_as_input(rt: oc.Runtime) -> None:
    [result] = rt.map("input_kind", [b"x" * 50_000_000])
    assert result.value["len"] == 50_000_000


def test_an_unknown_agent_is_named_with_those_there_are(rt: oc.Runtime) -> None:
    with pytest.raises(UnknownAgent, match=r"nobody.*known:.*agents=\[") as caught:
        rt.map("nobody", ["x"])
    assert "echo" in caught.value.known


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"width": 0}, "width"),
        ({"retries": -1}, "retries"),
        ({"on_error": "explode"}, "explode"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_starts(rt: oc.Runtime, wrong: dict[str, object], word: str) -> None:
    before = rt.stats().sessions_started
    with pytest.raises(ValueError, match=word):
        rt.imap("echo", ["x"], **wrong)  # type: ignore[arg-type]
    assert rt.stats().sessions_started == before


def test_two_maps_at_once_do_not_disturb_each_other(rt: oc.Runtime) -> None:
    found: dict[str, list[str | None]] = {}

    def work(name: str) -> None:
        found[name] = [r.text for r in rt.imap("echo", [f"{name} {i}" for i in range(30)], width=3)]

    threads = [threading.Thread(target=work, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {name: [f"{name} {i}" for i in range(30)] for name in ("left", "right")}


@pytest.mark.parametrize(("kept", "rows"), [("all", [2, 1]), ("failed", [0, 1]), ("none", [0, 0])])
def test_which_items_keep_a_transcript(rt: oc.Runtime, kept: str, rows: list[int]) -> None:
    results = rt.map("end_as_told", ["ok", "raise"], transcripts=kept)  # type: ignore[arg-type]
    assert [result.ok for result in results] == [True, False]
    eventually(lambda: [len(rt.history(result.session_key)) for result in results] == rows)


def test_a_map_leaves_one_summary_row_in_the_roots_transcript(rt: oc.Runtime) -> None:
    before = sum(row["text"].startswith("map of echo") for row in rt.history(rt.root_key, limit=500))
    rt.map("echo", ["a", "b"])

    def one_more() -> bool:
        rows = [row for row in rt.history(rt.root_key, limit=500) if row["text"].startswith("map of echo")]
        return len(rows) == before + 1 and "2 items" in rows[-1]["text"]

    eventually(one_more)
