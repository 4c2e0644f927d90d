"""Lanes, the memory ceiling and the queue: nothing that can finish is locked out (DESIGN.md 9, PROTOCOL.md 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import agents
import pytest

import openclaw_ray as oc
from openclaw_ray.config import load
from openclaw_ray.core.errors import PoolTooSmall
from openclaw_ray.runtime.starting import fit_limits
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

    AtRest = Callable[[oc.Runtime], AbstractContextManager[oc.Runtime]]

pytestmark = pytest.mark.ray


def config(*, subagents: dict[str, Any], pool: dict[str, Any]) -> dict[str, Any]:
    return {
        "agents": {"defaults": {"subagents": {"allowAgents": ["*"], **subagents}}},
        "ray": {"pool": pool, "stopGraceSeconds": 1},
    }


@pytest.fixture(scope="module")
def _narrow(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    settings = config(subagents={"maxConcurrent": 1, "maxSpawnDepth": 3}, pool={"max": 8, "prewarm": 4})
    with oc.Runtime.start(agents=agents.ALL, config=settings) as runtime:
        yield runtime


@pytest.fixture
def narrow(_narrow: oc.Runtime, at_rest: AtRest) -> Iterator[oc.Runtime]:
    """``maxConcurrent`` 1, depth 3."""
    with at_rest(_narrow) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def _small(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    settings = config(subagents={"maxSpawnDepth": 5}, pool={"max": 6, "prewarm": 2})
    with oc.Runtime.start(agents=agents.ALL, config=settings) as runtime:
        yield runtime


@pytest.fixture
def small(_small: oc.Runtime, at_rest: AtRest) -> Iterator[oc.Runtime]:
    """Six processes, depth 5: the tightest that goes together."""
    with at_rest(_small) as runtime:
        yield runtime


# ---------------------------------------------------------------------- a lane of one


def test_a_chain_that_waits_downwards_ends_in_a_lane_of_one(narrow: oc.Runtime) -> None:
    assert narrow.ask("chain", "go", timeout=60).text == "chain"
    receipt = narrow.spawn("go", "chain", input=["main", "a", "b"][:2])
    other = narrow.spawn("go", "chain", input=["x", "y"])
    assert narrow.result(receipt, timeout=60).text == "main < a < chain"
    assert narrow.result(other, timeout=60).text == "x < y < chain"


def test_the_children_of_a_session_run_one_at_a_time_in_a_lane_of_one(narrow: oc.Runtime, gate: Gate) -> None:
    receipt = narrow.spawn("go", "crowd", input=(gate.place, 3))
    gate.wait_for(2)  # the parent has asked, the first child is here
    waiting = eventually(lambda: len(narrow.stats().waiting) == 2 and narrow.stats().waiting)
    lane = f"subagent:{receipt.session_key}"
    assert sorted(waiting.values()) == [
        f"a slot of lane {lane} (1 of 1); place 1 in the queue",
        f"a slot of lane {lane} (1 of 1); place 2 in the queue",
    ]
    rows = {row["runId"]: row for row in narrow.runs(requester=receipt.session_key)}
    assert {row["state"] for row in rows.values()} == {"queued", "running"}
    assert {run: rows[run]["waitingFor"] for run in waiting} == waiting
    [running] = [row for row in rows.values() if row["state"] == "running"]
    assert running["pid"] > 0
    assert running["node"]
    gate.open()
    assert narrow.result(receipt).value["accepted"] == ["through"] * 3


def test_twenty_queued_children_all_give_results(narrow: oc.Runtime) -> None:
    [result] = narrow.map("sync_map", ["go"])
    assert result.raise_for_status().value == [f"item {i}" for i in range(12)]


def test_a_parent_that_waits_holds_no_slot(narrow: oc.Runtime, gate: Gate) -> None:
    receipt = narrow.spawn("go", "relay", input=gate.place)
    gate.wait_for(1)
    eventually(lambda: {row["pauseReason"] for row in narrow.runs(state="paused")} == {"waiting", "children"})
    gate.open()
    assert narrow.result(receipt).ok


def test_the_deepest_session_is_at_the_depth_of_this_runtime(narrow: oc.Runtime) -> None:
    assert narrow.result(narrow.spawn("dig", "digger")).raise_for_status().value["depth"] == 3


# ---------------------------------------------------------------------- a cap over all


@pytest.fixture
def one_turn(shared: oc.Runtime, at_rest: AtRest) -> Iterator[oc.Runtime]:
    """``ray.maxActiveSessions`` 1."""
    settings = config(subagents={"maxSpawnDepth": 3}, pool={"max": 6, "prewarm": 3})
    settings["ray"]["maxActiveSessions"] = 1
    with oc.Runtime.start(agents=agents.ALL, config=settings) as runtime, at_rest(runtime):
        yield runtime


def test_a_cap_of_one_turn_counts_what_runs_and_not_who_waits(one_turn: oc.Runtime, gate: Gate) -> None:
    receipt = one_turn.spawn("go", "tree", input=(2, 2))
    stays = [result.raise_for_status().value for result in one_turn.map("meet", [(gate.place, 1)] * 6, width=6)]
    assert all(ended <= began for (_, ended), (began, _) in pairwise(sorted(stays)))
    assert one_turn.result(receipt, timeout=60).raise_for_status().value == 7


# ---------------------------------------------------------------------- two CPUs, six processes


def test_three_levels_of_three_end_on_two_cpus(rt: oc.Runtime) -> None:
    receipt = rt.spawn("go", "tree", input=(3, 3))
    assert rt.result(receipt, timeout=90).raise_for_status().value == 1 + 3 + 9 + 27


@pytest.mark.long
def test_six_roots_of_depth_five_end_on_six_processes(small: oc.Runtime) -> None:
    receipts = [small.spawn("go", "tree", input=(4, 2)) for _ in range(6)]
    values = [small.result(receipt, timeout=100).raise_for_status().value for receipt in receipts]
    assert values == [31] * 6
    stats = small.stats()
    assert sum(stats.actors.values()) <= 6


@pytest.mark.long
def test_what_waits_for_a_process_says_so_with_the_figures(small: oc.Runtime, gate: Gate) -> None:
    receipts = [small.spawn("wait", "hold", input=gate.place) for _ in range(8)]
    gate.wait_for(6)
    waiting = eventually(lambda: len(small.stats().waiting) == 2 and small.stats().waiting)
    assert sorted(waiting.values()) == [
        f"an actor (6 bound of ray.pool.max 6; 6 there); place {place} in the queue" for place in (1, 2)
    ]
    assert [row["state"] for row in small.runs(limit=2)] == ["queued", "queued"]
    gate.open()
    assert [small.result(receipt).text for receipt in receipts] == ["through"] * 8


def test_a_root_that_came_late_is_not_starved_by_a_large_one(small: oc.Runtime, gate: Gate) -> None:
    busy = small.spawn("go", "tree", input=(4, 2))
    late = small.spawn("quick", "echo")
    assert small.result(late, timeout=60).text == "quick"
    assert small.result(busy, timeout=90).ok


# ---------------------------------------------------------------------- ceilings that do not go together


def test_a_pool_too_small_for_the_configured_depth_is_refused(shared: oc.Runtime) -> None:
    settings = config(subagents={"maxSpawnDepth": 5}, pool={"max": 3})
    with pytest.raises(PoolTooSmall, match=r"pool\.max 3 .*maxSpawnDepth 5.*set pool\.max to 6"):
        oc.Runtime.start(agents=agents.ALL, config=settings)


def test_a_depth_that_nobody_configured_is_lowered_and_said() -> None:
    limits = load(config(subagents={}, pool={"max": 2})).runtime_limits(cpus=2)
    fitted, ceiling, notes = fit_limits(limits, 2, 1 << 34)
    assert (fitted.max_spawn_depth, ceiling) == (1, 2)
    [note] = notes
    assert note.startswith("maxSpawnDepth lowered from 5 to 1: ray.pool.max is 2")


def test_without_a_ceiling_it_is_what_memory_holds() -> None:
    limits = load({}).runtime_limits(cpus=2)
    assert fit_limits(limits, 2, 550 << 20) == (limits, 10, ())
