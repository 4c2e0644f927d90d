"""The same agents give the same on Ray as on a `LocalRuntime`, see ``tests/testing_doubles/test_same_agents.py``."""

from __future__ import annotations

import pytest
from testing_doubles.same_agents import ALL, SCENARIOS

import openclaw_ray as oc

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def with_same_agents(shared: oc.Runtime) -> None:
    shared.register(ALL)


@pytest.mark.usefixtures("with_same_agents")
@pytest.mark.parametrize("name", SCENARIOS)
def test_ray_gives_what_a_local_runtime_gives(rt: oc.Runtime, name: str) -> None:
    scenario, expected = SCENARIOS[name]
    assert scenario(rt) == expected
