"""Several nodes (DESIGN.md 9; SCENARIOS.md 74, 83): where sessions are, what they may ask for, nodes that go and come.

One cluster, in a process of its own, goes through all stages; the tests look at what was seen. Three raylets are most
of their time: what needs none is in ``test_placement`` and ``test_rules_7_resources`` below ``tests/core``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fault_tier import HERE, Driver, within

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(300, method="signal")]

SHORT = 3
STAGES = ("spread", "resources", "lose", "late")


def go_through(folder: Path, sessions: int, *stages: str) -> dict[str, Any]:
    """What is seen on a cluster of its own."""
    driver = Driver(str(HERE / "cluster_driver.py"), str(folder), str(sessions), *stages)
    seen: dict[str, Any] = {}
    try:
        while "end" not in seen:
            if (line := driver.line()).startswith("{"):
                seen |= json.loads(line)
                print(line, flush=True)
        driver.leave()
    finally:
        driver.end()
    driver.mark.assert_none(timeout=15)
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The short form: a handful of sessions."""
    return go_through(tmp_path_factory.mktemp("cluster"), SHORT, *STAGES)


# ------------------------------------------------------------------ placement


def check_spread(spread: dict[str, Any], sessions: int) -> None:
    """Each node holds its share, as the system sees it, too; runtime actors are on the head."""
    by_node, raylets = spread["by node"], spread["raylets"]
    most = sessions + sessions // 3 + 1
    assert len(by_node) == 3
    assert sum(by_node.values()) == most
    assert max(by_node.values()) - min(by_node.values()) <= 2
    assert {str(raylets[node]): count for node, count in by_node.items()} == spread["by raylet"]
    assert set(spread["owners"]) == {next(iter(raylets))}
    assert spread["ends"] == {"ok": most + 2}


def test_sessions_are_spread_over_the_nodes_and_the_runtime_is_on_the_head(seen: dict[str, Any]) -> None:
    check_spread(seen["spread"], SHORT)


def test_a_queue_that_waits_for_processes_is_demand_for_cpus_until_it_is_worked_off(seen: dict[str, Any]) -> None:
    """The driver has waited for its end, too."""
    spread = seen["spread"]
    assert spread["demand"] == spread["info"] == 7, "4 CPUs hold 3 sessions, 5 are wanted"


# ------------------------------------------------------------------ resources


def check_resources(found: dict[str, Any], children: int) -> None:
    """Who needs what no node has, or what it is itself kept from by its requester, is told so in time; bosses that wait
    hold nothing of the two slots, each on another node, that their children need."""
    kind, cause, message = found["needy"]
    assert (kind, cause) == ("CannotPlace", "cannot_place")
    assert "needs num_gpus 1 (largest node: 0); lower agents.entries.needy.ray" in message
    assert found["seconds"] <= within(10)
    assert [len(each) for each in found["bosses"]] == [children] * 3
    assert {node for each in found["bosses"] for node in each} <= set(found["with slots"])
    assert "needs far 2 (2 of 2 held by sessions that wait for it)" in found["selfish"]
    assert "agents.entries.selfish.ray" in found["selfish"]


def test_what_can_never_be_placed_is_refused_and_who_waits_holds_nothing(seen: dict[str, Any]) -> None:
    check_resources(seen["resources"], 1)


# ------------------------------------------------------------------ nodes that go and come


def check_lost(lose: dict[str, Any]) -> None:
    """Every item has come to an end, once; each that was lost says so, and by which node."""
    assert lose["indexes"] == list(range(lose["asked"]))
    assert lose["at work there"] >= 1
    assert lose["ok"] == lose["asked"] - len(lose["lost"])
    assert 1 <= len(lose["lost"]) <= lose["at work there"]
    for error in lose["lost"]:
        assert (error["cause"], error["death"]) == ("process_died", {"kind": "node", "node": lose["node"]})
    assert set(lose["left"]) <= {lose["node"]}, "what has ended by itself there before"
    assert lose["twice"] == {}


def test_every_item_is_accounted_for_when_a_node_dies_in_the_middle(seen: dict[str, Any]) -> None:
    check_lost(seen["lose"])


def check_late(late: dict[str, Any]) -> None:
    assert late["there"].get(late["new"], 0) >= 1
    assert late["ends"][late["new"]] == late["there"][late["new"]]


def test_a_node_that_comes_later_gets_work(seen: dict[str, Any]) -> None:
    check_late(seen["late"])


# ------------------------------------------------------------------ the long form


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Sixty sessions at once, and what else crosses nodes."""
    return go_through(tmp_path_factory.mktemp("cluster"), 60, *STAGES, "values", "carried")


@pytest.mark.long
@pytest.mark.timeout(900, method="signal")
def test_sixty_sessions_on_three_nodes(long: dict[str, Any]) -> None:
    check_spread(long["spread"], 60)
    check_resources(long["resources"], 4)
    check_lost(long["lose"])
    check_late(long["late"])


@pytest.mark.long
@pytest.mark.timeout(900, method="signal")
def test_large_values_and_inputs_cross_nodes_by_reference(long: dict[str, Any]) -> None:
    """Read-only where they arrive: they lie in Ray's object store, and nobody has a copy of its own."""
    values = long["values"]
    assert all(values["right"])
    assert not any(values["copied"])
    assert values["nodes"] == 3


@pytest.mark.long
@pytest.mark.timeout(900, method="signal")
def test_a_runtime_env_brings_code_to_each_node(long: dict[str, Any]) -> None:
    assert long["carried"] == {"found": [["carried", "aboard"]], "nodes": 3, "took": long["carried"]["took"]}
