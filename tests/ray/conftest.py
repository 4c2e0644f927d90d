"""After each test: nothing of the runtime it used is left bound, queued, held or running (STYLE.md 11).

A test that fails half-way may leave its sessions at work; they are stopped, so that the next one has a clean runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import openclaw_ray as oc
    from openclaw_ray.testing.leaks import ProcessMark


@pytest.fixture
def rt(shared: oc.Runtime, mark: ProcessMark) -> Iterator[oc.Runtime]:
    """The shared runtime."""
    yield from _at_rest(shared, mark)


@pytest.fixture
def at_rest(mark: ProcessMark) -> Callable[[oc.Runtime], Any]:
    """A context manager for runtimes of a module's own."""

    @contextmanager
    def checked(runtime: oc.Runtime) -> Iterator[oc.Runtime]:
        yield from _at_rest(runtime, mark)

    return checked


def _at_rest(runtime: oc.Runtime, mark: ProcessMark) -> Iterator[oc.Runtime]:
    from openclaw_ray.testing.leaks import assert_at_rest

    yield runtime
    try:
        assert_at_rest(runtime)
        mark.assert_none(tools_only=True)
    except AssertionError:
        for run in runtime.runs(limit=100):
            if run["state"] in ("queued", "running", "paused") and run["sessionKey"] != runtime.root_key:
                runtime.stop(run["sessionKey"])
        raise
