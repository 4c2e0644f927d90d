"""Stops by tools and by the gateway's names, over a real runtime (SPEC.md B4, G3, N7; SCENARIOS.md 28)."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import ray

import openclaw_ray as oc
from openclaw_ray.cli.main import run
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray

MAIN = "agent:asked_tree:main"


class Asked:
    """A question on a thread of its own, and what became of it."""

    def __init__(self, rt: oc.Runtime, text: str) -> None:
        self.error: BaseException | None = None
        self.text: str | None = None
        self._thread = threading.Thread(target=self._ask, args=(rt, text))
        self._thread.start()

    def _ask(self, rt: oc.Runtime, text: str) -> None:
        try:
            self.text = rt.ask("asked_tree", text).text
        except oc.OpenClawRayError as error:
            self.error = error

    def end(self) -> Asked:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self


def test_sibling_parent_and_stranger_are_not_a_childs_to_kill(rt: oc.Runtime, gate: Gate) -> None:
    stranger = rt.spawn("wait", "hold", input=gate.place)
    said = rt.result(rt.spawn("go", "arming", input=(str(gate.place), stranger.run_id)), timeout=60)
    seen = said.raise_for_status().value
    assert seen["refused"] == ["forbidden"] * 5
    assert seen["nobody"] == [("ok", 0), ("error", None), ("error", None)]
    assert seen["killed"] == ("ok", ["sibling"], 1)
    assert seen["again"] == ("done", [], 0)
    assert rt.runs(session=stranger.session_key)[0]["state"] == "running"
    assert rt.stop(stranger.session_key).stopped == 1


def test_who_waited_for_an_answer_is_told_what_the_stop_has_ended(rt: oc.Runtime, gate: Gate) -> None:
    asked = Asked(rt, str(gate.place))
    gate.wait_for(2)
    report = rt.stop(MAIN)
    error = asked.end().error
    assert isinstance(error, oc.Stopped)
    assert error.report == report
    assert (report.stopped, len(report.rows)) == (2, 2)


def test_an_awaiting_asker_is_told_the_same(rt: oc.Runtime, gate: Gate) -> None:
    async def work() -> oc.StopReport:
        async with oc.AsyncRuntime.connect(rt.name) as client:
            asked = asyncio.ensure_future(client.ask("asked_tree", str(gate.place)))
            await asyncio.to_thread(gate.wait_for, 2)
            said = await client.call("sessions.abort", {"key": MAIN})
            with pytest.raises(oc.Stopped) as caught:
                await asked
            assert caught.value.report.to_json() == said["stop"]
            return caught.value.report

    assert asyncio.run(work()).stopped == 2


def test_an_abort_leaves_what_is_in_line_and_a_chats_abort_the_children(rt: oc.Runtime, gate: Gate) -> None:
    first = Asked(rt, str(gate.place))
    gate.wait_for(2)
    second = Asked(rt, str(gate.place))
    eventually(lambda: len(rt.runs(agent="asked_tree", state="queued")) == 1)
    said = rt.call("chat.abort", {"sessionKey": MAIN}, timeout=20)
    assert (said["ok"], said["stop"]["stopped"], len(said["runIds"])) == (True, 1, 1)
    assert isinstance(first.end().error, oc.Stopped)
    assert len(rt.runs(agent="hold", state="running")) >= 1  # its child goes on
    gate.wait_for(4)  # the second question has its turn, and a child of its own
    third = Asked(rt, "short")
    eventually(lambda: len(rt.runs(agent="asked_tree", state="queued")) == 1)
    said = rt.call("sessions.abort", {"key": MAIN}, timeout=20)
    assert said["ok"]
    assert isinstance(second.end().error, oc.Stopped)
    assert third.end().text == "short"
    eventually(lambda: not rt.runs(agent="hold", state="running"))


def test_a_task_is_cancelled_by_its_command(
    rt: oc.Runtime, gate: Gate, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", str(ray.get_runtime_context().gcs_address))
    receipt = rt.spawn("wait", "hold", input=gate.place)
    gate.wait_for(1)
    named = ["--name", rt.name, "--json"]
    assert run(["tasks", "list", "--status", "running", *named]) == 0
    assert [json.loads(line)["taskId"] for line in capsys.readouterr().out.splitlines()] == [receipt.run_id]
    assert run(["tasks", "cancel", receipt.run_id, *named]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["task"]["status"], said["stop"]["stopped"]) == ("cancelled", 1)
    assert run(["tasks", "cancel", receipt.run_id, *named]) == 1
    capsys.readouterr()
    run(["tasks", "audit", "--limit", "5", *named])
    assert receipt.run_id not in capsys.readouterr().out
    assert run(["tasks", "maintenance", "--apply", *named]) == 0


def test_the_ledger_of_a_live_runtime(rt: oc.Runtime) -> None:
    receipt = rt.spawn("hello", "echo")
    assert rt.result(receipt).ok

    def row() -> tuple[Any, ...]:
        found: Any = rt.run(receipt.run_id)
        return found["runId"], found["state"], found["deliveryStatus"]

    eventually(lambda: row() == (receipt.run_id, "succeeded", "delivered"))
    assert rt.run("nobody") is None
    assert rt.maintain() == rt.maintain(apply=True) == []
