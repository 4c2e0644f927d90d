"""``run``: one message, one reply, one tree."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openclaw_ray.cli.main import run
from openclaw_ray.cli.run_command import VALUE_MAX_BYTES, value_fields
from openclaw_ray.cli.run_tree import nested_tree, rows_since

APP = """
import threading
import openclaw_ray as oc

@oc.agent
def main(turn: oc.SyncTurn):
    if turn.text == "fail":
        raise ValueError("no good")
    if turn.text == "nothing":
        return None
    if turn.text == "value":
        return {"answer": 42}
    if turn.text == "deaf":
        print("deaf", flush=True)
        while True:
            turn.check()
            threading.Event().wait(0.01)
    return " and ".join(r.text for r in turn.map("leaf", turn.text.split()))

@oc.agent(spawns=False)
def leaf(turn: oc.SyncTurn) -> str:
    return turn.text.upper()

@oc.agent
def other(turn: oc.SyncTurn) -> str:
    return f"other {turn.text}"
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    (tmp_path / "asked_app.py").write_text(APP)
    return str(tmp_path / "asked_app.py")


def test_the_reply_is_all_of_standard_output_and_the_tree_goes_to_standard_error(
    started: list[SimpleNamespace], app: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--app", app, "a b"]) == 0
    captured = capfd.readouterr()
    assert captured.out == "A and B\n"
    assert "main: succeeded" in captured.err
    runtime = started[0].runtime
    assert runtime.calls[0] == {"ask": "main", "text": "a b", "timeout": None}
    assert runtime.closed == [False]
    assert started[0].app_dir == Path(app).parent


def test_json_has_the_outcome_and_the_nested_tree(
    started: list[SimpleNamespace], app: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--app", app, "--json", "--no-progress", "a b"]) == 0
    captured = capfd.readouterr()
    whole = json.loads(captured.out)
    assert (whole["status"], whole["text"], whole["error"], whole["runtimeMs"]) == ("ok", "A and B", None, 1)
    assert (whole["value"], whole["usage"]) == (None, None)
    tree = whole["tree"]
    assert (tree["sessionKey"], tree["agentId"], tree["state"]) == ("agent:main:main", "main", "succeeded")
    assert [(child["agentId"], child["state"], child["children"]) for child in tree["children"]] == [
        ("leaf", "succeeded", []),
        ("leaf", "succeeded", []),
    ]
    assert captured.err == ""


def test_a_failure_is_an_error_with_exit_code_1_and_no_output(
    started: list[SimpleNamespace], app: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--app", app, "fail"]) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "of agent:main:main failed (error): ValueError: no good" in captured.err
    assert run(["run", "--app", app, "--json", "fail"]) == 1
    whole = json.loads(capfd.readouterr().out)
    assert (whole["status"], whole["error"]["message"]) == ("error", "no good")
    assert whole["tree"]["error"]["message"] == "no good"


def test_a_returned_value_is_in_the_json(
    started: list[SimpleNamespace], app: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--app", app, "--json", "value"]) == 0
    assert json.loads(capfd.readouterr().out)["value"] == {"answer": 42}


def test_no_output_is_a_note(started: list[SimpleNamespace], app: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--app", app, "--no-progress", "nothing"]) == 0
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "note: main succeeded and delivered no output\n")


def test_after_the_timeout_everything_is_stopped(
    started: list[SimpleNamespace], app: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--app", app, "--timeout", "0.2", "--json", "deaf"]) == 1
    whole = json.loads(capfd.readouterr().out)
    assert whole["status"] == "timeout"
    assert whole["error"]["message"] == "not settled within 0.2 s (--timeout); everything was stopped"
    assert started[0].runtime.stops == ["agent:main:main"]
    assert run(["run", "--app", app, "--timeout", "0.2", "deaf"]) == 1
    assert "error: agent:main:main: not settled within 0.2 s" in capfd.readouterr().err


def test_the_message_may_come_from_standard_input(
    started: list[SimpleNamespace], app: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"two\nlines\n")))
    assert run(["run", "--app", app, "--agent", "other", "-"]) == 0
    assert capfd.readouterr().out == "other two\nlines\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hello"], "Missing option '--app'"),
        (["--app", "x.py"], "Missing argument 'MESSAGE'"),
        (["--app", "x.py", " "], "the message is empty"),
        (["--app", "/no/app.py", "hello"], "app file /no/app.py is not there"),
        (["--app", "APP", "--agent", "mian", "hello"], "no agent 'mian'; --agent can be: main, leaf, other"),
        (["--app", "APP", "--timeout", "nan", "hello"], "'--timeout'"),
    ],
)
def test_a_wrong_command_line_starts_nothing(
    arguments: list[str], message: str, app: str, started: list[SimpleNamespace], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", *(app if part == "APP" else part for part in arguments)]) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert started == []


def test_a_signal_stops_the_tree_and_the_object_still_comes(program: list[str], app: str) -> None:
    process = subprocess.Popen(
        [*program, "run", "--app", app, "--json", "deaf"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    while b"deaf" not in process.stderr.readline():  # what agents print goes to standard error
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "cancelled"
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, {"value": None}),
        ([1, {"a": None}], {"value": [1, {"a": None}]}),
        ({1, 2}, {"value": "{1, 2}", "valueIsRepr": True}),
        (float("nan"), {"value": "nan", "valueIsRepr": True}),
    ],
)
def test_a_value_is_json_or_its_repr(value: object, expected: dict[str, object]) -> None:
    assert value_fields(value) == expected


def test_a_large_value_is_bounded() -> None:
    shown = value_fields("x" * (VALUE_MAX_BYTES + 1))
    assert shown["valueIsRepr"] is True
    assert len(str(shown["value"])) <= 2_000


def row(number: int, requester: int | None, session: int | None = None) -> dict[str, Any]:
    key = f"s{number if session is None else session}"
    named = {"runId": f"r{number}", "sessionKey": key, "agentId": "a", "state": "succeeded"}
    return named if requester is None else {**named, "requesterKey": f"s{requester}"}


def test_the_tree_has_the_runs_of_this_question_alone() -> None:
    rows = [row(5, 3), row(4, 2), row(3, 2), row(2, 1), row(1, 0), row(0, None)]
    assert [r["runId"] for r in rows_since(rows, "r2")] == ["r5", "r4", "r3", "r2"]
    tree: Any = nested_tree(list(rows_since(rows, "r2")), "r2")
    assert [child["sessionKey"] for child in tree["children"]] == ["s3", "s4"]
    assert [child["sessionKey"] for child in tree["children"][0]["children"]] == ["s5"]
    assert nested_tree(rows, "r9") is None


def test_children_of_a_session_with_two_runs_are_shown_once() -> None:
    tree: Any = nested_tree([row(4, 1), row(3, 0, session=1), row(1, 0), row(0, None)], "r0")
    assert [len(child["children"]) for child in tree["children"]] == [1, 0]
