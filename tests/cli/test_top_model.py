"""The picture of what runs: a tree in order, bounded without hiding one tree behind another, rates of two looks."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from openclaw_ray.cli.top_model import Hidden, Look, TopRow, fit, picture

NOW = 1_000_000.0


def run(number: int | str, requester: str | None = None, state: str = "running", *, age: float = 1, **more: Any) -> Any:
    """A row as `Runtime.runs` gives it, of session ``s<number>``."""
    return {
        "runId": f"r{number}",
        "sessionKey": f"s{number}",
        "agentId": "w",
        "requesterKey": requester,
        "state": state,
        "depth": 1,
        "createdAt": round((NOW - age) * 1000),
        **more,
    }


def look(runs: list[Any], at: float = NOW, **stats: Any) -> Look:
    return Look(at, runs, stats)


def five_hundred() -> list[Any]:
    """An old single run; and a tree of 499: a top, four below it with 160, 160, 160 and 14 leaves."""
    runs = [run("old", age=900), run("top", age=500)]
    for number, leaves in enumerate((160, 160, 160, 14)):
        runs.append(run(f"i{number}", "stop", "paused", age=400 - number))
        for leaf in range(leaves):
            state = "running" if leaf < 3 else "queued"
            runs.append(run(f"{number}-{leaf}", f"si{number}", state, age=300 - leaf))
    random.Random(7).shuffle(runs)
    return runs


def test_siblings_are_the_biggest_first_then_those_at_work_then_the_oldest() -> None:
    runs = [
        run(1, age=5),
        run(2, age=9),
        run(3, state="queued", age=99),
        run(4, age=1),
        run(5, "s4", "queued", age=1),
    ]
    rows = picture(look(runs)).rows
    assert [(row.level, row.run_id) for row in rows] == [(0, "r4"), (1, "r5"), (0, "r2"), (0, "r1"), (0, "r3")]
    assert rows[0].below == {"queued": 1}


def test_a_row_says_where_it_is_how_old_and_what_it_waits_for_at_which_place() -> None:
    runs = [
        run(1, age=12.5, node="n1", pid=77, label="digging"),
        run(2, state="paused", pauseReason="yielded", age=3),
        run(3, state="queued", age=2),
        run(4, state="queued", age=1),
    ]
    waiting = {"r4": "a slot of lane x (1 of 1); place 1 in the queue", "r3": "an actor; place 2 in the queue"}
    one, two, three, four = picture(look(runs, waiting=waiting)).rows
    assert (one.node, one.pid, one.age_ms, one.text, one.place) == ("n1", 77, 12_500, "digging", None)
    assert (two.waiting_for, two.place) == ("yielded", None)
    assert (four.run_id, four.place) == ("r3", 2)
    assert (three.run_id, three.place, three.waiting_for) == ("r4", 1, waiting["r4"]), "as in the queue, not by age"


def test_a_run_whose_requester_has_ended_is_a_top() -> None:
    (row,) = picture(look([run(1, "gone")])).rows
    assert (row.level, row.requester_key) == (0, "gone")


def test_of_two_runs_of_a_session_the_one_in_a_turn_is_the_parent() -> None:
    runs = [
        run(1, state="queued", age=9),
        run("turn", age=5) | {"sessionKey": "s1"},
        run("child", "s1"),
    ]
    rows = picture(look(runs)).rows
    assert [(row.level, row.run_id) for row in rows] == [(0, "rturn"), (1, "rchild"), (0, "r1")]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_ring_is_shown_once_under_its_oldest(size: int) -> None:
    ring = [run(n, f"s{(n + 1) % size}", age=100 - n) for n in range(size)]
    outside = run("out", "s0")
    rows = picture(look([*ring, outside])).rows
    assert sorted(row.run_id for row in rows) == sorted(each["runId"] for each in [*ring, outside])
    assert (rows[0].run_id, rows[0].level) == ("r0", 0)


def test_all_five_hundred_are_in_the_picture_and_in_its_json() -> None:
    shown = picture(look(five_hundred()))
    assert shown.counts == {"running": 14, "paused": 4, "queued": 482}
    assert len(shown.rows) == 500
    whole = json.loads(json.dumps(shown.to_json()))
    assert len({row["runId"] for row in whole["rows"]}) == 500
    assert whole["rows"][0]["below"] == {"paused": 4, "running": 12, "queued": 482}


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 13, 24, 50, 100, 499, 500])
def test_what_is_shown_fits_and_what_is_not_is_counted(lines: int) -> None:
    rows = picture(look(five_hundred())).rows
    shown = fit(rows, lines)
    assert 1 <= len(shown) <= lines
    counted = Counter(row.state for row in shown if isinstance(row, TopRow))
    for row in shown:
        if isinstance(row, Hidden):
            counted.update(row.counts)
    assert counted == {"running": 14, "paused": 4, "queued": 482}
    path: list[str] = []
    for row in shown:
        assert row.level <= len(path), "its parent is not shown"
        if isinstance(row, TopRow):
            assert row.level == 0 or row.requester_key == path[row.level - 1]
            path[row.level :] = [row.session_key]


def test_a_wide_tree_does_not_hide_the_others() -> None:
    shown = fit(picture(look(five_hundred())).rows, 24)
    names = [row.run_id for row in shown if isinstance(row, TopRow)]
    assert {"rold", "rtop", "ri0", "ri1", "ri2", "ri3"} < set(names)
    leaves = Counter(name.split("-")[0] for name in names if "-" in name)
    assert set(leaves) == {"r0", "r1", "r2", "r3"}
    assert max(leaves.values()) - min(leaves.values()) <= 1
    numbers = {int(name.split("-")[1]) for name in names if "-" in name}
    assert numbers == set(range(len(numbers))), "those at work first, then the oldest"


def test_the_rate_is_what_was_started_between_two_looks() -> None:
    first = look([], NOW, sessionsStarted=10, registryIncarnation=1)
    second = look([], NOW + 4, sessionsStarted=40, registryIncarnation=1)
    assert picture(second, first).started_per_second == 7.5
    assert picture(first).started_per_second is None


@pytest.mark.parametrize(("started", "incarnation"), [(40, 2), (3, 1)])
def test_there_is_no_rate_over_a_restart_of_the_registry(started: int, incarnation: int) -> None:
    first = look([], NOW, sessionsStarted=10, registryIncarnation=1)
    second = look([], NOW + 1, sessionsStarted=started, registryIncarnation=incarnation)
    assert picture(second, first).started_per_second is None
