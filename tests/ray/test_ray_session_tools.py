"""One rule of sight at every entrance, over a real runtime and its real store (SCENARIOS.md 41, 52)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from views_agents import AGENTS, PLANTED

import openclaw_ray as oc
from openclaw_ray.testing import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


@pytest.fixture(autouse=True)
def _registered(rt: oc.Runtime) -> None:
    rt.register(AGENTS)


def test_a_stranger_is_out_of_sight_at_every_entrance_and_a_childs_history_is_masked(
    rt: oc.Runtime, gate: Gate
) -> None:
    stranger = rt.spawn("wait", "hold", input=gate.place, label="a stranger")
    gate.wait_for(1)
    key = stranger.session_key
    said = rt.result(rt.spawn("look", "onlooker", input=(rt.name, key)), timeout=60).raise_for_status().value

    assert len(set(said["errors"])) == 1
    assert "tools.sessions.visibility is tree" in said["errors"][0]
    assert said["raw"] == ["stale", "stale", "forbidden", "stale"] * 2
    assert key not in (*said["listed"], *said["bound"])
    assert said["child"] in said["listed"]
    assert said["child"] in said["bound"]
    assert rt.session(key)["label"] == "a stranger"

    assert PLANTED not in json.dumps([said["history"], said["masked"]])
    assert "y" * 100 in said["masked"][1]  # masked, not cut
    assert (said["history"]["contentRedacted"], said["history"]["contentTruncated"]) == (True, True)

    # what is stored is as it was written, whoever looks and however
    row = rt.session(said["child"])
    path = rt.state_dir / "agents" / "planter" / "sessions" / f"{row['sessionId']}.jsonl"
    eventually(lambda: path.read_bytes().count(b"\n") == 5)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.read_bytes().count(PLANTED.encode()) == 4
    assert PLANTED not in json.dumps(rt.call("sessions.history", {"key": said["child"], "includeTools": True}))
    assert PLANTED in json.dumps(rt.call("sessions.history", {"key": said["child"], "includeRaw": True}))
    assert sum(PLANTED in line["text"] for line in rt.history(said["child"])) == 4
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before

    gate.open()
    assert rt.result(stranger).ok


def test_a_session_is_labelled_reset_and_deleted_by_its_calls(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)
    key = receipt.session_key
    entry = rt.call("sessions.patch", {"key": key, "label": "now labelled"})["entry"]
    assert (entry["label"], entry["status"]) == ("now labelled", "running")
    named = {"label": "now labelled"}
    [listed] = rt.call("sessions.list", named)["sessions"]
    with pytest.raises(oc.ResetRefused, match="changed"):
        rt.call("sessions.reset", {"key": key, "sessionId": "another"})
    reset = rt.call("sessions.reset", {"key": key, "sessionId": listed["sessionId"]})
    assert (reset["ok"], reset["stop"]["stopped"]) == (True, 1)
    assert reset["sessionId"] != listed["sessionId"]
    assert rt.call("sessions.delete", {"key": key})["deleted"]
    gone = rt.call("sessions.list", {**named, "archived": True})["sessions"]
    assert [row["key"] for row in gone] == [key]
    assert rt.call("sessions.list", named)["count"] == 0
