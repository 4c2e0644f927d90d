"""The same agents give the same on a `LocalRuntime` as on Ray, see ``tests/ray/test_ray_same_agents.py``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.runtimes import SHARED_CONFIG
from testing_doubles.same_agents import ALL, SCENARIOS

from openclaw_ray.testing import LocalRuntime, assert_at_rest


@pytest.fixture(scope="module")
def shared_local() -> Iterator[LocalRuntime]:
    with LocalRuntime(agents=ALL, config=SHARED_CONFIG) as runtime:
        yield runtime


@pytest.fixture
def local(shared_local: LocalRuntime) -> Iterator[LocalRuntime]:
    yield shared_local
    assert_at_rest(shared_local)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_local_runtime_gives_what_ray_gives(local: LocalRuntime, name: str) -> None:
    scenario, expected = SCENARIOS[name]
    assert scenario(local) == expected
