"""Yielding on whole trees, without Ray: waiting for a message, and the frozen batch (SPEC.md B3)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.errors import CannotWait
from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.testing import FakeClock, LocalRuntime, assert_at_rest, eventually

ANYBODY = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent
async def waits(turn: oc.Turn) -> str:
    """Waits for a word, and says what it was."""
    if turn.kind is RunKind.MESSAGE:
        return f"told {[event.text for event in turn.events]} after {turn.state['before']}"
    turn.state["before"] = turn.text
    await turn.call("sessions_yield", waitFor="message", acknowledgment="I shall wait")
    raise AssertionError("not reached")


@oc.agent
async def asks_above(turn: oc.Turn) -> str:
    """Has a child that waits, and joins it."""
    child = await turn.spawn(task="the door", agent_id="waits")
    turn.progress("spawned", done=1, total=1)
    [done] = await turn.join([child])
    return str(done.result.text)


@oc.agent
async def both(turn: oc.Turn) -> str:
    """Waits for its sleeper and for a word: one line for each turn."""
    lines = turn.state.setdefault("lines", [])
    if turn.kind is RunKind.TASK:
        await turn.spawn(task="zzz", agent_id="sleeper", label="a sleeper")
        turn.yield_(wait_for="message")
    lines.append([str(turn.kind), turn.text, [done.text for done in turn.completions]])
    if turn.kind is RunKind.MESSAGE:
        pending = await turn.call("sessions_yield")
        lines.append([pending.status, [child["wakeArmed"] for child in pending["pendingChildren"]]])
    return json.dumps(lines)


@oc.agent(spawns=False)
async def sleeper(turn: oc.Turn) -> str:
    turn.progress("asleep")
    await asyncio.sleep(3600)
    return "never"


@oc.agent
def top_waits(turn: oc.SyncTurn) -> str:
    refused = turn.call("sessions_yield", waitFor="message")
    with pytest.raises(CannotWait, match="no sub-agent"):
        turn.yield_(wait_for="message")
    return f"{refused.status}: {refused.error}"


@oc.agent
async def says(turn: oc.Turn) -> list[Any]:
    """Tells its child, once that waits, and joins it."""
    child = await turn.spawn(task="the door", agent_id="waits")
    while (await turn.call("subagents"))["active"][0]["status"] != "waiting for external continuation":
        await asyncio.sleep(0.005)
    sent = await turn.call("sessions_send", sessionKey=child.session_key, message="it is open", timeoutSeconds=30)
    [done] = await turn.join([child])
    return [sent.status, sent["runId"] == child.run_id, done.text]


AGENTS = [waits, asks_above, both, sleeper, top_waits, says]


@contextlib.contextmanager
def runtime(**options: Any) -> Iterator[LocalRuntime]:
    with LocalRuntime(agents=AGENTS, config=ANYBODY, **options) as rt:
        yield rt
        assert_at_rest(rt)


def paused(rt: LocalRuntime, agent: str) -> dict[str, Any]:
    """The row of an agent's run that waits for a message."""

    def find() -> list[dict[str, Any]]:
        rows = rt.runs(agent=agent, state="paused")
        return [row for row in rows if row["pauseReason"] == "message"]

    return eventually(find, what=f"{agent} waits for a message")[0]


def test_a_sub_agent_that_waits_goes_on_with_the_operators_message_as_the_same_run() -> None:
    with runtime() as rt:
        receipt = rt.spawn("the door", "waits")
        row = paused(rt, "waits")
        assert row["runId"] == receipt.run_id
        sent = rt.send(receipt.session_key, "it is open")
        assert (sent.status, sent.run_id) == ("accepted", receipt.run_id)
        assert rt.result(receipt, timeout=5).text == "told ['it is open'] after the door"
        said = [(row["role"], row["text"]) for row in rt.history(receipt.session_key)]
        assert ("user", "it is open") in said


def test_the_acknowledgment_is_in_the_event_of_the_pause() -> None:
    with runtime() as rt:
        receipt = rt.spawn("the door", "waits")
        paused(rt, "waits")
        rt.send(receipt.session_key, "it is open")
        rt.result(receipt, timeout=5)
        texts = [event.text for event in rt._local.events_after(0, 0.0) if event.reason == "message"]
        assert texts == ["I shall wait"]


def test_the_end_after_a_message_is_told_to_who_spawned_it_and_not_to_who_sent_it() -> None:
    with runtime() as rt:
        receipt = rt.spawn("go", "asks_above")
        row = paused(rt, "waits")
        rt.send(row["sessionKey"], "it is open")
        assert rt.result(receipt, timeout=5).text == "told ['it is open'] after the door"


def test_an_ask_of_one_that_waits_gives_the_end_of_that_run() -> None:
    with runtime() as rt:
        receipt = rt.spawn("the door", "waits")
        paused(rt, "waits")
        assert rt.ask(receipt.session_key, "it is open", timeout=5).run_id == receipt.run_id
        assert rt.result(receipt, timeout=5).text == "told ['it is open'] after the door"


def test_a_message_before_the_batch_is_complete_leaves_the_wake_owed() -> None:
    with runtime() as rt:
        receipt = rt.spawn("go", "both")
        paused(rt, "both")
        eventually(lambda: rt.runs(agent="sleeper", state="running"), what="the sleeper")
        rt.send(receipt.session_key, "how far?")
        eventually(
            lambda: [r for r in rt.runs(agent="both", state="paused") if r["pauseReason"] == "yielded"],
            what="it waits for its wake",
        )
        rt.stop(rt.runs(agent="sleeper")[0]["sessionKey"])
        lines = json.loads(str(rt.result(receipt, timeout=5).text))
        assert lines == [
            ["message", "how far?", []],
            ["already_pending", [True]],
            ["wake", "", ["(no output)"]],
        ]


def test_a_requester_tells_its_child_by_the_tool_and_waits_for_no_reply() -> None:
    with runtime() as rt:
        value = rt.ask("says", "go", timeout=10).value
        assert value == ["accepted", True, "told ['it is open'] after the door"]


def test_a_stop_and_a_timeout_end_one_that_waits() -> None:
    clock = FakeClock()
    with runtime(clock=clock) as rt:
        first, second = (rt.spawn("x", "waits", run_timeout_seconds=60) for _ in range(2))
        eventually(lambda: len(rt.runs(agent="waits", state="paused")) == 2, what="both wait")
        assert rt.stop(first.session_key).stopped == 1
        clock.advance(61)
        assert rt.result(first, timeout=5).status is oc.ResultStatus.CANCELLED
        assert rt.result(second, timeout=5).status is oc.ResultStatus.TIMEOUT


def test_a_top_level_session_may_not_wait_for_a_message() -> None:
    with runtime() as rt:
        assert str(rt.ask("top_waits", "go", timeout=5).text).startswith("error: waitFor:")
