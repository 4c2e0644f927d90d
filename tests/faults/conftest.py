"""The fault tier: tests that really kill processes (STYLE.md 10).

1. They share one Ray and one runtime, which must be at rest again after each of them; a module that wants
   other settings gives its own `config`. What does not survive (drivers, Ray itself) is done in processes of
   its own; `Driver` starts them.
2. Chances come from ``seed``: 1 by default, ``OPENCLAW_RAY_FAULT_SEED`` for another.
3. The short form runs by default. ``OPENCLAW_RAY_LONG=1`` adds the tests marked ``long`` and makes the rounds
   of the others many (`ROUNDS`); with ``-m long`` the former run alone.
4. Bounds on time are meant for an idle machine, and stretched by its load on a busy one (`within`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_agents import AGENTS, CONFIG, GRACE
from fault_tier import HERE, TIER, Driver, Log, at_rest

import openclaw_ray as oc
from openclaw_ray.testing.leaks import assert_gone


def _is_ours(item: pytest.Item) -> bool:
    return HERE in item.path.parents


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The tier's Ray ends with its last test."""
    if _is_ours(item) and (nextitem is None or not _is_ours(nextitem)):
        TIER.close()


@pytest.fixture(scope="module")
def ray_here() -> str:
    """Address of the tier's Ray."""
    return TIER.address()


@pytest.fixture(scope="module")
def config() -> dict[str, object]:
    """More for section ``ray`` of the runtime's configuration."""
    return {}


@pytest.fixture(scope="module")
def shared(ray_here: str, config: dict[str, object]) -> Iterator[oc.Runtime]:
    """The tier's runtime, or the module's own."""
    if not config:
        yield TIER.runtime()
        return
    ours = {**CONFIG, "ray": {"stopGraceSeconds": GRACE, **config}}
    with oc.Runtime.start(agents=AGENTS, config=ours) as runtime:
        yield runtime
    assert_gone(runtime.name)


@pytest.fixture
def rt(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    """The runtime, at rest again after the test."""
    yield shared
    at_rest(shared)


@pytest.fixture
def seed() -> int:
    """Of all chances."""
    return int(os.environ.get("OPENCLAW_RAY_FAULT_SEED", "1"))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A file in which agents say what they do."""
    return Log(tmp_path / "log")


@pytest.fixture
def drivers() -> Iterator[Callable[..., Driver]]:
    """Starts `Driver`s and ends those that are left."""
    started: list[Driver] = []

    def start(*arguments: str, cwd: str | None = None, **environment: str) -> Driver:
        started.append(Driver(*arguments, cwd=cwd, **environment))
        return started[-1]

    yield start
    for driver in started:
        driver.end()
