"""Waiting for what other processes do, without a sleep in the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["eventually"]

T = TypeVar("T")


def eventually(predicate: Callable[[], T], timeout: float = 10.0, *, every: float = 0.02, what: str | None = None) -> T:
    """Call ``predicate`` until it gives something true, and return that.

    An `AssertionError` that it raises means "not yet", so it may be a function full of asserts; any other
    exception ends the waiting.

    Args:
        predicate: cheap and repeatable; one that returns `None` without raising counts as true.
        timeout: seconds.
        every: seconds between two looks.
        what: what was waited for, for the message.

    Raises:
        AssertionError: not in time; the last thing seen is in the text, and the last assertion its cause.
    """
    until = time.monotonic() + timeout
    while True:
        failed: AssertionError | None = None
        seen: object = None
        try:
            value = predicate()
            if value or value is None:
                return value
            seen = value
        except AssertionError as error:
            failed = error
        if time.monotonic() >= until:
            name = what or getattr(predicate, "__name__", "condition")
            last = str(failed) if failed is not None else f"last seen: {seen!r}"
            raise AssertionError(f"{name}: not within {timeout:g} s; {last}") from failed
        time.sleep(every)
