"""The runner itself: expanding and matching as the cases' README writes them."""

from __future__ import annotations

from typing import Any

import pytest

from .expand import expand
from .match import misfit


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ({"$repeat": ["ab", 3]}, "ababab"),
        ({"$concat": ["a", {"$repeat": ["b", 2]}, "c"]}, "abbc"),
        ({"$base64": {"$repeat": ["é", 1]}}, "w6k="),
        ([{"$each": [1, 3], "item": {"id": "r{i}"}}, 9], [{"id": "r1"}, {"id": "r2"}, {"id": "r3"}, 9]),
        ({"a": [1, {"b": {"$repeat": ["x", 2]}}]}, {"a": [1, {"b": "xx"}]}),
    ],
)
def test_written_forms_are_expanded(written: Any, becomes: Any) -> None:
    assert expand(written) == becomes


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"a": None}, {}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 1.0}),
        ({"names": [1, 2]}, {"names": [2, 1]}),
        ({"names": [{"$any_of": [1, 2]}, 1]}, {"names": [1, 2]}),
        ({"$contains": ["b", "c"], "$starts": "a"}, "abc"),
        ({"$range": [1, 2]}, 2),
        ({"$first": 1, "$last": {"$type": "string"}, "$len": 2}, [1, "x"]),
        ({"$absent": True}, None),
    ],
)
def test_outputs_that_fit(expected: Any, got: Any) -> None:
    assert misfit(expected, got, ["names"]) is None


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (1, True),
        (True, 1),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, None),
        ([1, 2], [2, 1]),
        ([1], [1, 2]),
        ({"names": [1, 1]}, {"names": [1, 2]}),
        ({"$not_contains": ["b"]}, "abc"),
        ({"$regex": "^b"}, "abc"),
        ({"$range": [0, 1]}, True),
        ({"$present": True}, None),
        ({"$type": "number"}, "1"),
    ],
)
def test_outputs_that_do_not_fit(expected: Any, got: Any) -> None:
    assert misfit(expected, got, ["names"]) is not None


def test_an_unknown_test_word_is_an_error_of_the_case() -> None:
    with pytest.raises(ValueError, match="unknown test"):
        misfit({"$like": 1}, 1)
