"""Another configuration in a running runtime (DESIGN.md 11, SCENARIOS.md 64)."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.runtimes import SHARED_CONFIG, Gate

import openclaw_ray as oc
from openclaw_ray.config import TakesEffect
from openclaw_ray.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ray


@pytest.fixture
def second_gate(tmp_path: Path) -> Iterator[Gate]:
    place = tmp_path / "second"
    place.mkdir()
    gate = Gate(place)
    yield gate
    gate.open()


def test_the_next_spawn_goes_by_the_new_limits_and_turns_that_run_go_on(
    rt: oc.Runtime, gate: Gate, second_gate: Gate
) -> None:
    before = rt.spawn("go", "crowd", input=(gate.place, 6))
    gate.wait_for(6)  # five children, and the parent has asked for all six
    settings = copy.deepcopy(SHARED_CONFIG)
    settings["agents"]["defaults"]["subagents"]["maxChildrenPerAgent"] = 3
    try:
        (change,) = rt.reload_config(settings)
        assert (change.name, change.old, change.new) == ("agents.defaults.subagents.maxChildrenPerAgent", 5, 3)
        assert change.takes_effect is TakesEffect.NOW

        faulty = {"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 0, "maxSpawnDept": 1}}}}
        with pytest.raises(ConfigError) as caught:
            rt.reload_config(faulty)
        assert len(caught.value.faults) == 2

        after = rt.spawn("go", "crowd", input=(second_gate.place, 6))
        second_gate.wait_for(4)
        gate.open()
        second_gate.open()
        assert rt.result(before, timeout=30).raise_for_status().value["accepted"] == ["through"] * 5
        answer = rt.result(after, timeout=30).raise_for_status().value
        assert answer["accepted"] == ["through"] * 3
        assert {refused["maximum"] for refused in answer["refused"]} == {3}
    finally:
        rt.reload_config(SHARED_CONFIG)
