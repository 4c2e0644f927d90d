"""Sessions that give their process back between turns, many more of them than there are processes (DESIGN.md 3).

The long form prints its figures: ``OPENCLAW_RAY_LONG=1 pytest -n 0 -s tests/ray/test_ray_passive.py``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.runtime.stats import memory_of
from openclaw_ray.testing.eventually import eventually

pytestmark = pytest.mark.ray

AtRest = Callable[[oc.Runtime], AbstractContextManager[oc.Runtime]]
LONG = os.environ.get("OPENCLAW_RAY_LONG") == "1"
ASKERS = 16


def keeper(number: int) -> Any:
    """An agent of its own, and so a main session of its own."""

    @oc.agent(id=f"keeper-{number}")
    def keep(turn: oc.SyncTurn) -> list[Any]:
        heard: list[str] = turn.state.setdefault("heard", [])
        heard.append(turn.text)
        rows = [row["text"] for row in turn.history(limit=50) if row["role"] == "user"]
        return [number, turn.kind.value, heard, rows]

    return keep


@oc.agent(spawns=False)
def leaf(turn: oc.SyncTurn) -> str:
    return f"did {turn.text}"


@oc.agent
def yielder(turn: oc.SyncTurn) -> list[Any]:
    """Yields over one child, twice."""
    state = turn.state
    state["kinds"] = [*state.get("kinds", []), turn.kind.value]
    state["heard"] = [*state.get("heard", []), *(done.text for done in turn.completions)]
    state["first"] = state.get("first") or turn.text
    if len(state["kinds"]) < 3:
        turn.spawn(f"{state['first']}.{len(state['kinds'])}", agent_id="leaf")
        turn.yield_()
    return [state["kinds"], state["heard"]]


class Figures:
    """Proportional memory of the registry's and the session processes, in MB, and how many of these there are."""

    def __init__(self, rt: oc.Runtime) -> None:
        info = rt._query("info")
        self.sessions = {pid: memory_of([pid]) >> 20 for pid in info["counts"]["pids"]}
        self.registry = memory_of([info["pid"]]) >> 20
        self.live_runs = info["counts"]["runs"]
        self.bound = [actor for actor, (state, _, _) in info["counts"]["crew"].items() if state == "bound"]

    def to_json(self) -> dict[str, Any]:
        return {"registry": self.registry, "sessions": sorted(self.sessions.values()), "liveRuns": self.live_runs}


def config(pool: int) -> dict[str, Any]:
    defaults = {"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}, "maxConcurrent": pool}
    return {"agents": {"defaults": defaults}, "ray": {"pool": {"max": pool, "prewarm": pool, "maxGrowthMb": 64}}}


def ask_all(rt: oc.Runtime, count: int, text: str) -> list[Any]:
    with ThreadPoolExecutor(ASKERS) as threads:
        return list(threads.map(lambda n: rt.ask(f"keeper-{n}", f"{text} {n}", timeout=100).value, range(count)))


def keep_and_ask_again(rt: oc.Runtime, count: int, pool: int) -> dict[str, Any]:
    """Every session takes a turn; when all are passive, every one takes another."""
    began = time.monotonic()
    first = ask_all(rt, count, "first")
    between = time.monotonic()
    assert first == [[n, "message", [f"first {n}"], [f"first {n}"]] for n in range(count)]
    eventually(lambda: not Figures(rt).bound, what="all sessions are passive")
    figures = Figures(rt)
    second = ask_all(rt, count, "second")
    ended = time.monotonic()
    both = [[f"first {n}", f"second {n}"] for n in range(count)]
    assert second == [[n, "message", both[n], both[n]] for n in range(count)]
    for n in range(0, count, max(1, count // 20)):
        key = f"agent:keeper-{n}:main"
        rows = eventually(lambda k=key: rows if len(rows := rt.history(k)) == 4 else None)  # type: ignore[misc]
        assert [row["role"] for row in rows] == ["user", "assistant"] * 2
        assert [row["text"] for row in rows if row["role"] == "user"] == both[n]
    after = Figures(rt)
    assert len(after.sessions) <= pool
    return {
        "sessions": count,
        "pool": pool,
        "firstPerSecond": round(count / (between - began)),
        "secondPerSecond": round(count / (ended - between)),
        "allPassive": figures.to_json(),
        "after": after.to_json(),
    }


def whole(rows: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The transcript, once its last row is there."""
    return rows if rows and rows[-1]["role"] == "assistant" else None


def yield_and_wake(rt: oc.Runtime, count: int, pool: int) -> dict[str, Any]:
    """Every session yields twice and is woken twice, on fewer processes than there are waiting sessions."""
    before = Figures(rt)
    began = time.monotonic()
    receipts = [rt.spawn(f"job {n}", "yielder") for n in range(count)]
    results = [rt.result(receipt, timeout=600) for receipt in receipts]
    took = time.monotonic() - began
    for n, result in enumerate(results):
        heard = [f"did job {n}.1", f"did job {n}.2"]
        assert result.raise_for_status().value == [["task", "wake", "wake"], heard]
    for n in range(0, count, max(1, count // 20)):
        rows = eventually(lambda k=results[n].session_key: whole(rt.history(k)))  # type: ignore[misc]
        ends = [row for row in rows if row.get("type") == "task_completion"]
        assert [row["result"] for row in ends] == [f"did job {n}.1", f"did job {n}.2"]
    after = Figures(rt)
    assert len(after.sessions) <= pool
    return {
        "yielders": count,
        "pool": pool,
        "turnsPerSecond": round(5 * count / took),
        "before": before.to_json(),
        "after": after.to_json(),
    }


def proof(at_rest: AtRest, count: int, pool: int, yields: int = 1) -> list[dict[str, Any]]:
    agents = [*(keeper(n) for n in range(count)), leaf, yielder]
    with oc.Runtime.start(agents=agents, config=config(pool)) as rt, at_rest(rt):
        asked = keep_and_ask_again(rt, count, pool)
        return [asked, *(yield_and_wake(rt, count, pool) for _ in range(yields)), {"retired": rt.stats().retired}]


def test_thirty_sessions_on_three_processes_keep_state_and_transcript(shared: oc.Runtime, at_rest: AtRest) -> None:
    asked, yielded, _ = proof(at_rest, 30, 3)
    assert asked["after"]["liveRuns"] <= asked["allPassive"]["liveRuns"] + 2
    assert yielded["after"]["liveRuns"] <= yielded["before"]["liveRuns"] + 2


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not LONG, reason="OPENCLAW_RAY_LONG=1")
def test_two_thousand_sessions_on_six_processes_in_flat_memory(shared: oc.Runtime, at_rest: AtRest) -> None:
    """The registry reaches the most that it holds at once in the first rounds; after that it does not grow."""
    asked, *yielded, retired = proof(at_rest, 2_000, 6, yields=4)
    print(json.dumps([asked, yielded, retired], indent=1))
    for figures in (asked["allPassive"], asked["after"], *(round_["after"] for round_ in yielded)):
        assert max(figures["sessions"]) < 150
    assert yielded[-1]["after"]["registry"] - yielded[-2]["before"]["registry"] <= 5
    assert max(yielded[-1]["after"]["sessions"]) - max(yielded[-2]["before"]["sessions"]) <= 5
    assert asked["after"]["liveRuns"] < 20
