"""Steering on whole trees, without Ray: who is interrupted, who goes on, and who waits for it (SPEC.md B4, G4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.testing import LocalRuntime, assert_at_rest, eventually

ANYBODY = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent(spawns=False)
async def works(turn: oc.Turn) -> str:
    """For ever, unless it is steered; then it says what it was told, and what it was given at first."""
    if turn.kind is RunKind.MESSAGE and turn.text != "stay":
        return f"{turn.text} with {turn.input}"
    turn.progress("at work")
    await asyncio.sleep(3600)
    return "never"


async def at_work(turn: oc.Turn) -> oc.Receipt:
    """A child that is in its turn."""
    child = await turn.spawn(task="dig", agent_id="works", input=7, label="digger")
    while True:
        [row] = (await turn.call("subagents"))["active"]
        if row["execution"].get("progress") == "at work":
            return child
        await asyncio.sleep(0.005)


@oc.agent
async def steers(turn: oc.Turn) -> dict[str, Any]:
    """Steers its child by its label, and joins the one that it had spawned."""
    child = await at_work(turn)
    steered = await turn.call("subagents", action="steer", target="digger", message="fill it in")
    [done] = await turn.join([child])
    ended = await turn.call("subagents", action="steer", target="digger", message="once more")
    rows = (await turn.call("subagents"))["recent"]
    return {
        "words": [steered.status, ended.status],
        "mode": steered["mode"],
        "same": done.run_id == steered["runId"],
        "replaces": list(done.replaces) == [child.run_id],
        "text": done.text,
        "left": len(await turn.join()),
        "rows": [[row["status"], row["generation"], row["runId"] == done.run_id] for row in rows],
    }


@oc.agent
async def hurries(turn: oc.Turn) -> list[Any]:
    """Steers one twice, by both of its run ids; then stops it by the first."""
    child = await at_work(turn)
    words = []
    for target in (child.run_id, child.run_id, "digger"):
        steered = await turn.call("subagents", action="steer", target=target, message="stay")
        words.append(steered.status)
    assert 0 < steered["retryAfterMs"] <= 2_000
    killed = await turn.call("subagents", action="kill", taskId=child.run_id)
    await turn.join()
    return [*words, killed["killed"]]


@oc.agent
async def yields(turn: oc.Turn) -> str:
    """Steers its child, and is called again for it."""
    if turn.kind is RunKind.WAKE:
        return f"woken by {[done.text for done in turn.completions]}"
    await at_work(turn)
    await turn.call("subagents", action="steer", target="last", message="fill it in")
    turn.yield_()
    raise AssertionError("not reached")


@oc.agent
async def waits(turn: oc.Turn) -> list[str]:
    """Waits for the child by its old run id, while it is steered."""
    child = await at_work(turn)
    await turn.call("subagents", action="steer", target=child.run_id, message="fill it in")
    waited = await turn.call("subagents", action="wait", taskIds=[child.run_id], timeoutSeconds=5)
    await turn.join()
    return [waited["reason"], *(row["status"] for row in waited["tasks"])]


@oc.agent
async def steers_other(turn: oc.Turn) -> list[Any]:
    """Itself, and one that is not its own."""
    return [
        (await turn.call("subagents", action="steer", target=key, message="x")).status
        for key in (turn.session.key, turn.text)
    ]


AGENTS = [works, steers, hurries, yields, waits, steers_other]


@contextlib.contextmanager
def runtime() -> Iterator[LocalRuntime]:
    with LocalRuntime(agents=AGENTS, config=ANYBODY) as rt:
        yield rt
        assert_at_rest(rt)


def test_a_child_that_was_steered_is_joined_as_the_child_that_was_spawned() -> None:
    with runtime() as rt:
        result = rt.result(rt.spawn("go", "steers"), timeout=10)
        assert result.raise_for_status().value == {
            "words": ["accepted", "done"],
            "mode": "restart",
            "same": True,
            "replaces": True,
            "text": "fill it in with 7",
            "left": 0,
            "rows": [["done", 1, True]],
        }
        rows = sorted(rt.runs(agent="works"), key=lambda row: row.get("generation", 0))
        assert [(row["displayStatus"], row["deliveryStatus"]) for row in rows] == [
            ("killed", "not_required"),
            ("done", "delivered"),
        ]
        assert rows[0]["replacedBy"] == rows[1]["runId"]


def test_the_batch_of_a_yield_waits_for_the_run_that_goes_on() -> None:
    with runtime() as rt:
        assert rt.result(rt.spawn("go", "yields"), timeout=10).text == "woken by ['fill it in with 7']"


def test_a_wait_by_the_old_run_id_is_a_wait_for_the_run_that_goes_on() -> None:
    with runtime() as rt:
        assert rt.result(rt.spawn("go", "waits"), timeout=10).value == ["completed", "done"]


def test_a_child_is_steered_once_in_two_seconds_and_stopped_by_any_of_its_run_ids() -> None:
    with runtime() as rt:
        result = rt.result(rt.spawn("go", "hurries"), timeout=10)
        assert result.raise_for_status().value == ["accepted", "rate_limited", "rate_limited", 1]


def test_the_operator_steers_by_key_or_run_and_hears_of_the_run_that_goes_on() -> None:
    with runtime() as rt:
        first, second = (rt.spawn("dig", "works", input=n) for n in (1, 2))
        eventually(lambda: len(rt.runs(agent="works", state="running")) == 2, what="they run")
        steered = [rt.steer(first.session_key, "fill it in"), rt.steer(second.run_id, "fill it in")]
        assert [rt.result(receipt, timeout=5).run_id for receipt in (first, second)] == [r.run_id for r in steered]
        assert rt.result(steered[1], timeout=5).text == "fill it in with 2"
        assert rt.steer(first.run_id, "again").status == "done"
        with pytest.raises(oc.SpawnError, match="nobody"):
            rt.steer("nobody", "again")


def test_nobody_steers_himself_or_a_stranger() -> None:
    with runtime() as rt:
        stranger = rt.spawn("dig", "works")
        result = rt.result(rt.spawn(stranger.session_key, "steers_other"), timeout=10)
        assert result.value == ["forbidden", "forbidden"]
        rt.stop(stranger.session_key)
        rt.result(stranger, timeout=5)


def test_the_transcript_has_both_runs() -> None:
    with runtime() as rt:
        rt.result(rt.spawn("go", "steers"), timeout=10)
        [session] = rt.sessions(agent="works")
        texts = [row["text"] for row in rt.history(session["key"])]
        assert [text for text in texts if text in ("fill it in", "fill it in with 7")] == [
            "fill it in",
            "fill it in with 7",
        ]
        assert "abortedLastRun" not in session


def test_a_session_whose_run_was_stopped_says_so() -> None:
    with runtime() as rt:
        receipt = rt.spawn("dig", "works")
        eventually(lambda: rt.runs(agent="works", state="running"), what="it runs")
        rt.stop(receipt.session_key)
        assert rt.result(receipt, timeout=5).status is oc.ResultStatus.CANCELLED
        assert [row["abortedLastRun"] for row in rt.sessions(agent="works")] == [True]
