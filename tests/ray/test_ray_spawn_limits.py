"""Who may spawn whom, how many and how deep (SPEC.md C; SCENARIOS.md A)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.errors import SpawnForbidden
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray


def asked(rt: oc.Runtime, agent: str, *targets: str | None) -> list[Any]:
    """What an agent was answered for each target."""
    answers: list[Any] = rt.result(rt.spawn("ask", agent, input=targets)).raise_for_status().value
    return answers


# ---------------------------------------------------------------------- children


def test_of_fifty_spawns_at_once_five_are_accepted(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("go", "crowd", input=(gate.place, 50))
    gate.wait_for(6)  # five children, and the parent has asked for all fifty
    children = rt.runs(requester=receipt.session_key)
    assert len(children) == 5
    gate.open()
    answer = rt.result(receipt).raise_for_status().value
    assert answer["accepted"] == ["through"] * 5
    assert len(answer["refused"]) == 45
    assert {tuple(sorted(refused.items())) for refused in answer["refused"]} == {
        tuple(
            sorted(
                {
                    "status": "forbidden",
                    "limit": "maxChildrenPerAgent",
                    "value": 5,
                    "maximum": 5,
                    "path": "agents.defaults.subagents.maxChildrenPerAgent",
                    "text": f"maxChildrenPerAgent reached: 5 of 5 active under {receipt.session_key} "
                    "(agents.defaults.subagents.maxChildrenPerAgent; join children first, or raise it there)",
                }.items()
            )
        )
    }


def test_five_ends_of_five_kinds_free_five_places_at_once(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("go", "five_ends", input=gate.place)
    gate.wait_for(1)
    [to_stop] = [row for row in rt.sessions(requester=receipt.session_key) if row.get("label") == "stop"]
    rt.stop(to_stop["key"])
    answer = rt.result(receipt).raise_for_status().value
    assert answer["full"] == "maxChildrenPerAgent"
    assert answer["ends"] == {
        "ok": "ok",
        "raise": "error",
        "timeout": "timeout",
        "stop": "cancelled",
        "kill": "error",
    }
    assert answer["again"] == [f"again {number}" for number in range(5)]


def test_a_child_that_has_ended_counts_while_its_own_children_live(rt: oc.Runtime, gate: Gate) -> None:
    receipt = rt.spawn("go", "abandoning", input=gate.place)
    gate.wait_for(2)
    eventually(lambda: gate.lines("answer"))
    assert gate.read("answer") == "maxChildrenPerAgent 5"
    gate.open()
    assert rt.result(receipt).ok


# ---------------------------------------------------------------------- depth


def test_the_deepest_session_is_at_the_configured_depth(rt: oc.Runtime) -> None:
    deepest = rt.result(rt.spawn("dig", "digger")).raise_for_status().value
    assert deepest == {
        "depth": 5,
        "role": "leaf",
        "status": "forbidden",
        "limit": "maxSpawnDepth",
        "value": 5,
        "maximum": 5,
        "path": "agents.defaults.subagents.maxSpawnDepth",
        "text": deepest["text"],
    }
    assert "is at depth 5 of 5 (agents.defaults.subagents.maxSpawnDepth; raise it there" in deepest["text"]


def test_a_message_to_a_main_session_begins_at_depth_0(rt: oc.Runtime) -> None:
    for _ in range(2):
        deepest = rt.ask("digger", "dig").value
        assert deepest["depth"] == 5
    [session] = [row for row in rt.sessions(agent="digger", limit=20) if row["key"] == "agent:digger:main"]
    assert session["depth"] == 0


# ---------------------------------------------------------------------- targets


def test_an_open_list_admits_every_configured_agent(rt: oc.Runtime) -> None:
    assert asked(rt, "open_asker", "echo", "main") == ["echo", "main"]


def test_only_agents_on_the_list_are_admitted(rt: oc.Runtime) -> None:
    admitted, refused = asked(rt, "limited", "echo", "main")
    assert admitted == "echo"
    assert (refused["status"], refused["limit"]) == ("forbidden", "allowAgents")
    assert refused["path"] == "agents.entries.limited.subagents.allowAgents"
    assert "allowed: echo" in refused["text"]


def test_an_empty_list_admits_nobody(rt: oc.Runtime) -> None:
    [refused] = asked(rt, "closed", "echo")
    assert (refused["limit"], refused["path"]) == ("allowAgents", "agents.entries.closed.subagents.allowAgents")


def test_an_agent_that_must_name_its_target_is_told_so(rt: oc.Runtime) -> None:
    refused, admitted = asked(rt, "strict", None, "echo")
    assert (refused["limit"], refused["path"]) == (
        "requireAgentId",
        "agents.entries.strict.subagents.requireAgentId",
    )
    assert "name one of" in refused["text"]
    assert admitted == "echo"


def test_an_unknown_agent_is_refused_before_there_is_a_session(rt: oc.Runtime) -> None:
    [refused] = asked(rt, "open_asker", "nobody")
    assert refused["limit"] == "agentId"
    assert "'nobody' is not a configured agent" in refused["text"]
    assert rt.sessions(agent="nobody") == []


def test_a_name_that_is_none_is_an_error(rt: oc.Runtime) -> None:
    [refused] = asked(rt, "open_asker", "No Such Name!")
    assert (refused["status"], refused["limit"]) == ("error", "agentId")


def test_the_operator_is_bound_by_none_of_it(rt: oc.Runtime) -> None:
    receipts = [rt.spawn(f"number {number}", "echo") for number in range(12)]
    assert [rt.result(receipt).text for receipt in receipts] == [f"number {number}" for number in range(12)]


def test_the_operators_unknown_agent_is_named_with_those_there_are(rt: oc.Runtime) -> None:
    with pytest.raises(SpawnForbidden, match=r"'nobody' is not a configured agent \(configured: .*echo") as caught:
        rt.spawn("x", "nobody")
    assert caught.value.receipt.limit == "agentId"


def test_without_a_name_the_default_agent_is_meant(rt: oc.Runtime) -> None:
    assert rt.result(rt.spawn("hello")).text == "main: hello"


def test_a_spawn_for_another_session_hangs_under_that_one(rt: oc.Runtime, gate: Gate) -> None:
    parent = rt.spawn("go", "no_join", input=gate.place)
    gate.wait_for(2)
    extra = rt.spawn("more", "echo", requester=parent.session_key)
    assert rt.result(extra, timeout=30).text == "more"
    [row] = [row for row in rt.sessions(requester=parent.session_key) if row["key"] == extra.session_key]
    assert row["depth"] == 2
    gate.open()
    assert rt.result(parent).ok
