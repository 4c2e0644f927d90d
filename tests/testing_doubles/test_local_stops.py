"""Stops in whole trees without Ray: who may stop whom by its tools, the calls of the gateway, what an asker is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import LocalRuntime, assert_at_rest, eventually

ANYBODY = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent
def waits(turn: oc.SyncTurn) -> str:
    """Until it is stopped; with what it is told to have below."""
    for label, below in (turn.input or {}).items():
        turn.spawn("wait", agent_id="waits", label=label, input=below)
    turn.progress("up")
    while True:
        turn.check()
        time.sleep(0.002)


@oc.agent
def family(turn: oc.SyncTurn) -> Any:
    """Two children: one with a child of its own, and ``armed``, which calls its tools as it is told."""
    other = turn.spawn("wait", agent_id="waits", label="sibling", input={"nephew": {}})
    turn.spawn("try", agent_id="armed", label="armed", input=(turn.session.key, other.session_key, other.run_id))
    [done] = turn.join([child for child in turn._port.children() if child.agent_id == "armed"])
    killed = turn.call("subagents", action="kill", target="sibling")
    late = turn.call("subagents", action="kill", target="sibling")
    return {**done.result.raise_for_status().value, "killed": killed.to_json(), "late": late.to_json()}


@oc.agent
def armed(turn: oc.SyncTurn) -> Any:
    """Tries to end what is not below it."""
    parent, sibling, run = turn.input
    root = turn.session.key
    words = [parent, sibling, run, root, turn.run_id, "sibling", "last", "1", "all", "*", "armed", "family"]
    answers = {word: turn.call("subagents", action="kill", target=word).to_json() for word in words}
    with_children = turn.spawn("wait", agent_id="waits", label="mine", input={"deep": {}})
    while not turn.call("subagents").to_json()["active"][0]["pendingDescendants"]:
        time.sleep(0.002)
    own = turn.call("subagents", action="cancel", taskId=with_children.run_id)
    return {"answers": list(answers.values()), "own": own.to_json(), "me": turn.session.key}


@oc.agent
async def chats(turn: oc.Turn) -> str:
    """A main session that waits with a child, unless it is asked for something short."""
    if turn.text == "short":
        return "short"
    await turn.spawn("wait", agent_id="waits", label="child")
    await turn.join()
    return "never"


@oc.agent
async def stops_above(turn: oc.Turn) -> str:
    """Asks the runtime itself for what its tools refuse."""
    report = turn._port.stop([turn.input])[0]
    try:
        return str(report.result(10))
    except oc.NotControlled as error:
        return f"{type(error).__name__}: {error.target}"


@oc.agent(spawns=False)
def short(turn: oc.SyncTurn) -> str:
    return "short"


@oc.agent
async def patient(turn: oc.Turn) -> Any:
    """Waits by its tool: for what ends, and for what does not in time; then takes the ends as if it had not."""
    quick = await turn.spawn("go", agent_id="short", expects_completion_message=turn.input)
    first = await turn.call("subagents", action="wait", taskIds=[quick.run_id], timeoutSeconds=20)
    slow = await turn.spawn("wait", agent_id="waits")
    second = await turn.call("subagents", action="wait", timeoutSeconds=0)
    killed = await turn.call("subagents", action="kill", taskId=slow.run_id)
    third = await turn.call("subagents", action="wait", runIds=[slow.run_id])
    ends = await turn.join()
    reasons = [each["reason"] for each in (first, second, third)]
    return {"reasons": reasons, "killed": killed.status, "ends": [done.result.status.value for done in ends]}


AGENTS = [short, patient, waits, family, armed, chats, stops_above]


@pytest.fixture
def rt() -> Iterator[LocalRuntime]:
    with LocalRuntime(agents=AGENTS, config=ANYBODY) as runtime:
        yield runtime
        runtime.stop(runtime.root_key, timeout=10)
        assert_at_rest(runtime)


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def chat(rt: LocalRuntime, threads: ThreadPoolExecutor, *more: str) -> list[Any]:
    """The main session at work with a child, and messages in line behind it."""
    asked = [threads.submit(rt.ask, "chats", "go")]
    eventually(lambda: rt.runs(agent="waits", state="running"))
    for text in more:
        asked.append(threads.submit(rt.ask, "chats", text))
        eventually(lambda: len(rt.runs(agent="chats")) == len(asked))
    return asked


def states(rt: LocalRuntime, agent: str) -> list[str]:
    return [row["state"] for row in rt.runs(agent=agent)][::-1]


# ---------------------------------------------------------------------- tools


def test_a_child_that_aims_at_its_sibling_its_parent_and_itself_ends_nobody(rt: LocalRuntime) -> None:
    """SCENARIOS.md 28: and goes on itself."""
    seen = rt.result(rt.spawn("go", "family"), timeout=30).raise_for_status().value
    words = [answer["status"] for answer in seen["answers"]]
    assert words[:5] == ["forbidden"] * 5
    assert words[5:8] == ["error"] * 3
    assert [(answer["status"], answer["killed"]) for answer in seen["answers"][8:10]] == [("ok", 0)] * 2
    assert words[10:] == ["error"] * 2
    assert (seen["own"]["status"], seen["own"]["killed"], seen["own"]["cascadeKilled"]) == ("cancelled", 1, 1)
    killed = seen["killed"]
    assert (killed["status"], killed["labels"], killed["cascadeKilled"]) == ("ok", ["sibling"], 1)
    assert (seen["late"]["status"], seen["late"]["killed"]) == ("done", 0)


@pytest.mark.parametrize("told", [True, False])
def test_a_wait_takes_no_end_away(rt: LocalRuntime, told: bool) -> None:
    seen = rt.result(rt.spawn("go", "patient", input=told), timeout=30).raise_for_status().value
    assert (seen["reasons"], seen["killed"]) == (["completed", "timeout", "attention"], "ok")
    assert sorted(seen["ends"]) == (["cancelled", "ok"] if told else ["cancelled"])


def test_the_runtime_refuses_what_a_tool_was_not_asked_about(rt: LocalRuntime) -> None:
    stranger = rt.spawn("wait", "waits")
    said = rt.result(rt.spawn("go", "stops_above", input=stranger.run_id), timeout=30).text
    assert said == f"NotControlled: {stranger.run_id}"
    assert rt.stop(stranger.session_key, timeout=10).stopped == 1


# ---------------------------------------------------------------------- what an asker is told


def test_an_answer_that_was_stopped_comes_with_the_report(rt: LocalRuntime, beside: ThreadPoolExecutor) -> None:
    [asked] = chat(rt, beside)
    report = rt.stop("agent:chats:main", timeout=10)
    error = asked.exception(10)
    assert isinstance(error, oc.Stopped)
    assert isinstance(error, oc.RunCancelled)
    assert error.report == report
    assert (error.report.stopped, {row.outcome for row in error.report.rows}) == (2, {"stopped"})
    assert (error.status, error.session_key) == ("cancelled", "agent:chats:main")
    assert "2 runs stopped (0 forced)" in str(error)


def test_a_stop_of_the_root_is_told_to_the_asker_too(rt: LocalRuntime, beside: ThreadPoolExecutor) -> None:
    [asked] = chat(rt, beside)
    rt.stop(rt.root_key, timeout=10)
    error = asked.exception(10)
    assert isinstance(error, oc.Stopped)
    assert (error.report.key, error.report.stopped) == (rt.root_key, 2)


# ---------------------------------------------------------------------- calls


def test_an_abort_of_a_session_leaves_the_messages_in_line(rt: LocalRuntime, beside: ThreadPoolExecutor) -> None:
    first, second = chat(rt, beside, "short")
    said = rt.call("sessions.abort", {"key": "agent:chats:main"}, timeout=10)
    assert (said["ok"], said["aborted"], len(said["runIds"])) == (True, True, 2)
    assert (said["stop"]["stopped"], said["stop"]["key"]) == (2, "agent:chats:main")
    assert isinstance(first.exception(10), oc.Stopped)
    assert second.result(10).text == "short"
    assert states(rt, "waits") == ["cancelled"]


def test_an_abort_may_clear_the_line(rt: LocalRuntime, beside: ThreadPoolExecutor) -> None:
    asked = chat(rt, beside, "short", "short")
    said = rt.call("sessions.abort", {"sessionKey": "agent:chats:main", "clearQueued": True}, timeout=10)
    assert said["stop"]["stopped"] == 4
    assert [type(each.exception(10)) for each in asked] == [oc.Stopped] * 3


def test_an_abort_of_a_chat_is_of_its_present_run_alone(rt: LocalRuntime, beside: ThreadPoolExecutor) -> None:
    first, second = chat(rt, beside, "short")
    said = rt.call("chat.abort", {"sessionKey": "agent:chats:main"}, timeout=10)
    assert (len(said["runIds"]), said["stop"]["stopped"]) == (1, 1)
    error = first.exception(10)
    assert isinstance(error, oc.Stopped)
    assert [row.session_key for row in error.report.rows] == ["agent:chats:main"]
    assert second.result(10).text == "short"
    assert states(rt, "waits") == ["running"]


@pytest.mark.parametrize("name", ["sessions.abort", "chat.abort"])
def test_an_abort_of_a_run_takes_its_children_along(rt: LocalRuntime, beside: ThreadPoolExecutor, name: str) -> None:
    first, second = chat(rt, beside, "short")
    run = rt.runs(agent="chats")[-1]["runId"]
    with pytest.raises(oc.ToolInputError, match=r"runId: run .* is of agent:chats:main, not of agent:waits:main"):
        rt.call(name, {"key": "agent:waits:main", "runId": run})
    said = rt.call(name, {"key": "agent:chats:main", "runId": run}, timeout=10)
    assert said["runIds"][0] == run or run in said["runIds"]
    assert said["stop"]["stopped"] == 2
    assert isinstance(first.exception(10), oc.Stopped)
    assert second.result(10).text == "short"
    again = rt.call(name, {"runId": run}, timeout=10)
    assert (again["ok"], again["aborted"], again["runIds"]) == (True, False, [])


def test_lists_and_pages_have_the_gateways_envelopes(rt: LocalRuntime) -> None:
    for _ in range(3):
        assert rt.ask("chats", "short", timeout=10).text == "short"
    page = rt.call("sessions.history", {"key": "agent:chats:main", "limit": 2})
    assert (len(page["messages"]), page["hasMore"], page["nextOffset"]) == (2, True, 2)
    older = rt.call("chat.history", {"sessionKey": "agent:chats:main", "limit": 100, "offset": page["nextOffset"]})
    assert (older["hasMore"], "nextOffset" in older) == (False, False)
    listed = rt.call("sessions.list", {"agentId": "chats"})
    assert (listed["count"], listed["sessions"][0]["key"], listed["hasMore"]) == (1, "agent:chats:main", False)
    with pytest.raises(KeyError):
        rt.call("sessions.history", {"key": "agent:nobody:main"})


def test_a_session_is_deleted_by_its_call(rt: LocalRuntime) -> None:
    receipt = rt.spawn("wait", "waits")
    said = rt.call("sessions.delete", {"key": receipt.session_key}, timeout=10)
    assert (said["deleted"], said["stop"]["stopped"]) == (True, 1)
    with pytest.raises(oc.DeleteRefused):
        rt.call("sessions.delete", {"key": rt.root_key})


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("sessions.abort", {}, "sessions.abort: key: it is required, unless a runId"),
        ("chat.abort", {}, "chat.abort: key: it is required, unless a runId"),
        ("sessions.delete", {}, "sessions.delete: key: it is required"),
        ("sessions.abort", {"key": "a", "clearQueue": True}, "did you mean clearQueued"),
        ("sessions.abort", {"key": "a", "clearQueued": "yes"}, "clearQueued: it is of type boolean"),
        ("sessions.abort", {"key": "a", "runId": "r", "clearQueued": True}, "with runId only that run"),
        ("chat.abort", {"sessionKey": 3}, "sessionKey: it is of type string"),
        ("sessions.list", {"limit": 0}, "a whole number from 1 to 1000"),
        ("sessions.list", {"status": "alive"}, "it is one of"),
    ],
)
def test_what_is_not_in_the_table_is_refused(rt: LocalRuntime, name: str, params: dict[str, Any], words: str) -> None:
    with pytest.raises(oc.ToolInputError, match=words):
        rt.call(name, params)


def test_a_call_that_there_is_not_is_told_with_the_nearest(rt: LocalRuntime) -> None:
    with pytest.raises(oc.UnknownCall, match=r"'sessions.abrot'; did you mean sessions.abort\? \(calls: chat.abort, "):
        rt.call("sessions.abrot")


# ---------------------------------------------------------------------- maps


def test_items_of_a_map_under_a_stop_are_cancelled(rt: LocalRuntime) -> None:
    results: list[oc.Result[Any]] = []
    mapping = threading.Thread(target=lambda: results.extend(rt.map("waits", [{}] * 5, width=2)))
    mapping.start()
    eventually(lambda: len(rt.runs(agent="waits", state="running")) == 2)
    rt.stop(rt.root_key, timeout=10)
    mapping.join(10)
    assert [result.status for result in results] == ["cancelled"] * 5
