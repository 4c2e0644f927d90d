"""Many sessions, flat and in trees, while all kinds of processes die at random: nothing is lost, doubled or left over.

OPENCLAW_RAY_LONG=1 pytest tests/faults/test_long_chaos.py -s       a thousand sessions, one death a second
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_agents import AGENTS, CONFIG
from fault_tier import LONG, Log, at_rest, whole

import openclaw_ray as oc
from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.testing import assert_gone, chaos
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(900 if LONG else 120, method="signal")]

ITEMS, TREES, YIELDERS, CHILDREN = (700, 50, 25, 3) if LONG else (36, 3, 3, 3)
SESSIONS = ITEMS + (TREES + YIELDERS) * (1 + CHILDREN)
SECONDS = 0.2 if LONG else 0.05
KINDS = ("busy", "session", "registry", "hub", "pool")
WAYS = ("SIGKILL", "SIGSEGV", "exit")
UNENDED = ["queued", "running", "paused"]


def _died(result: oc.Result[object]) -> bool:
    return result.error is not None and result.error.cause == Cause.PROCESS_DIED


@pytest.mark.long
def test_under_a_death_a_second_each_session_is_accounted_for_once_and_nothing_is_left(
    ray_here: str, log: Log, seed: int, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with oc.Runtime.start(agents=AGENTS, config=CONFIG, state_dir=state) as rt:
        began = time.monotonic()
        with (
            chaos(rt, seed=seed, rate=1.0, kinds=KINDS, ways=WAYS, most=None if LONG else 6) as killer,
            ThreadPoolExecutor() as threads,
        ):
            flat = threads.submit(rt.map, "count", [(log.path, i, SECONDS) for i in range(ITEMS)], width=4)
            trees = threads.submit(
                rt.map, "parent", [(log.path, f"p{i}", CHILDREN, SECONDS) for i in range(TREES)], width=2
            )
            yielders = threads.submit(rt.map, "yielder", [(log.path, CHILDREN, SECONDS)] * YIELDERS, width=2)
            items, tops, wakes = flat.result(), trees.result(), yielders.result()
        seconds = time.monotonic() - began

        # each once, in its place, with its result or the truth about its end
        assert [result.index for result in items] == list(range(ITEMS))
        assert [i for i, r in enumerate(items) if r.text != f"r{i}" and not _died(r)] == []
        for results in (tops, wakes):
            assert [result.index for result in results] == list(range(len(results)))
            assert [result.error for result in results if not (result.ok or _died(result))] == []
        said = Counter(line for line in log.lines() if not line.startswith("child."))
        assert [line for line, times in said.items() if times > 1] == [], "run twice"
        assert {str(r.index) for r in items if r.ok} <= set(said)

        # the children of parents that died go on and end by themselves; then nothing is left
        eventually(lambda: not rt.runs(state=UNENDED), 60, every=0.1)
        at_rest(rt)
        rows = _all_rows(rt)
        assert len(rows) == len({row["runId"] for row in rows}) <= SESSIONS
        states = Counter(row["state"] for row in rows)
        assert set(states) <= {"succeeded", "failed"}
        causes = Counter(row["error"].get("death", {}).get("kind") for row in rows if "error" in row)
        assert None not in causes, "a run failed that no death explains"
        whole(state)
        blows = Counter(f"{blow.victim} by {blow.way}" for blow in killer.blows)
    assert_gone(rt.name)
    assert blows

    whole(state)
    with oc.Runtime.start(agents=AGENTS, config=CONFIG, state_dir=state) as again:
        assert again.map("count", [(log.path, "next", 0)])[0].ok
        assert Counter(row["state"] for row in _all_rows(again)) == states + Counter(succeeded=1)
        at_rest(again)
    print(f"\n{len(rows)} sessions in {seconds:.0f} s, {dict(states)}; deaths {dict(causes)}; blows {dict(blows)}")


def _all_rows(rt: oc.Runtime) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    while page := rt.runs(limit=500, offset=len(rows)):
        rows += page
    return rows
