"""`eventually`: waiting in tests."""

from __future__ import annotations

import pytest

from openclaw_ray.testing.eventually import eventually


def test_it_gives_the_first_true_value() -> None:
    values = iter([0, [], "yes"])
    assert eventually(lambda: next(values), every=0) == "yes"


def test_an_assertion_means_not_yet() -> None:
    tries = []

    def three() -> None:
        tries.append(None)
        assert len(tries) == 3

    assert eventually(three, every=0) is None
    assert len(tries) == 3


def test_what_was_seen_last_is_in_the_message() -> None:
    with pytest.raises(AssertionError, match=r"the count: not within 0 s; last seen: \[\]"):
        eventually(list, 0, what="the count")


def test_the_last_assertion_is_in_the_message_and_its_cause() -> None:
    def never() -> None:
        raise AssertionError("still three left")

    with pytest.raises(AssertionError, match="never: not within 0 s; still three left") as caught:
        eventually(never, 0)
    assert isinstance(caught.value.__cause__, AssertionError)


def test_another_error_ends_the_waiting() -> None:
    def broken() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError):
        eventually(broken, 60)
