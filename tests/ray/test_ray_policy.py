"""Tool policy over a real runtime: refused at dispatch, in each process, by rules that travel (SPEC.md E)."""

from __future__ import annotations

import asyncio

import pytest
from policy_agents import POLICY_AGENTS
from support.runtimes import SHARED_CONFIG

import openclaw_ray as oc
from openclaw_ray.testing import eventually

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def _registered(shared: oc.Runtime) -> None:
    shared.register(POLICY_AGENTS)


@pytest.mark.usefixtures("_registered")
def test_what_a_spawn_denies_is_denied_in_the_processes_of_all_below_it(rt: oc.Runtime) -> None:
    receipt = rt.spawn("deeper", "policy_looks", tools={"deny": ["subagents"]})
    seen = rt.result(receipt, timeout=60).raise_for_status().value
    rule = ("inherited", f"tools of the spawn by {rt.root_key}")
    assert seen["listed"] == ["sessions", "sessions_history", "sessions_list", "sessions_spawn", "sessions_yield"]
    assert (seen["denied"], seen["below"]["denied"]) == (rule, rule)
    assert seen["below"]["listed"] == ["sessions_yield"]
    assert seen["view"] == rt.tools(receipt.session_key)
    [below] = rt.sessions(requester=receipt.session_key)
    assert below["inheritedToolDeny"] == ["subagents"]
    assert below["inheritedToolAllow"] == [["sessions_yield", "subagents"]]
    assert rt.tools(below["key"]) == seen["below"]["view"]


@pytest.mark.usefixtures("_registered")
def test_a_denied_call_fails_the_run_that_does_not_mind_it(rt: oc.Runtime) -> None:
    result = rt.result(rt.spawn("go", "policy_calls"), timeout=60)
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type == "ToolDenied"
    assert "'agents_list' is denied to agent:policy_calls:subagent:" in result.error.message
    assert "by the sub-agent rule (built in: agents_list)" in result.error.message


@pytest.mark.usefixtures("_registered")
def test_rules_change_in_a_running_runtime_and_an_async_client_sees_them(rt: oc.Runtime) -> None:
    async def seen() -> oc.ToolView:
        async with oc.AsyncRuntime.connect(rt.name) as client:
            return await client.tools("policy_looks")

    try:
        assert "subagents" in rt.tools("policy_looks")
        (change,) = rt.reload_config({**SHARED_CONFIG, "tools": {"deny": ["subagents"]}})
        assert (change.name, change.takes_effect) == ("tools.deny", "now")
        assert rt.tools("policy_looks").decide("subagents").path == "tools.deny"
        assert asyncio.run(seen()) == rt.tools("policy_looks")
        assert rt.ask("policy_looks", "look", timeout=60).value["denied"] == ("global", "tools.deny")
    finally:
        rt.reload_config(SHARED_CONFIG)
    assert rt.ask("policy_looks", "look", timeout=60).value["denied"] is None
    with pytest.raises(KeyError):
        rt.tools("agent:nobody:main")


@pytest.mark.usefixtures("_registered")
def test_a_messages_sender_binds_its_turn_and_the_children_of_that_in_their_processes(rt: oc.Runtime) -> None:
    ada = {"channel": "telegram", "id": "7"}
    try:
        rt.reload_config({**SHARED_CONFIG, "tools": {"toolsBySender": {"id:7": {"deny": ["subagents"]}}}})
        seen = rt.ask("policy_looks", "deeper", timeout=60, sender=ada).value
        assert seen["denied"] == ("sender", "tools.toolsBySender.id:7.deny")
        assert seen["below"]["denied"] == ("inherited", "sender by agent:policy_looks:main")
        assert rt.ask("policy_looks", "look", timeout=60).value["denied"] is None
        assert "subagents" not in rt.tools("policy_looks", sender=ada)
    finally:
        rt.reload_config(SHARED_CONFIG)


@pytest.mark.usefixtures("_registered")
def test_a_turn_in_its_process_takes_a_message_that_steers(rt: oc.Runtime) -> None:
    receipt = rt.spawn("work", "policy_takes")
    eventually(lambda: rt.runs(session=receipt.session_key, state=["running", "paused"]))
    first = rt.send(receipt.session_key, "to the left", 30, mode="steer")
    last = rt.send(receipt.session_key, "stop", 30, mode="steer")
    assert (first.steered, last.steered, last.ended) == (True, True, "steered")
    assert rt.result(receipt, timeout=60).raise_for_status().text == "to the left, stop"
    assert len(rt.runs(session=receipt.session_key, state=["running", "paused", "queued"])) == 0
