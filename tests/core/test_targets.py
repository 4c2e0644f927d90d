"""core.targets: what the conformance cases leave open; they have the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_ray.core.subagent_rows import ChildFacts, list_children
from openclaw_ray.core.targets import resolve

NOW = 1_000_000_000
OLD = NOW - 31 * 60_000


def child(number: int, **more: object) -> ChildFacts:
    facts = ChildFacts(f"run-{number}", f"agent:w:subagent:{number}", "w", "running", "task", NOW - number, "pending")
    return replace(facts, **more)  # type: ignore[arg-type]


def meant(target: str, *children: ChildFacts) -> str:
    found = resolve(target, children, NOW)
    return found.error if found.child is None else found.child.run_id


def test_an_exact_run_id_goes_before_all_names_and_longer_ids() -> None:
    assert meant("run-1", child(1), child(11), child(2, label="run-1")) == "run-1"
    assert meant("run-1", child(10), child(11)) == "ambiguous"


def test_an_exact_task_name_goes_before_an_exact_label() -> None:
    assert meant("docs", child(1, label="docs"), child(2, task_name="docs")) == "run-2"


def test_a_name_that_begins_both_of_one_childs_names_is_one_child() -> None:
    assert meant("do", child(1, label="docs", task_name="docs_part")) == "run-1"


def test_names_and_numbers_are_of_what_a_list_shows_keys_and_ids_of_any_child() -> None:
    past = child(1, state="succeeded", ended_at=OLD, label="past")
    assert [meant(word, past) for word in ("past", "1", "last")] == ["unknown", "invalid_index", "unknown"]
    assert [meant(word, past) for word in ("run-1", "run-", "agent:w:subagent:1")] == ["run-1"] * 3


@pytest.mark.parametrize("number", ["0", "3", "99999999999999999999"])
def test_a_number_that_is_none_says_which_there_are(number: str) -> None:
    found = resolve(number, [child(1), child(2)], NOW)
    assert (found.error, found.text) == ("invalid_index", f"there is no child number {int(number)} (numbers: 1 to 2)")


def test_of_two_runs_of_one_session_the_newest_is_meant() -> None:
    older = child(2, session_key="agent:w:subagent:1", created_at=NOW - 500, label="same")
    newer = child(1, created_at=NOW - 5, label="same")
    assert [meant(word, older, newer) for word in ("same", "agent:w:subagent:1", "1")] == ["run-1"] * 3


def test_an_ambiguous_target_names_run_ids_to_say_instead() -> None:
    found = resolve("part", [child(n, label=f"part {n}") for n in range(1, 9)], NOW)
    assert found.error == "ambiguous"
    assert "means 8 children" in found.text
    assert "(+3)" in found.text


_CHILDREN = st.lists(
    st.builds(
        child,
        st.integers(1, 40),
        created_at=st.integers(NOW - 90 * 60_000, NOW),
        ended_at=st.one_of(st.none(), st.integers(NOW - 90 * 60_000, NOW)),
        pending=st.integers(0, 1),
    ),
    max_size=8,
    unique_by=lambda facts: facts.run_id,
).map(lambda found: [replace(f, state="running" if f.ended_at is None else "succeeded") for f in found])


@given(_CHILDREN)
def test_a_number_means_the_row_of_the_list_that_has_it(children: list[ChildFacts]) -> None:
    listed = list_children(children, NOW, 30)
    for row in (*listed["active"], *listed["recent"]):
        assert meant(str(row["index"]), *children) == row["runId"]


@given(_CHILDREN, st.text(max_size=6))
def test_whatever_is_written_only_a_child_is_ever_meant(children: list[ChildFacts], target: str) -> None:
    found = resolve(target, children, NOW)
    assert (found.child is None) == bool(found.error)
    assert found.child is None or found.child in children
