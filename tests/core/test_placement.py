"""Where processes are put, and what an autoscaler is asked for, bare (DESIGN.md 9)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from openclaw_ray.core.placement import (
    PLACE,
    PROCESS_BYTES,
    Node,
    amounts,
    asks,
    choose,
    cpus_wanted,
    is_placement,
    largest,
    may_hold,
    node_resource,
)


def nodes(*rooms: float, cpus: float = 4) -> list[Node]:
    return [Node(f"n{i}", {"CPU": cpus}, room * PROCESS_BYTES) for i, room in enumerate(rooms)]


def placed(there: list[Node], word: str, count: int) -> dict[str, int]:
    """How many of ``count`` processes each node gets, one after the other."""
    by_id = {node.id: node for node in there}
    for _ in range(count):
        chosen = choose(list(by_id.values()), word)
        assert chosen is not None
        by_id[chosen.id] = replace(chosen, room=chosen.room - PROCESS_BYTES, ours=chosen.ours + 1)
    return Counter({node.id: node.ours for node in by_id.values()})


# --------------------------------------------------------------------------- the choice


def test_nodes_of_one_size_get_equally_many() -> None:
    assert placed(nodes(100, 100, 100), "SPREAD", 60) == {"n0": 20, "n1": 20, "n2": 20}


def test_processes_are_spread_in_proportion_to_free_memory() -> None:
    assert placed(nodes(10, 20, 70), "SPREAD", 50) == {"n0": 5, "n1": 10, "n2": 35}


def test_a_node_that_is_new_gets_the_next_ones() -> None:
    old = [replace(node, ours=10, room=node.room - 10 * PROCESS_BYTES) for node in nodes(100, 100)]
    assert placed([*old, Node("new", {"CPU": 4}, 100 * PROCESS_BYTES)], "SPREAD", 10)["new"] == 10


def test_a_full_node_and_one_without_cpus_get_none_while_there_are_others() -> None:
    head, full, last = nodes(100, 0.5, 50)
    there = [replace(head, total={"CPU": 0.0}), full, last]
    assert placed(there, "SPREAD", 5) == {"n0": 0, "n1": 0, "n2": 5}
    assert placed(there[:2], "SPREAD", 2) == {"n0": 0, "n1": 2}, "a full one is better than none"
    assert placed([there[0], replace(last, total={})], "SPREAD", 3) == {"n0": 2, "n2": 1}


def test_packing_fills_one_node_before_the_next() -> None:
    assert placed(nodes(3, 3, 3), "PACK", 7) == {"n0": 3, "n1": 3, "n2": 1}


@pytest.mark.parametrize(("there", "word"), [(nodes(9), "SPREAD"), (nodes(9, 9), "DEFAULT"), ([], "PACK")])
def test_what_is_no_choice_is_left_to_ray(there: list[Node], word: str) -> None:
    assert choose(there, word) is None


# --------------------------------------------------------------------------- what is asked for


def test_what_is_usual_and_what_is_nothing_make_no_class_of_its_own() -> None:
    assert asks({"num_cpus": 0.0}, "SPREAD", "SPREAD") == ()
    assert asks({}, "PACK", "SPREAD") == ((PLACE, "PACK"),)
    both = asks({"slot": 1.0, "num_gpus": 0.5}, "node:head", "SPREAD")
    assert amounts(both) == {"slot": 1.0, "num_gpus": 0.5}


@pytest.mark.parametrize(
    ("word", "good"),
    [("SPREAD", True), ("PACK", True), ("node:10.0.0.7", True), ("spread", False), ("node:", False), (" PACK", False)],
)
def test_words_for_a_place(word: str, good: bool) -> None:
    assert is_placement(word) is good


def test_a_node_is_asked_for_by_rays_own_name_for_it() -> None:
    assert list(node_resource("node:10.0.0.7")) == ["node:10.0.0.7"]
    assert list(node_resource("node:head")) == ["node:__internal_head__"]
    assert node_resource("PACK") == {}


def test_one_node_must_hold_all_of_it() -> None:
    two = [Node("a", {"CPU": 8}, 0), Node("b", {"CPU": 2, "GPU": 1}, 0)]
    assert may_hold({"CPU": 8}, two)
    assert may_hold({"CPU": 2, "GPU": 1}, two)
    assert not may_hold({"CPU": 10}, two)
    assert not may_hold({"CPU": 4, "GPU": 1}, two)
    assert largest({"CPU": 10, "GPU": 1, "TPU": 1}, two) == {"CPU": 8, "GPU": 1, "TPU": 0}


# --------------------------------------------------------------------------- demand


def test_an_autoscaler_is_asked_for_cpus_in_proportion_and_for_none_when_few_are_at_work() -> None:
    assert cpus_wanted(300, 100, 100, 4) == 12
    assert cpus_wanted(300, 100, 300, 12) == 12, "what was asked for has come, and is kept while it is used"
    assert cpus_wanted(101, 100, 100, 4) == 5
    assert cpus_wanted(100, 100, 300, 12) == 0
    assert cpus_wanted(5, 0, 0, 4) == 0
