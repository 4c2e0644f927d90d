"""`core.named_map`: by what an item is known again, and what the answers to who claims a name mean."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_ray.core.named_map import ClaimAnswer, ClaimWait, check_map_id, item_digest

Word = ClaimWait.Word
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda some: st.lists(some) | st.dictionaries(st.text(), some) | st.frozensets(st.text()) | st.tuples(some, some),
    max_leaves=12,
)


def digest(item: Any, agent: str = "worker") -> bytes:
    return item_digest(agent, item, pickle.dumps)


# ---------------------------------------------------------------------- items


@given(PLAIN)
def test_plain_data_is_known_by_its_content_and_not_by_its_objects(item: Any) -> None:
    again = pickle.loads(pickle.dumps(item))
    assert digest(again) == digest(item) != b""


@given(PLAIN, PLAIN)
def test_what_differs_is_another_item(a: Any, b: Any) -> None:
    if repr(a) != repr(b) and a != b:
        assert digest(a) != digest(b)


def test_alike_is_not_the_same() -> None:
    alike = ["1", b"1", 1, 1.0, True, ["1"], ("1",), ["1", []], [["1"]], {"1": None}, {"1"}, frozenset({"1"})]
    assert len({digest(item) for item in alike}) == len(alike)


def test_the_order_of_a_dicts_keys_does_not_matter_and_that_of_a_list_does() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1, "b": 2}) != digest({"a": 2, "b": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_the_same_item_for_another_agent_is_another() -> None:
    assert digest("x", "a") != digest("x", "b")


def test_an_object_is_known_by_its_pickle() -> None:
    assert digest(range(3)) == digest(range(3)) != digest(range(4))


def test_what_has_no_pickle_has_no_digest_nor_has_what_holds_itself() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert digest(lambda: None) == digest([1, lambda: None]) == digest(endless) == b""


def test_text_that_is_not_unicode_has_one() -> None:
    assert digest("\udcff.txt") not in (b"", digest("?.txt"))


def test_sets_are_known_in_a_process_with_other_hashes() -> None:
    code = (
        "import pickle; from openclaw_ray.core.named_map import item_digest; "
        "print(item_digest('worker', {'of': {'a', 'b', 'c', 'd'}}, pickle.dumps).hex())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, cwd=cwd(), capture_output=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert said == {digest({"of": {"a", "b", "c", "d"}}).hex().encode()}


def cwd() -> str:
    import openclaw_ray

    return str(openclaw_ray.__path__[0]).removesuffix("openclaw_ray")


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\0b", 7, None, "x" * 129])
def test_a_name_that_is_none_is_refused(name: object) -> None:
    with pytest.raises(ValueError, match="map_id"):
        check_map_id(name)


def test_a_name_is_any_line_of_text() -> None:
    assert check_map_id("nightly: 2026/7, ünïcode") == "nightly: 2026/7, ünïcode"


# ---------------------------------------------------------------------- claims


def busy(heard: int, *, claim: str = "c1", client: str = "other", leased: bool = True) -> ClaimAnswer:
    return ClaimAnswer("busy", claim, client, leased=leased, heard=heard)


def words(*answers: ClaimAnswer, every: float = 0.1) -> list[ClaimWait.Word]:
    wait = ClaimWait("me")
    return [wait.heard(answer, n * every) for n, answer in enumerate(answers)]


def test_a_name_that_is_free_is_claimed_at_once() -> None:
    assert words(ClaimAnswer("ok")) == [Word.GO]


def test_a_silent_holder_may_be_dead_and_is_waited_for_until_its_lease_is_over() -> None:
    assert words(*[busy(7)] * 1_000, ClaimAnswer("wait"), ClaimAnswer("ok"))[-3:] == [Word.WAIT, Word.WAIT, Word.GO]


def test_a_holder_that_speaks_is_alive() -> None:
    assert words(busy(7), busy(7), busy(9)) == [Word.WAIT, Word.WAIT, Word.REFUSE]


def test_one_step_more_may_have_been_on_its_way_when_the_holder_died() -> None:
    assert words(busy(7), busy(8), busy(8), ClaimAnswer("ok")) == [Word.WAIT, Word.WAIT, Word.WAIT, Word.GO]


def test_another_holder_is_looked_at_anew() -> None:
    assert words(busy(7), busy(90, claim="c2"), busy(91, claim="c2"), busy(92, claim="c2")) == [
        Word.WAIT,
        Word.WAIT,
        Word.WAIT,
        Word.REFUSE,
    ]


def test_the_owner_of_the_runtime_is_alive_without_a_word() -> None:
    assert words(busy(7, leased=False), busy(7, leased=False), every=0.9) == [Word.WAIT, Word.WAIT]
    assert words(busy(7, leased=False), busy(7, leased=False), every=1.0) == [Word.WAIT, Word.REFUSE]


def test_what_is_held_for_the_asker_itself_has_ended_and_is_waited_for() -> None:
    assert words(busy(7, client="me"), busy(90, client="me"), ClaimAnswer("ok"))[1:] == [Word.WAIT, Word.GO]
