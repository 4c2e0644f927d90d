"""Commands on real runtimes: one that they start, and one that is alive."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import ray

from openclaw_ray.cli.main import run
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

    import openclaw_ray as oc
    from openclaw_ray.testing.leaks import ProcessMark

pytestmark = pytest.mark.ray

APP = """
import openclaw_ray as oc

@oc.agent
def main(turn: oc.SyncTurn) -> str:
    print("at work")
    return " ".join(r.text or r.error.message for r in turn.map("main_leaf", turn.text.split()))

@oc.agent
def main_leaf(turn: oc.SyncTurn) -> str:
    if turn.text == "bad":
        raise ValueError("no good")
    return turn.text.upper()
"""


HELD = """
import os, threading
import openclaw_ray as oc

@oc.agent
def main(turn: oc.SyncTurn) -> int:
    if turn.kind == "message":
        place, *names = turn.text.split()
        return len(turn.map("main", [os.path.join(place, "in-" + name) for name in names]))
    open(turn.text, "w").close()
    while True:
        turn.check()
        threading.Event().wait(0.02)
"""


@pytest.fixture
def cluster(rt: oc.Runtime, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of the shared Ray, which is ``RAY_ADDRESS`` for commands."""
    address = str(ray.get_runtime_context().gcs_address)
    monkeypatch.setenv("RAY_ADDRESS", address)
    return address


def environment(cluster: str, mark: ProcessMark) -> dict[str, str]:
    """For a command in a process of its own, as a guest of the shared Ray."""
    return mark.environment() | {"PYTHONPATH": str(Path(__file__).parents[2]), "RAY_ADDRESS": cluster}


def output(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_run_answers_with_its_whole_tree_and_leaves_nothing(cluster: str, tmp_path: Path, mark: ProcessMark) -> None:
    (tmp_path / "asked_app.py").write_text(APP)
    (tmp_path / "c.json5").write_text("{agents: {defaults: {subagents: {allowAgents: ['*']}}}}")
    arguments = ["run", "--app", "asked_app.py", "--config", "c.json5", "--name", "asked", "--state", "s", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "openclaw_ray.cli.main", *arguments, "a bad c"],
        cwd=tmp_path,
        env=environment(cluster, mark),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    whole = json.loads(done.stdout)
    assert (whole["status"], whole["text"], whole["sessionKey"]) == ("ok", "A no good C", "agent:main:main")
    tree = whole["tree"]
    assert (tree["agentId"], tree["state"]) == ("main", "succeeded")
    assert sorted(child["state"] for child in tree["children"]) == ["failed", "succeeded", "succeeded"]
    assert {child["error"]["message"] for child in tree["children"] if child["error"]} == {"no good"}
    # what it did is still there to be looked at
    assert run(["sessions", "history", "main", "--state", str(tmp_path / "s")]) == 0


def test_an_interrupted_run_waits_until_its_whole_tree_has_ended(
    cluster: str, tmp_path: Path, mark: ProcessMark
) -> None:
    (tmp_path / "held_app.py").write_text(HELD)
    arguments = ["run", "--app", "held_app.py", "--json", f"{tmp_path} a b c"]
    process = subprocess.Popen(
        [sys.executable, "-m", "openclaw_ray.cli.main", *arguments],
        cwd=tmp_path,
        env=environment(cluster, mark),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: len(list(tmp_path.glob("in-*"))) == 3, 60, what="three leaves at work")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    tree = json.loads(out)["tree"]
    assert [node["state"] for node in (tree, *tree["children"])] == ["cancelled"] * 4
    assert "the stop failed" not in err


def test_sessions_of_a_live_runtime_are_listed_shown_and_stopped(
    rt: oc.Runtime, cluster: str, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    receipt = rt.spawn("hold on", "hold", input=str(gate), label="held")
    gate.wait_for(1)
    key, live = receipt.session_key, ["--name", rt.name, "--json"]
    assert run(["sessions", "list", "--agent", "hold", "--limit", "1", *live]) == 0
    (row,) = output(capsys)
    assert (row["key"], row["label"], row["runState"], row["depth"]) == (key, "held", "running", 1)
    assert row["pid"] > 0
    assert row["parentSessionKey"] == rt.root_key
    assert run(["sessions", "show", key, *live]) == 0
    (whole,) = output(capsys)
    assert [each["runId"] for each in whole["runs"]] == [receipt.run_id]
    assert run(["sessions", "stop", key, *live]) == 0
    (report,) = output(capsys)
    assert (report["key"], report["stopped"], report["failed"]) == (key, 1, 0)
    assert rt.result(receipt, timeout=30).status == "cancelled"
    eventually(lambda: any("[Subagent Task]\nhold on" in row["text"] for row in rt.history(key)))
    assert run(["sessions", "history", key, *live]) == 0
    assert "[Subagent Task]\nhold on" in output(capsys)[0]["text"]


def test_a_session_is_deleted_with_its_transcript_kept_under_another_name(
    rt: oc.Runtime, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    receipt = rt.spawn("some words", "echo")
    rt.result(receipt).raise_for_status()
    key, live = receipt.session_key, ["--name", rt.name, "--json"]
    eventually(lambda: len(rt.history(key)) == 2)
    assert run(["sessions", "delete", key, *live]) == 0
    (done,) = output(capsys)
    assert done["stop"]["stopped"] == 0
    folder = rt.state_dir / "agents" / "echo" / "sessions"
    (kept,) = eventually(lambda: list(folder.glob(f"{done['sessionId']}.jsonl.deleted.*")))
    assert kept.read_text().count("some words") == 2
    assert not (folder / f"{done['sessionId']}.jsonl").exists()
    assert run(["sessions", "list", "--agent", "echo", "--status", "archived", *live]) == 0
    assert key in [row["key"] for row in output(capsys)]
    assert rt.history(key) == []
    rt.ask("echo", "hello")
    for never, why in (("echo", "main"), (rt.root_key, "root")):
        assert run(["sessions", "delete", never, *live]) == 1
        assert why in capsys.readouterr().err
    rt.ask("echo", "still there")


def test_doctor_reaches_the_cluster(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    (whole,) = output(capsys)
    (found,) = [check for check in whole["checks"] if check["check"] == "cluster"]
    assert found["verdict"] == "ok"
    assert f"Ray cluster at {cluster}: 1 nodes" in found["detail"]
