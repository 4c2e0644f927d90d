"""Group ``announce``, op ``result``, over the real delivery: what a requester's turn and its transcript come to have.

A child's program says what the case's transcript ends with, ends as the case's outcome says, and is heard of by a
yielded requester. The rules and the protocol are the real ones, on threads. How a text is found in a model's transcript
is `openclaw_ray.core.announce.select_result`'s part, which the group's own tests have, counts of a model's tool calls
among it. ``unknown`` is a run that is lost: its process is gone, and with it all that was known of that. Where no
completion is expected the requester does not wait.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.core.announce import select_result
from openclaw_ray.testing import FakeClock, LocalRuntime, eventually

from .expand import expand
from .match import misfit
from .test_cases import _FILES

_CASES = [
    pytest.param(case, id=case["id"])
    for case in _FILES["announce"]["cases"]
    if case["input"]["op"] == "result"
]
CONFIG = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent(spawns=False)
def child(turn: oc.SyncTurn) -> str | None:
    how, said, error = turn.input
    if how == "error":
        raise RuntimeError(error)
    if how in ("timeout", "killed", "unknown"):
        turn.progress(said or "working")
        while True:
            turn.check()
    return said


@oc.agent
def requester(turn: oc.SyncTurn) -> dict[str, Any]:
    if turn.kind == "message":
        case = json.loads(turn.text)
        turn.spawn(
            "case",
            agent_id="child",
            input=case["child"],
            expects_completion_message=case["expects"],
            run_timeout_seconds=60,
        )
        if not case["expects"]:
            turn.join()
            return {"status": "ok", "text": None}
        turn.yield_()
    [done] = turn.completions
    return {"status": done.result.status.value, "text": done.result.text}


def deliver(case: dict[str, Any]) -> dict[str, Any]:
    """The case's output, as `select_result` has it, from what was delivered."""
    status, killed = case["outcome"]["status"], case["killed"]
    ok = select_result("ok", case["messages"])
    how = "killed" if killed else status
    said = None if ok.missing and ok.result == "(no output)" else ok.result
    for text in ("ANNOUNCE_SKIP", "NO_REPLY", "no_reply"):  # what the child says; the delivery is to judge it
        if text in json.dumps(case["messages"][-1:]):
            said = text
    clock = FakeClock()
    with LocalRuntime(agents=[child, requester], config=CONFIG, clock=clock) as rt:
        asked = {"child": [how, said, case["outcome"].get("error")], "expects": case["expects_completion"]}
        receipt = rt.send("requester", json.dumps(asked), timeout_seconds=0).receipt
        [row] = eventually(lambda: rt.runs(agent="child", state=["running", "succeeded", "failed"]) or False)
        if killed:
            rt.stop(row["sessionKey"])
        elif status == "timeout":
            clock.advance(60)
        elif status == "unknown":
            rt.crash(row["sessionKey"], noticed=False)
            clock.advance(2)  # found to be without a process,
            clock.advance(61)  # and still so after a minute
        heard = rt.result(receipt, timeout=20).raise_for_status().value
        rows = [each for each in rt.history(receipt.session_key) if each.get("type") == "task_completion"]
        [run] = rt.runs(agent="child")
    words = {"lost": "unknown"}  # DESIGN.md 8: what an announce calls it
    out = {
        "status": words.get(heard["status"], heard["status"]),
        "result": heard["text"] or "(no output)",
        "delivery": "deliver" if run["deliveryStatus"] == "delivered" else "suppress",
    }
    assert len(rows) == (1 if out["delivery"] == "deliver" else 0)
    if rows:
        assert (rows[0]["status"], rows[0]["result"]) == (out["status"], rows[0]["result"])
        out["result"] = rows[0]["result"]
    return out


@pytest.mark.parametrize("case", _CASES)
def test_delivered(case: dict[str, Any]) -> None:
    got = deliver(expand(case["input"]))
    if case["input"]["outcome"]["status"] == "timeout":
        del got["result"]  # what was visible is told as partial progress, never as the result
    expected = {name: value for name, value in expand(case["expected"]).items() if name in got}
    assert misfit(expected, got, _FILES["announce"]["unordered"]) is None


def test_there_are_cases() -> None:
    assert len(_CASES) >= 15
