"""Stops and deadlines that meet what ends, breeds or does not listen: one end each, and nothing alive afterwards.

``OPENCLAW_RAY_LONG=1 pytest tests/faults/test_stop_races.py -s`` has all rounds and prints the figures.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from fault_tier import LONG, Log, at_rest, within
from stop_agents import AGENTS, LASTS

import openclaw_ray as oc
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_gone

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(900 if LONG else 120, method="signal")]

GRACE = 3.0  # what breeds keeps two processors busy: all others need their time to end by themselves
RACES = 200 if LONG else 12
BREEDINGS = 50 if LONG else 5
_AT_ONCE = 25
_TERMINAL = {state.value for state in RunState if state.terminal}


def settings(at_once: int) -> dict[str, Any]:
    children = {"allowAgents": ["*"], "maxChildrenPerAgent": 10, "maxConcurrent": at_once}
    return {"agents": {"defaults": {"subagents": children}}, "ray": {"stopGraceSeconds": GRACE, "pool": {"max": 16}}}


@pytest.fixture(scope="module")
def shared(ray_here: str) -> Iterator[oc.Runtime]:
    with oc.Runtime.start(agents=AGENTS, config=settings(10)) as runtime:
        yield runtime
    assert_gone(runtime.name)


@pytest.fixture
def one_slot(rt: oc.Runtime) -> Iterator[None]:
    """A session's children run one after the other: a slot that is not given back is missed, one that is given back
    twice is seen."""
    rt.reload_config(settings(1))
    yield
    rt.reload_config(settings(10))


def terminal_events(rt: oc.Runtime, after: int) -> Counter[str]:
    """How often each run was said to have ended."""
    counts: Counter[str] = Counter()
    while events := rt._events_after(after, 0.0):
        after = events[-1].seq
        counts.update(event.run_id or "" for event in events if event.kind == "run" and event.state in _TERMINAL)
    return counts


@pytest.mark.parametrize("how", ["stop", "timeout"])
@pytest.mark.usefixtures("one_slot")
def test_an_end_and_a_stop_or_a_deadline_in_one_moment(rt: oc.Runtime, log: Log, seed: int, how: str) -> None:
    seen: list[dict[str, Any]] = []
    announced: Counter[str] = Counter()
    before = rt._query("last_event")
    for start in range(0, RACES, _AT_ONCE):  # a new parent now and then: its list of children stays short
        numbers = (start, min(RACES, start + _AT_ONCE))
        receipt = rt.spawn(agent_id="racing", input=(log.path, how, seed, numbers))
        seen += rt.result(receipt, timeout=300).raise_for_status().value
        rows = {row["runId"]: row for row in rt.runs(requester=receipt.session_key, limit=200)}
        history = rt.history(receipt.session_key, limit=1_000)
        announced.update(row["runId"] for row in history if row.get("type") == "task_completion")
        for one in seen[-(numbers[1] - numbers[0]) :]:
            row = rows[one["run"]]
            ended_by_itself = (row["state"], one["status"], one["text"]) == ("succeeded", "ok", "ended by itself")
            if how == "stop":
                expected = ("done",) if ended_by_itself else ("ok",)
                assert one["word"] in expected, one
                assert ended_by_itself or (row["state"], one["status"]) == ("cancelled", "cancelled"), one
            else:
                assert ended_by_itself or (row["state"], one["status"]) == ("timed_out", "timeout"), one
            assert one["second"] == "ok", one
    assert len(seen) == RACES
    ends = terminal_events(rt, before)
    assert {ends[one["run"]] for one in seen} == {1}
    assert set(announced.values()) <= {1}
    told = [one["run"] for one in seen if one["status"] != "cancelled"]
    assert set(told) <= set(announced)
    assert not any(announced[one["run"]] for one in seen if one["status"] == "cancelled")
    assert _overlaps(log) == []
    if LONG:
        assert len({one["status"] for one in seen}) == 2
    words = dict(Counter(one["status"] for one in seen))
    print(f"\n{how}: {RACES} rounds: {words}; one end, at most one announce, one slot each{_distances(log)}")


def _distances(log: Log) -> str:
    """How far from the child's own end its stop was asked for; it is a few milliseconds on its way."""
    times = {tuple(line.split()[:2]): int(line.split()[2]) for line in log.lines()}
    asked = {name: at for (name, what), at in times.items() if what == "asked"}
    off = sorted((at - times[name, "begins"]) / 1e6 - LASTS * 1000 for name, at in asked.items())
    return f"; asked {off[0]:.1f} to {off[-1]:.1f} ms from the end" if off else ""


def _overlaps(log: Log) -> list[str]:
    """Second children that began before the first had given its slot back."""
    times = {tuple(line.split()[:2]): int(line.split()[2]) for line in log.lines()}
    found = []
    for (name, what), at in times.items():
        first = name.replace("second", "first")
        if name.endswith("second") and what == "begins" and (first, "ends") in times and at < times[first, "ends"]:
            found.append(name)
    return found


def test_a_tree_that_breeds_as_fast_as_it_can_is_stopped_whole(rt: oc.Runtime, log: Log, seed: int) -> None:
    chance = random.Random(seed)
    answered: dict[str, int] = {}
    born = forced = 0
    for number in range(BREEDINGS):
        name = f"round{number}"
        receipt = rt.spawn(agent_id="breeder", input=(log.path, name))
        log.wait_for(len(log.lines()) + 1)
        threading.Event().wait(chance.uniform(0.0, 0.25))
        report = rt.stop(receipt.session_key, timeout=60)
        answered[name] = time.time_ns()
        assert report.failed == 0
        assert rt.runs(state=["queued", "running", "paused"], agent="breeder", limit=1) == []
        born += report.total
        forced += report.forced
    at_rest(rt)
    assert rt.runs(state=["queued", "running", "paused"], agent="breeder", limit=1) == []
    late = [line for line in log.lines() if int(line.split()[1]) > answered[line.split()[0]]]
    assert late == []
    assert {row["state"] for row in rt.runs(agent="breeder", limit=1_000)} == {"cancelled"}
    print(f"\nbreeding: {BREEDINGS} of {BREEDINGS} rounds: nothing alive; {born} runs, {forced} by force")


def test_the_last_of_a_chain_whose_middle_has_ended_is_reached(rt: oc.Runtime, log: Log) -> None:
    """SCENARIOS.md 24: depth 4; the second timed out, the third was killed."""
    top = rt.spawn(agent_id="link", input=(log.path, 1, (2, 0, 0)))
    lines = {int(line.split()[0]): line.split() for line in log.wait_for(4)}
    os.kill(int(lines[3][2]), signal.SIGKILL)

    def state(depth: int) -> str:
        return str(rt.runs(session=lines[depth][3])[0]["state"])

    eventually(lambda: (state(2), state(3)) == ("timed_out", "failed"), 30)
    assert (state(1), state(4)) == ("running", "running")
    report = rt.stop(top.session_key, timeout=20)
    assert (report.stopped, report.finished, report.failed) == (2, 2, 0)
    words = {row.session_key: row.outcome for row in report.rows}
    assert words == dict(
        zip((lines[n][3] for n in (1, 2, 3, 4)), ("stopped", "finished", "finished", "stopped"), strict=True)
    )
    assert (state(1), state(4)) == ("cancelled", "cancelled")


def test_the_deaf_one_holds_nobody_up_and_nothing_is_born_any_more(rt: oc.Runtime, log: Log) -> None:
    """SCENARIOS.md 25: nine end at once, what is spawned meanwhile is refused or stopped, the deaf one is forced."""
    top = rt.spawn(agent_id="nursery", input=log.path)
    log.wait_for(10)
    asked = time.time()
    report = rt.stop(top.session_key, timeout=20)
    assert (report.forced, report.failed) == (1, 0)
    rows = {row["label"]: row for row in rt.runs(requester=top.session_key, limit=20)}
    assert len(rows) == 10
    assert {row["state"] for row in rows.values()} == {"cancelled"}
    [forced] = [row.session_key for row in report.rows if row.outcome == "forced"]
    assert rows["deaf"]["sessionKey"] == forced
    slowest = max(row["endedAt"] / 1000 - asked for label, row in rows.items() if label != "deaf")
    deaf = rows["deaf"]["endedAt"] / 1000 - asked
    assert slowest < min(within(1.0), deaf)
    assert GRACE <= deaf < within(GRACE + 2)
    late = rt.runs(requester=rows["spawns"]["sessionKey"], limit=1_000)
    assert late
    assert {row["state"] for row in late} <= {"succeeded", "cancelled"}
    print(f"\nnine ended within {slowest * 1000:.0f} ms, the deaf one after {deaf:.2f} s; {len(late)} were spawned")
