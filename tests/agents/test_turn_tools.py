"""The tools that a turn calls, over a port without a runtime."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_port import FakePort
from turn_drive import Drive

from openclaw_ray.agents.tools import TOOLS
from openclaw_ray.core.allowed_agents import AllowedAgents
from openclaw_ray.core.errors import Cancelled, ToolInputError, UnknownTool
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.subagent_rows import ChildFacts

CHILD = ChildFacts("run-1", "agent:w:subagent:1", "w", "running", "count to three", 1_000, "pending", "counter")

# ---------------------------------------------------------------------- which tools


def test_a_tool_that_there_is_not_is_named_with_those_there_are(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(UnknownTool, match=r"'spawn' \(tools: agents_list, session_status, sessions, "):
            await turn.call("spawn")
        with pytest.raises(UnknownTool):
            turn.tools.spawn  # noqa: B018 - looking it up is what is tested
        assert not hasattr(turn.tools, "sessions_search")
        assert hasattr(turn.tools, "sessions_spawn")
        assert list(turn.tools) == [
            "agents_list",
            "session_status",
            "sessions",
            "sessions_history",
            "sessions_list",
            "sessions_send",
            "sessions_spawn",
            "sessions_yield",
            "subagents",
        ]
        assert "subagents" in turn.tools
        assert len(turn.tools) == 9
        assert set(turn.tools) <= set(dir(turn.tools))

    drive.ok(body, port)
    assert port.log == []


def test_each_tool_describes_its_parameters_as_a_schema(drive: Drive) -> None:
    async def body(turn: Any) -> None:
        described = {each["name"]: each for each in turn.tools.describe()}
        assert set(described) == set(TOOLS)
        assert all(each["description"] for each in described.values())
        spawn = described["sessions_spawn"]["parameters"]
        assert spawn["required"] == ["task"]
        assert spawn["additionalProperties"] is False
        assert set(spawn["properties"]) == {
            "task",
            "taskName",
            "label",
            "agentId",
            "runTimeoutSeconds",
            "expectsCompletionMessage",
            "completionTarget",
            "cleanup",
            "tools",
            "model",
            "thinking",
            "cwd",
            "context",
            "lightContext",
            "attachments",
            "attachAs",
            "sandbox",
            "thread",
            "mode",
        }
        assert spawn["properties"]["runTimeoutSeconds"]["minimum"] == 0
        assert described["agents_list"]["parameters"]["properties"] == {}
        assert json.loads(json.dumps(described)) == described

    drive.ok(body)


def test_a_call_after_a_stop_ends_the_turn_and_asks_nothing(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        port.cancel()
        with pytest.raises(Cancelled):
            await turn.call("subagents")

    drive(body, port)
    assert port.log == []


# ---------------------------------------------------------------------- sessions_spawn


def test_an_accepted_spawn_is_a_status_object(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call(
            "sessions_spawn", task="count", taskName="counter", label=" C ", agentId="w", runTimeoutSeconds=30
        )
        made = result.to_json()
        assert made.pop("note")
        assert made == {
            "status": "accepted",
            "runId": "run-1",
            "childSessionKey": "key-run-1",
            "mode": "run",
            "context": "isolated",
            "expectsCompletionMessage": True,
            "taskName": "counter",
        }
        assert (result.status, result.ok, result.error) == ("accepted", True, None)
        assert result["runId"] == result["run_id"] == result.receipt.run_id
        with pytest.raises(KeyError):
            result["nothing"]
        assert json.loads(json.dumps(result.to_json()))["status"] == "accepted"

    drive.ok(body, port)
    [request] = port.requests
    assert (request.task, request.agent_id, request.label, request.task_name) == ("count", "w", "C", "counter")
    assert (request.timeout, request.expects, request.route) == (30, True, "spawn")


def test_a_program_may_write_the_parameters_its_own_way(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        assert (await turn.tools.sessions_spawn(task="x", task_name="a", agent="w", run_timeout_seconds=0)).ok

    drive.ok(body, port)
    [request] = port.requests
    assert (request.task_name, request.agent_id, request.timeout) == ("a", "w", 0)


def test_a_refusal_of_the_runtime_is_a_result_with_the_figures(drive: Drive, port: FakePort) -> None:
    port.answer = lambda request: Receipt(
        "forbidden", error="maxChildrenPerAgent reached", limit="maxChildrenPerAgent", value=5, maximum=5
    )

    async def body(turn: Any) -> None:
        result = await turn.call("sessions_spawn", task="x")
        assert result.to_json() == {"status": "forbidden", "error": "maxChildrenPerAgent reached [5/5]"}
        assert not result.ok
        assert result.receipt.limit == "maxChildrenPerAgent"

    drive.ok(body, port)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"taskName": "last"}, "reserved"),
        ({"agentId": "No Such!"}, "not an agent id"),
        ({"mode": "session"}, "needs thread: true"),
        ({"cwd": "m"}, "absolute path"),
    ],
)
def test_what_cannot_be_as_asked_is_a_result_before_anything_is_asked(
    drive: Drive, port: FakePort, params: dict[str, Any], text: str
) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("sessions_spawn", task="x", **params)
        assert result.status == "error"
        assert text in result.error

    drive.ok(body, port)
    assert port.log == []


@pytest.mark.parametrize("params", [{}, {"task": " "}, {"task": "x", "to": "me"}, {"task": "x", "tusk": "y"}])
def test_a_call_that_is_no_call_raises_and_asks_nothing(drive: Drive, port: FakePort, params: dict[str, Any]) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError, match="sessions_spawn"):
            await turn.call("sessions_spawn", **params)

    drive.ok(body, port)
    assert port.log == []


def test_a_spawned_child_can_be_joined_by_its_receipt(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> str:
        result = await turn.call("sessions_spawn", task="x")
        port.settle("run-1", "three")
        [done] = await turn.join([result.receipt])
        return str(done.text)

    assert drive.ok(body, port).outcome.text == "three"


def test_a_child_that_nobody_hears_of_is_not_waited_for(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("sessions_spawn", task="x", expectsCompletionMessage=False)
        assert result["expectsCompletionMessage"] is False
        port.views["children"] = [facts("run-1", delivery="not_required")]
        assert (await turn.call("sessions_yield")).status == "error"

    drive.ok(body, port)


# ---------------------------------------------------------------------- sessions_yield


def test_a_yield_ends_the_turn_and_leaves_its_message_in_the_transcript(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.call("sessions_spawn", task="x")
        await turn.call("sessions_yield", message="then add them up")
        raise AssertionError("not reached")

    ended = drive(body, port)
    assert (ended.yielded, ended.outcome.state, ended.outcome.text) == (True, RunState.SUCCEEDED, None)
    [row] = port.rows
    assert row.role == "tool"
    assert json.loads(row.text) == {
        "tool": "sessions_yield",
        "status": "yielded",
        "message": "then add them up",
        "pending": 1,
    }


def test_a_yield_waits_for_children_of_earlier_turns(drive: Drive, port: FakePort) -> None:
    port.born("old")

    async def body(turn: Any) -> None:
        await turn.tools.sessions_yield()

    assert drive(body, port).yielded
    assert json.loads(port.rows[0].text)["message"] == "Turn yielded."


@pytest.mark.parametrize(
    ("params", "text"),
    [({}, "nothing pending"), ({"acknowledgment": "soon"}, "nothing pending")],
)
def test_a_yield_that_cannot_be_is_a_result_and_the_turn_goes_on(
    drive: Drive, port: FakePort, params: dict[str, Any], text: str
) -> None:
    port.views["children"] = []

    async def body(turn: Any) -> str:
        result = await turn.call("sessions_yield", **params)
        assert (result.status, result.ok) == ("error", False)
        assert text in result.error
        return "went on"

    ended = drive.ok(body, port)
    assert (ended.outcome.text, ended.yielded, port.rows) == ("went on", False, [])


def test_a_turn_without_children_of_its_own_is_told_of_those_of_earlier_turns(drive: Drive, port: FakePort) -> None:
    port.views["children"] = [facts("r1"), facts("r2", state="paused"), facts("r3", state="succeeded", pending=1)]

    async def body(turn: Any) -> str:
        result = await turn.call("sessions_yield")
        assert result.status == "already_pending"
        rows = [(row["runId"], row["childSessionKey"], row["state"]) for row in result["pendingChildren"]]
        assert rows == [
            ("r1", "agent:w:subagent:r1", "running"),
            ("r2", "agent:w:subagent:r2", "paused"),
            ("r3", "agent:w:subagent:r3", "completing"),
        ]
        return "went on"

    assert drive.ok(body, port).outcome.text == "went on"


def facts(run: str, *, state: str = "running", delivery: str = "pending", pending: int = 0) -> ChildFacts:
    return ChildFacts(run, f"agent:w:subagent:{run}", "w", state, "x", 1, delivery, pending=pending)


def test_a_yield_waits_for_children_or_a_message_and_nothing_else(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError, match="message"):
            await turn.call("sessions_yield", waitFor="rain")

    drive.ok(body, port)


# ---------------------------------------------------------------------- subagents, agents_list


def test_the_list_shows_the_children_of_the_session(drive: Drive, port: FakePort) -> None:
    port.views["children"] = [CHILD]

    async def body(turn: Any) -> None:
        result = await turn.call("subagents")
        assert (result.status, result["total"], result["recent"]) == ("ok", 1, [])
        assert result["requesterSessionKey"] == result["callerSessionKey"] == turn.session.key
        assert result["callerIsSubagent"] is True
        [row] = result["active"]
        assert (row["runId"], row["label"], row["status"]) == ("run-1", "counter", "running")
        assert '"counter" (running' in result["text"]

    drive.ok(body, port, depth=1)


def test_how_long_an_ended_child_is_shown_is_capped(drive: Drive, port: FakePort) -> None:
    port.views["children"] = []

    async def body(turn: Any) -> None:
        assert "last 1440 minutes" in (await turn.call("subagents", recentMinutes=100_000))["text"]
        assert "last 30 minutes" in (await turn.call("subagents", action="list"))["text"]
        with pytest.raises(ToolInputError, match="recentMinutes"):
            await turn.call("subagents", recentMinutes=0)

    drive.ok(body, port)


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (None, {"status": "accepted", "runId": "run-1+", "mode": "restart"}),
        (Receipt("done", "run-1"), {"status": "done", "runId": "run-1"}),
        (
            Receipt("rate_limited", error="too soon", retry_after=1.5),
            {"status": "rate_limited", "error": "too soon", "retryAfterMs": 1500},
        ),
        (Receipt("forbidden", error="no"), {"status": "forbidden", "error": "no"}),
    ],
)
def test_a_steer_is_what_the_registry_says(
    drive: Drive, port: FakePort, answer: Receipt | None, fields: dict[str, Any]
) -> None:
    port.views["children"] = [CHILD]
    if answer is not None:
        port.steers["run-1"] = answer

    async def body(turn: Any) -> None:
        result = await turn.call("subagents", action="steer", target="counter", message="faster")
        assert {name: result[name] for name in fields} == fields
        assert result.ok is (fields["status"] in ("accepted", "done"))
        assert (result.receipt is not None) is (answer is None)

    drive.ok(body, port)
    assert port.log == ["look children", "steer run-1: faster"]


@pytest.mark.parametrize("message", ["", " ", None])
def test_a_steer_has_a_message(drive: Drive, port: FakePort, message: str | None) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError, match="message"):
            await turn.call("subagents", action="steer", target="last", message=message)

    drive.ok(body, port)
    assert port.log == []


def test_a_steer_is_of_one_child_and_of_four_thousand_characters(drive: Drive, port: FakePort) -> None:
    port.views["children"] = [CHILD]
    port.views["kin"] = []

    async def body(turn: Any) -> None:
        long = await turn.call("subagents", action="steer", target="last", message="x" * 4_001)
        assert (long.status, "[4001/4000]" in str(long.error)) == ("error", True)
        assert (await turn.call("subagents", action="steer", target="all", message="x")).status == "error"

    drive.ok(body, port)
    assert not any(line.startswith("steer") for line in port.log)


def test_a_sub_agent_may_yield_for_a_message_and_needs_no_children(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        await turn.call("sessions_yield", waitFor="message", acknowledgment=" I wait ")

    ended = drive(body, port, depth=1)
    assert (ended.yielded, ended.waits_for, ended.acknowledgment) == (True, "message", "I wait")
    row = json.loads(port.rows[0].text)
    assert (row["waitFor"], row["acknowledgment"], row["pending"]) == ("message", "I wait", 0)


def test_a_top_level_session_may_not_yield_for_a_message(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        result = await turn.call("sessions_yield", waitFor="message")
        assert (result.status, "no sub-agent" in str(result.error)) == ("error", True)

    drive.ok(body, port, depth=0)
    assert port.rows == []


def test_an_action_that_is_none_is_no_call(drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError, match="list, wait, cancel"):
            await turn.call("subagents", action="dance")
        with pytest.raises(ToolInputError, match="target"):
            await turn.call("subagents", target="last")

    drive.ok(body, port)


def test_the_agents_that_may_be_named_are_listed(drive: Drive, port: FakePort) -> None:
    port.views["agents"] = [AllowedAgents("worker", True, False, ("worker", "docs"))]

    async def body(turn: Any) -> None:
        result = await turn.call("agents_list")
        assert (result["requester"], result["allowAny"], result["require_agent_id"]) == ("worker", True, False)
        assert [(each["id"], each["configured"]) for each in result["agents"]] == [("worker", True), ("docs", True)]
        assert "status" not in result.to_json()
        assert result.status == "ok"
        with pytest.raises(ToolInputError, match="parameters: none"):
            await turn.call("agents_list", all=True)

    drive.ok(body, port)


def test_a_wait_for_the_registry_is_ended_by_a_stop(drive: Drive, port: FakePort) -> None:
    port.hold = True

    def stop() -> None:
        assert port.asked.wait(10)
        port.cancel()

    port.thread(stop)

    async def body(turn: Any) -> None:
        await turn.call("subagents")

    assert drive(body, port).outcome.state is RunState.CANCELLED
