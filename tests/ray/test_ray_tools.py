"""The tools of a turn, over a real runtime (SPEC.md B1, B3, B4, B7; SCENARIOS.md 17, 56)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import openclaw_ray as oc
from openclaw_ray.core.errors import SpawnError

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


def test_an_agent_spawns_looks_and_yields_by_its_tools(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("use your tools", "toolbox", input=gate.place)
    gate.wait_for(2)
    [run] = rt.runs(requester=receipt.session_key)
    [session] = rt.sessions(requester=receipt.session_key)
    for row in (run, session):
        assert (row["label"], row["taskName"], row["agentId"]) == ("L", "part", "hold_at")
    gate.open()
    seen = rt.result(receipt).raise_for_status().value
    early, accepted, taken, nobody, no_name, listed, cancel, agents, ended = seen["said"]

    assert early == {"status": "error", "error": early["error"]}
    assert "nothing pending" in early["error"]
    assert (accepted["status"], accepted["runId"], accepted["childSessionKey"], accepted["taskName"]) == (
        "accepted",
        run["runId"],
        run["sessionKey"],
        "part",
    )
    assert taken["status"] == "error"
    assert f"label 'L' is in use by {run['sessionKey']}" in taken["error"]
    assert nobody["status"] == "forbidden"
    assert "'nobody' is not a configured agent" in nobody["error"]
    assert no_name["status"] == "error"
    assert "not an agent id" in no_name["error"]

    [active] = listed["active"]
    assert (active["runId"], active["label"], active["taskName"]) == (run["runId"], "L", "part")
    assert (active["status"], active["execution"]["state"]) == ("running", "running")
    assert (listed["total"], listed["recent"], listed["callerSessionKey"]) == (1, [], receipt.session_key)
    assert cancel["status"] == "error"
    assert "no child of this session is meant by 'x'" in cancel["error"]
    assert agents == {"denied": "agents_list", "rule": "sub-agent"}  # it is a child of the operator's

    assert seen["kind"] == "wake"
    assert seen["ends"] == [("L", "held")]
    assert seen["rows"] == [
        {"tool": "sessions_yield", "status": "yielded", "message": "look at what came", "pending": 1}
    ]
    assert (ended["active"], [row["status"] for row in ended["recent"]]) == ([], ["done"])
    assert seen["again"] == "accepted"  # the label is free after the end


def test_a_top_level_session_lists_the_agents_that_it_may_name(rt: oc.Runtime) -> None:
    agents = rt.ask("lists_agents", "whom?", timeout=30).value
    assert agents["allowAny"] is True
    assert agents["agents"][0]["id"] == agents["requester"] == "lists_agents"
    assert {"echo", "hold_at"} <= {agent["id"] for agent in agents["agents"]}


def test_the_tools_are_awaited_in_a_coroutine(rt: oc.Runtime) -> None:
    seen = rt.result(rt.spawn("use your tools", "async_toolbox")).raise_for_status().value
    assert seen["text"] == "hello"
    assert [(row["runId"], row["status"]) for row in seen["recent"]] == [(seen["run"], "done")]
    assert "(tools: agents_list, session_status, sessions, sessions_history, " in seen["unknown"]


def test_a_label_in_use_is_refused_to_the_operator_too(rt: oc.Runtime, gate: Gate) -> None:
    first = rt.spawn("wait", "hold", input=gate.place, label="only one", task_name="one")
    with pytest.raises(SpawnError, match=r"label 'only one' is in use by agent:hold:subagent:") as caught:
        rt.spawn("wait", "hold", input=gate.place, label="only one")
    assert caught.value.receipt.limit == "label"
    gate.open()
    assert rt.result(first).ok
    assert rt.result(rt.spawn("wait", "hold", input=gate.place, label="only one")).ok
