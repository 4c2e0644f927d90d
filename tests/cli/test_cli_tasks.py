"""``tasks …`` by a journal on disk, and in a live runtime."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import openclaw_ray
from openclaw_ray.cli.main import run
from openclaw_ray.core.ledger import TASK_KEPT
from openclaw_ray.core.lifecycle import DeliveryState, RunState
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.results import StopReport, StopRow
from openclaw_ray.store import places
from openclaw_ray.store.sqlite_journal import SqliteJournal
from openclaw_ray.store.statelock import StateLock

MAIN = "agent:main:main"
WORKER = "agent:worker:subagent:1"


def session(key: str, requester: str) -> Write:
    record = Session(key, "id", key.split(":")[1], 0, requester, MAIN, "leaf", 1.0, None, "passive")
    return Write("sessions", key, record.freeze(), False, (MAIN, requester, record.agent, record.state, 1.0))


def record(name: str, number: int, state: RunState, **more: Any) -> Write:
    klass = ("", "", "", ())
    made = Run(name, number, WORKER, "id", "worker", "spawn", MAIN, "", MAIN, 1, 1, "task", 1.0, "l", 1, klass)
    made.state, made.delivery, made.label = state, DeliveryState.DELIVERED, f"label \x07{number}"
    made.created = made.started = time.time() - 60
    if state.terminal:
        made.ended = time.time()
    for field, value in more.items():
        setattr(made, field, value)
    return Write("runs", name, made.freeze(), False, (MAIN, WORKER, MAIN, "worker", state.value, 1.0, None))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime ``r`` on disk with tasks of all kinds."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    folder = tmp_path / "ray" / "r"
    folder.mkdir(parents=True)
    journal = SqliteJournal(folder / places.JOURNAL)
    old = time.time() - TASK_KEPT - 60
    journal.commit(
        [
            session(MAIN, ""),
            session(WORKER, MAIN),
            record("old-1", 1, RunState.SUCCEEDED, created=old - 9, started=old - 9, ended=old),
            record("run-2", 2, RunState.FAILED, delivery=DeliveryState.SUSPENDED),
            record("run-3", 3, RunState.PAUSED),
            record("lost-4", 4, RunState.LOST),
        ]
    )
    journal.close()
    return folder


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# ---------------------------------------------------------------------- on disk


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["lost-4", "run-3", "run-2", "old-1"]),
        (["--status", "running"], ["run-3"]),
        (["--status", "failed", "--status", "lost", "--limit", "1"], ["lost-4"]),
        (["--agent", "Worker", "--limit", "2"], ["lost-4", "run-3"]),
        (["--agent", "other"], []),
    ],
)
def test_tasks_are_listed_by_their_words(
    state: Path, capsys: pytest.CaptureFixture[str], options: list[str], ids: list[str]
) -> None:
    assert run(["tasks", "list", "--json", *options]) == 0
    rows = lines(capsys)
    assert [row["taskId"] for row in rows] == ids
    assert {row["status"] for row in rows} <= {"running", "failed", "lost", "succeeded"}


def test_the_table_lets_no_escape_through(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "list", "--state", str(state)]) == 0
    text = capsys.readouterr().out
    assert f"runtime r ({state})" in text
    assert "label \ufffd3" in text


def test_one_is_shown_by_its_id_or_by_what_it_alone_begins_with(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("run-2", "lost", "old"):
        assert run(["tasks", "show", name, "--json"]) == 0
        assert lines(capsys)[0]["taskId"].startswith(name)
    assert run(["tasks", "show", "run-2"]) == 0
    assert "suspended" in capsys.readouterr().out
    assert run(["tasks", "show", "run-"]) == 2
    assert "'run-' begins 2 task ids in runtime r" in capsys.readouterr().err
    assert run(["tasks", "show", "none"]) == 2
    assert "no task 'none' in runtime r" in capsys.readouterr().err


def test_an_audit_tells_what_is_wrong_and_how_to_mend_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "audit", "--json"]) == 1
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert [(each["taskId"], each["code"]) for each in found] == [
        ("lost-4", "lost"),
        ("run-3", "no_process"),
        ("run-2", "delivery_failed"),
    ]
    assert found[2]["remedy"] == "openclaw-ray tasks retry run-2 (or dismiss)"
    assert captured.err == "note: 3 findings in 4 tasks\n"
    assert run(["tasks", "audit", "--limit", "1"]) == 1
    assert "nobody knows its outcome" in capsys.readouterr().out


def test_a_state_dir_in_use_is_not_audited_for_processes(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with StateLock(state):
        assert run(["tasks", "audit", "--json", "--state", str(state)]) == 1
    assert [each["code"] for each in lines(capsys)] == ["lost", "delivery_failed"]


def test_maintenance_of_what_does_not_run_only_says_what_there_is_to_do(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tasks", "maintenance", "--json"]) == 0
    [action] = lines(capsys)
    assert (action["action"], action["runId"], action["applied"]) == ("drop", "old-1", False)
    assert run(["tasks", "maintenance", "--apply"]) == 2
    assert "needs a live runtime" in capsys.readouterr().err
    assert run(["tasks", "maintenance", "--apply", "--state", str(state)]) == 2
    assert run(["tasks", "list", "--json"]) == 0
    assert len(lines(capsys)) == 4


@pytest.mark.parametrize("command", ["cancel", "retry", "dismiss"])
def test_without_a_live_runtime_nothing_is_changed(
    state: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(["tasks", command, "run-2"]) == 2
    assert "none is alive on this machine" in capsys.readouterr().err


# ---------------------------------------------------------------------- live


class Live:
    """What the commands use of a connected runtime."""

    name = "r"
    root_key = "agent:main:driver:me"

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.rows = {
            name: {"runId": name, "sessionKey": WORKER, "state": word, "deliveryStatus": delivery, "createdAt": 1}
            for name, word, delivery in (
                ("run-1", "running", "pending"),
                ("run-2", "failed", "suspended"),
                ("run-3", "succeeded", "failed"),
            )
        }
        self.asked: list[tuple[str, Any]] = []
        self.report: StopReport | None = None

    def run(self, run_id: str) -> dict[str, Any] | None:
        return self.rows.get(run_id)

    def runs(self, *, limit: int, offset: int, **filters: Any) -> list[dict[str, Any]]:
        return list(self.rows.values())[offset : offset + limit]

    def session(self, key: str) -> dict[str, Any]:
        return {"key": key, "status": "active"}

    def stop_run(self, run_id: str, *, timeout: float | None) -> StopReport:
        self.asked.append((run_id, timeout))
        if self.report is None:
            raise FutureTimeout
        return self.report

    def redeliver(self, run_id: str) -> object:
        self.asked.append(("redeliver", run_id))
        if self.rows[run_id]["deliveryStatus"] == "suspended":
            self.rows[run_id]["deliveryStatus"] = "pending"
        return None

    def dismiss(self, run_id: str) -> object:
        self.asked.append(("dismiss", run_id))
        self.rows[run_id]["deliveryStatus"] = "discarded"
        return None

    def maintain(self, *, apply: bool) -> list[dict[str, Any]]:
        self.asked.append(("maintain", apply))
        return [{"action": "end", "runId": "run-1", "sessionKey": WORKER, "why": "its process is not known"}]

    def close(self) -> None:
        self.asked.append(("closed", True))


@pytest.fixture
def live(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    runtime = Live(state)
    monkeypatch.setattr(openclaw_ray, "Runtime", SimpleNamespace(connect=lambda name: runtime), raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "")
    with StateLock(state):
        yield runtime
    assert runtime.asked[-1] == ("closed", True)


def test_a_cancel_prints_the_task_and_the_report(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.report = StopReport(WORKER, 2, 1, 0, 0, (StopRow(WORKER, "run-1", "stopped"), StopRow("k", "r9", "forced")))
    live.rows["run-1"]["state"] = "cancelled"
    assert run(["tasks", "cancel", "run-1", "--json"]) == 0
    [said] = lines(capsys)
    assert (said["task"]["status"], said["stop"]["stopped"]) == ("cancelled", 2)
    assert live.asked[0] == ("run-1", 60.0)
    assert run(["tasks", "cancel", "run-1", "--timeout", "0"]) == 0
    assert capsys.readouterr().out == "run-1 is cancelled: 2 stopped (1 by force), 0 failed to stop\n"


def test_what_had_ended_is_not_cancelled(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.report = StopReport(WORKER, 0, 0, 1, 0)
    assert run(["tasks", "cancel", "run-3"]) == 1
    assert "run-3 is succeeded: 0 stopped" in capsys.readouterr().out
    live.report = None
    assert run(["tasks", "cancel", "run-1", "--timeout", "3"]) == 1
    assert "in force, and not complete after 3 s; `openclaw-ray tasks show run-1`" in capsys.readouterr().err
    assert run(["tasks", "cancel", "nobody"]) == 2


def test_announces_are_retried_and_given_up(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "retry", "run-2"]) == 0
    assert capsys.readouterr().out == "run-2: announce pending\n"
    assert run(["tasks", "retry", "run-3", "--json"]) == 1
    assert lines(capsys)[0]["deliveryStatus"] == "failed"
    assert run(["tasks", "dismiss", "run-3", "--json"]) == 0
    assert lines(capsys)[0]["deliveryStatus"] == "discarded"
    asked = [each for each in live.asked if each[0] != "closed"]
    assert asked == [("redeliver", "run-2"), ("redeliver", "run-3"), ("dismiss", "run-3")]


def test_a_live_audit_knows_of_processes(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "audit", "--name", "r", "--json"]) == 1
    codes = [(each["taskId"], each["code"]) for each in lines(capsys)]
    assert ("run-1", "no_process") in codes


def test_maintenance_is_done_in_a_live_runtime(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "maintenance", "--apply", "--json"]) == 0
    assert lines(capsys) == [
        {
            "action": "end",
            "runId": "run-1",
            "sessionKey": WORKER,
            "why": "its process is not known",
            "applied": True,
        }
    ]
    assert run(["tasks", "maintenance", "--name", "r"]) == 0
    captured = capsys.readouterr()
    assert "its process is not known" in captured.out
    assert captured.err == "note: 1 to do; --apply does it\n"
    assert [each for each in live.asked if each[0] == "maintain"] == [("maintain", True), ("maintain", False)]
