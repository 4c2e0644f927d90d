"""``sessions send``: the reply on standard output, what became of it on standard error, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import openclaw_ray
from openclaw_ray.cli.main import run
from openclaw_ray.core.errors import SpawnForbidden
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.sent import SendStatus, Sent

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
