"""Who is whose child: counts, marks and walks over ended runs (PROTOCOL.md 6.1, 6.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from openclaw_ray.core import lineage


@dataclass
class Node:
    """A run, as far as lineage looks at it."""

    seq: int
    parent: str = ""
    mark: int = 0
    route: str = "spawn"
    children: dict[str, None] = field(default_factory=dict)
    unsettled: int = 0
    live_below: int = 0


@pytest.fixture
def runs() -> dict[str, Node]:
    """A client's root with two trees: root → a → b → c, and root → d."""
    runs: dict[str, Node] = {"root": Node(1, route="driver")}
    for seq, (run, parent) in enumerate([("a", "root"), ("b", "a"), ("c", "b"), ("d", "root")], start=2):
        runs[run] = Node(seq, parent)
        lineage.born(runs, run, runs[run])
    return runs


def test_a_birth_counts_in_all_that_are_above(runs: dict[str, Node]) -> None:
    assert [(r, n.unsettled, n.live_below) for r, n in runs.items()] == [
        ("root", 2, 4),
        ("a", 1, 2),
        ("b", 1, 1),
        ("c", 0, 0),
        ("d", 0, 0),
    ]


def test_an_end_is_uncounted_and_its_place_in_the_tree_stays(runs: dict[str, Node]) -> None:
    lineage.ended(runs, runs["b"])
    assert (runs["a"].unsettled, runs["a"].live_below, runs["root"].live_below) == (0, 1, 3)
    assert list(lineage.subtree(runs, "a")) == ["a", "b", "c"]


def test_ancestors_come_nearest_first(runs: dict[str, Node]) -> None:
    assert list(lineage.ancestors(runs, runs["c"])) == [runs["b"], runs["a"], runs["root"]]
    assert list(lineage.ancestors(runs, runs["root"])) == []


def test_a_subtree_is_walked_level_by_level(runs: dict[str, Node]) -> None:
    assert list(lineage.subtree(runs, "root")) == ["root", "a", "d", "b", "c"]


def test_a_mark_binds_its_run_and_all_below(runs: dict[str, Node]) -> None:
    runs["a"].mark = 9
    assert {r for r in runs if lineage.bound_by_mark(runs, runs[r])} == {"a", "b", "c"}


def test_the_nearest_mark_counts(runs: dict[str, Node]) -> None:
    runs["a"].mark, runs["b"].mark = 9, 10
    assert lineage.bound_by_mark(runs, runs["c"]) == 10


def test_a_mark_on_a_clients_root_binds_what_was_born_before_it(runs: dict[str, Node]) -> None:
    runs["root"].mark = 9
    runs["late"] = Node(10, "root")
    lineage.born(runs, "late", runs["late"])
    runs["below"] = Node(11, "late")
    lineage.born(runs, "below", runs["below"])
    bound = {r for r in runs if lineage.bound_by_mark(runs, runs[r])}
    assert bound == {"a", "b", "c", "d"}, "neither the root itself nor what came later"


def test_a_walk_ends_where_a_record_is_gone(runs: dict[str, Node]) -> None:
    del runs["b"]
    assert list(lineage.ancestors(runs, runs["c"])) == []
    assert list(lineage.subtree(runs, "a")) == ["a", "b"]
