"""``sessions send``: the reply on standard output, what became of it on standard error, and the exit status."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import openclaw_ray
from openclaw_ray.cli.main import run
from openclaw_ray.core.errors import SpawnForbidden
from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.sent import SendStatus, Sent
from openclaw_ray.testing import LocalRuntime

BOB = "agent:bob:main"


class Live:
    """What the command uses of a connected runtime."""

    name, root_key = "r", "agent:main:driver:me"

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.asked: list[tuple[Any, ...]] = []
        self.answer: Sent | Exception = Sent(SendStatus.OK, "run1", BOB, "hello\x07", turns=5, ended="limit reached")

    def send(self, to: str | None, message: str, seconds: float, **options: Any) -> Sent:
        self.asked.append((to, message, seconds, {k: v for k, v in options.items() if v is not None}))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None: ...


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    runtime = Live(tmp_path)
    monkeypatch.setattr(openclaw_ray, "Runtime", SimpleNamespace(connect=lambda name: runtime), raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "a:1")
    return runtime


def send(*words: str) -> int:
    return run(["sessions", "send", *words, "--name", "r"])


def test_the_reply_is_printed_and_how_it_ended_is_told(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert send("bob", "hi") == 0
    said = capsys.readouterr()
    assert said.out == "hello\ufffd\n"
    assert f"ok (run run1 of {BOB}, 5 turns of replies, limit reached)" in said.err
    assert live.asked == [("bob", "hi", 30.0, {})]


def test_json_is_the_answer_of_the_tool(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert send("w1", "hi", "--label", "--agent", "bob", "--timeout", "0", "--mode", "notify", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ended"] == "limit reached"
    assert live.asked == [(None, "hi", 0.0, {"label": "w1", "agent_id": "bob", "mode": "notify"})]


@pytest.mark.parametrize("status", [SendStatus.ERROR, SendStatus.TIMEOUT])
def test_a_turn_that_failed_has_exit_code_1(
    status: SendStatus, live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    live.answer = Sent(status, "run1", BOB, error="it raised")
    assert send("bob", "hi") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "it raised" in said.err


def test_a_refusal_names_the_rule(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.answer = SpawnForbidden(Receipt("forbidden", error="no (tools.sessions.visibility is tree)"))
    assert send("bob", "hi", "--from", "agent:alice:main") == 1
    assert "tools.sessions.visibility is tree" in capsys.readouterr().err
    assert live.asked[0][3] == {"requester": "agent:alice:main"}


# ---------------------------------------------------------------------- one rule at every entrance


@openclaw_ray.agent(id="prober", spawns=False)
def prober(turn: openclaw_ray.SyncTurn) -> list[str]:
    """What the tool and the turn's own call say of a session that it may not use."""
    said = [str(turn.call("sessions_send", sessionKey=BOB, message="x")["error"])]
    try:
        turn.send(BOB, "x")
    except SpawnForbidden as error:
        said.append(str(error.receipt.error))
    return said


@openclaw_ray.agent(id="bob", spawns=False)
def bob(turn: openclaw_ray.SyncTurn) -> str:
    return "hello"


@pytest.mark.parametrize("visibility", ["tree", "all"])
def test_a_forbidden_pair_is_refused_with_one_reason_by_tool_turn_runtime_call_command_and_a_stale_step(
    visibility: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allow = {"agentToAgent": {"allow": ["prober"]}} if visibility == "all" else {}
    key = "agent:prober:main"
    with LocalRuntime([prober, bob], {"tools": {"sessions": {"visibility": visibility}, **allow}}) as rt:
        reasons = rt.ask("prober", "go", timeout=20).value
        with pytest.raises(SpawnForbidden) as caught:
            rt.send("bob", "x", requester="prober")
        reasons.append(str(caught.value.receipt.error))
        called = rt.call("sessions.send", {"key": "bob", "message": "x", "requesterSessionKey": key})
        reasons.append(called["error"])

        live = SimpleNamespace(
            name="r", root_key=rt.root_key, state_dir=tmp_path, send=rt.send, close=lambda: None
        )
        monkeypatch.setattr(openclaw_ray, "Runtime", SimpleNamespace(connect=lambda name: live), raising=False)
        monkeypatch.setenv("RAY_ADDRESS", "a:1")
        assert send("bob", "x", "--from", "prober") == 1
        printed = capsys.readouterr()
        assert printed.out == ""

        assert len(set(reasons)) == 1
        [reason] = set(reasons)
        assert reason in " ".join(printed.err.split())
        assert ("visibility" if visibility == "tree" else "agentToAgent") in reason

        # who says that it is that session, without being its turn, gets nothing either
        local = rt._local
        process = next(iter(local.sessions.values()))
        for activation in (f"{local.core.s.sessions[key].session_id}.1", "other.7"):
            admit = Admit(
                "raw", "", "raw-s", "send", key, "x", activation, expects=False, send=SendAsk(BOB, wait=False)
            )
            future: Future[Receipt] = Future()
            process.courier.admit([(admit, future)])
            receipt = future.result(20)
            assert (receipt.status, receipt.error) == ("error", f"the turn {activation} that asked for this has ended")
        assert not rt.runs(agent="bob")
        assert local.core.s.exchanges == {}
