"""On real processes: waiting for a message, and steering (SPEC.md B3, B4, G4)."""

from __future__ import annotations

import pytest
import yield_agents

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

pytestmark = pytest.mark.ray


@pytest.fixture(autouse=True)
def _known(rt: oc.Runtime) -> None:
    rt.register(yield_agents.AGENTS)


def test_a_sub_agent_that_waits_for_a_message_has_no_process_and_goes_on_as_the_same_run(rt: oc.Runtime) -> None:
    receipt = rt.spawn("the door", "yield_waits")
    [row] = eventually(lambda: rt.runs(session=receipt.session_key, state="paused"), what="it waits")
    assert (row["pauseReason"], row["runId"]) == ("message", receipt.run_id)
    assert "pid" not in row
    sent = rt.send(receipt.session_key, "it is open")
    assert (sent.status, sent.run_id) == ("accepted", receipt.run_id)
    assert rt.result(receipt, timeout=20).text == "told it is open after the door"


@pytest.mark.parametrize(
    ("way", "value"), [("join", ["fill it in with 7", True, True]), ("yield", ["fill it in with 7"])]
)
def test_a_steered_child_is_the_child_that_was_spawned(rt: oc.Runtime, way: str, value: list[object]) -> None:
    assert rt.result(rt.spawn(way, "yield_steers"), timeout=20).raise_for_status().value == value
    rows = rt.runs(agent="yield_digs", limit=2)
    assert sorted(row["displayStatus"] for row in rows) == ["done", "killed"]
