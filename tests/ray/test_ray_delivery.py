"""Completions reach whoever is to hear of them, exactly once: a busy parent, a batch in one tick, a parent that died.

The long form has the parent busy for 30 seconds: ``OPENCLAW_RAY_LONG=1 pytest -n 0 tests/ray/test_ray_delivery.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

pytestmark = pytest.mark.ray

BUSY = 30.0 if os.environ.get("OPENCLAW_RAY_LONG") == "1" else 2.0
CONFIG = {
    "agents": {
        "defaults": {"subagents": {"allowAgents": ["*"], "maxChildrenPerAgent": 20, "maxConcurrent": 20}},
    },
    "ray": {"pool": {"prewarm": 2, "max": 8}},
}


@oc.agent(id="says", spawns=False)
def says(turn: oc.SyncTurn) -> str:
    """Its text, or as many letters as its input says, after as many seconds as it says."""
    letters, seconds = turn.input if isinstance(turn.input, tuple) else (0, 0.0)
    if seconds:
        time.sleep(seconds)
    return "x" * letters or turn.text


class Busy(oc.Agent):
    """Spawns, works on, and is told of everything afterwards."""

    def on_turn(self, turn: oc.SyncTurn) -> list[str]:
        state = turn.state
        state["turns"] = state.get("turns", 0) + 1
        if turn.kind == "task":
            for number in range(20):
                turn.spawn(f"n{number}", agent_id="says")
            time.sleep(BUSY)
        state["heard"] = [*state.get("heard", []), *(done.text for done in turn.completions)]
        return [str(state["turns"]), *state["heard"]]


class Batch(oc.Agent):
    """Yields over as many children as its text says."""

    def on_turn(self, turn: oc.SyncTurn) -> list[str]:
        if turn.kind == "task":
            for number in range(int(turn.text)):
                turn.spawn(f"n{number}", agent_id="says")
            turn.yield_()
        wakes = turn.state["wakes"] = turn.state.get("wakes", 0) + 1
        return [str(wakes), *(done.text for done in turn.completions)]


class Mortal(oc.Agent):
    """Spawns one child, says its process, and works until it is killed; a later turn says what it was told."""

    def on_turn(self, turn: oc.SyncTurn) -> str:
        if turn.kind == "task":
            turn.spawn("long", agent_id="says", input=(5_000_000, 2.0))
            Path(turn.text).write_text(str(os.getpid()))
            time.sleep(600)
        [done] = turn.completions
        return f"{turn.kind.value} {done.result.status} {len(done.text)} {done.result.text_truncated}"


@pytest.fixture(scope="module")
def own(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    """The shared runtime's Ray, a runtime with room for twenty children."""
    with oc.Runtime.start(agents=[says, Busy, Batch, Mortal], config=CONFIG) as rt:
        yield rt


def test_a_busy_parent_is_told_of_twenty_ends_in_order(own: oc.Runtime) -> None:
    result = own.result(own.spawn("go", "busy"), timeout=100).raise_for_status()
    turns, *heard = result.value
    assert heard == [f"n{number}" for number in range(20)]
    assert turns == "2"

    def all_told() -> None:
        assert [row["result"] for row in _told(own, result.session_key)] == heard

    eventually(all_told)
    assert {row["deliveryStatus"] for row in own.runs(requester=result.session_key)} == {"delivered"}


def _told(rt: oc.Runtime, key: str) -> list[dict[str, object]]:
    return [row for row in rt.history(key, limit=200) if row.get("type") == "task_completion"]


@pytest.mark.parametrize("children", [1, 2, 3, 4, 20])
def test_a_batch_is_one_wake_with_every_end(own: oc.Runtime, children: int) -> None:
    result = own.result(own.spawn(str(children), "batch"), timeout=60).raise_for_status()
    assert result.value == ["1", *(f"n{number}" for number in range(children))]


def test_a_parent_that_was_killed_is_activated_for_its_childs_end_once(own: oc.Runtime, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    receipt = own.spawn(str(pid_file), "mortal")
    pid = int(eventually(lambda: pid_file.exists() and pid_file.read_text(), 20))
    os.kill(pid, 9)
    dead = own.result(receipt, timeout=20)
    assert (dead.status, dead.error.cause if dead.error else None) == ("error", "process_died")

    def second_run() -> str:
        run, *dead = own.runs(session=receipt.session_key)
        assert (len(dead), run["state"]) == (1, "succeeded")
        return str(run["runId"])

    run_id = eventually(second_run, 20)
    again = own.result(oc.Receipt("accepted", run_id, receipt.session_key, "mortal"), timeout=20)
    assert again.text == "completion ok 102400 True"
    [child] = own.runs(requester=receipt.session_key)
    assert (child["state"], child["deliveryStatus"]) == ("succeeded", "delivered")

    def told_once() -> None:
        assert len(_told(own, receipt.session_key)) == 1

    eventually(told_once)
