"""``sessions list|show|history`` by a journal on disk, and ``sessions stop`` in a live runtime."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import openclaw_ray
from openclaw_ray.cli.main import run
from openclaw_ray.core.errors import DeleteRefused, PatchRefused, ResetRefused
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.results import StopReport, StopRow
from openclaw_ray.store import places
from openclaw_ray.store.sqlite_journal import SqliteJournal
from openclaw_ray.store.statelock import StateLock
from openclaw_ray.store.transcripts import Transcripts

MAIN = "agent:main:main"


KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def session(key: str, requester: str, state: str, label: str | None = None) -> Write:
    agent = key.split(":")[1]
    record = Session(key, f"id-{key[-1]}", agent, 1 if requester else 0, requester, MAIN, "leaf", 1.0, label, state)
    record.last_run = f"run{key[-1]}"
    return Write("sessions", key, record.freeze(), False, (MAIN, requester, agent, state, 1.0))


def running(number: int, key: str, state: RunState) -> Write:
    agent = key.split(":")[1]
    record = Run(
        f"run{number}", number, key, "id", agent, "spawn", MAIN, "", MAIN, 1, 1, "task", 1.0, "l", 1, ("", "", "", ())
    )
    record.state = state
    return Write("runs", record.id, record.freeze(), False, (MAIN, key, MAIN, agent, state.value, 1.0, None))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime ``r`` on disk with a main session and two workers."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    folder = tmp_path / "ray" / "r"
    folder.mkdir(parents=True)
    journal = SqliteJournal(folder / places.JOURNAL)
    journal.commit(
        [
            session(MAIN, "", "passive"),
            session("agent:worker:subagent:1", MAIN, "ended", "first"),
            session("agent:worker:subagent:2", MAIN, "active", "bell \x07"),
            running(1, "agent:worker:subagent:1", RunState.SUCCEEDED),
            running(2, "agent:worker:subagent:2", RunState.RUNNING),
        ]
    )
    journal.close()
    transcripts = Transcripts(folder)
    transcripts.append(
        "worker", [Row("id-1", 1, n, "user", f"text {n}\n\x1b[31mred", 1.0, None, None) for n in range(5)]
    )
    transcripts.close()
    return folder


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_sessions_are_listed_newest_first_with_their_live_runs(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "list", "--json"]) == 0
    rows = listed(capsys)
    assert [row["key"] for row in rows] == ["agent:worker:subagent:2", "agent:worker:subagent:1", MAIN]
    assert (rows[0]["runId"], rows[0]["runState"]) == ("run2", "running")
    assert "runState" not in rows[1]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--agent", "Main"], [MAIN]),
        (["--agent", "main", "--agent", "worker", "--limit", "1"], ["agent:worker:subagent:2"]),
        (["--status", "ended"], ["agent:worker:subagent:1"]),
        (["--status", "archived"], []),
        (["--name", "r", "--limit", "1"], ["agent:worker:subagent:2"]),
        (["--label", "FIRST"], ["agent:worker:subagent:1"]),
        (["--search", "subagent:", "--agent", "worker"], ["agent:worker:subagent:2", "agent:worker:subagent:1"]),
        (["--spawned-by", MAIN, "--status", "ended"], ["agent:worker:subagent:1"]),
        (["--no-subagents"], [MAIN]),
        (["--kind", "main"], [MAIN]),
        (["--active"], ["agent:worker:subagent:2"]),
        (["--active-minutes", "5"], []),
        (["--archived"], []),
    ],
)
def test_sessions_can_be_chosen(
    options: list[str], keys: list[str], state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sessions", "list", "--json", *options]) == 0
    assert [row["key"] for row in listed(capsys)] == keys


def test_the_table_lets_no_escape_through(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "list", "--state", str(state)]) == 0
    text = capsys.readouterr().out
    assert f"runtime r ({state})" in text
    assert "agent:worker:subagent:1" in text
    assert "bell \ufffd" in text


def test_one_session_is_shown_with_its_runs_and_children(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "show", MAIN, "--json"]) == 0
    (whole,) = listed(capsys)
    assert (whole["key"], whole["status"], whole["runs"]) == (MAIN, "passive", [])
    assert [child["key"] for child in whole["children"]] == ["agent:worker:subagent:2", "agent:worker:subagent:1"]
    assert run(["sessions", "show", "main"]) == 0  # an agent id stands for its main session
    text = capsys.readouterr().out
    assert "children" in text
    assert "agent:worker:subagent:1" in text


def test_history_is_a_page_counted_from_the_newest(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "agent:worker:subagent:1"
    assert run(["sessions", "history", key, "--json", "--limit", "2", "--offset", "1"]) == 0
    assert [row["text"].split("\n")[0] for row in listed(capsys)] == ["text 2", "text 3"]
    assert run(["sessions", "history", key, "--limit", "1"]) == 0
    assert capsys.readouterr().out == "user: text 4\n  \ufffd[31mred\n"
    assert run(["sessions", "history", MAIN]) == 0
    assert capsys.readouterr() == ("", f"note: no transcript rows of {MAIN} here\n")


def test_history_is_masked_unless_it_is_to_be_raw(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    transcripts = Transcripts(state)
    long = "x" * 5_000
    transcripts.append("main", [Row("id-n", 1, 0, "tool", f"refresh_token={KEY} {long}", 1.0, None, {"api_key": KEY})])
    transcripts.close()
    assert run(["sessions", "history", MAIN, "--json"]) == 0
    (row,) = listed(capsys)
    assert (row["text"], row["api_key"]) == (f"refresh_token=sk-pro…6789 {long}", "sk-pro…6789")
    assert run(["sessions", "history", MAIN, "--json", "--raw"]) == 0
    (row,) = listed(capsys)
    assert (row["text"], row["api_key"]) == (f"refresh_token={KEY} {long}", KEY)


@pytest.mark.parametrize("command", ["show", "history", "logs"])
def test_an_unknown_session_names_the_way_out(
    command: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sessions", command, "agent:no:main"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no session 'agent:no:main' in runtime r" in captured.err
    assert "`openclaw-ray sessions list` lists the keys" in captured.err


def test_a_journal_of_another_version_is_told_as_one(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = SqliteJournal(state / places.JOURNAL)
    journal.commit([Write("sessions", "k", pickle.dumps(("one", "field")), False, (MAIN, "", "w", "ended", 1.0))])
    journal.close()
    assert run(["sessions", "list"]) == 1
    text = capsys.readouterr().err
    assert "a session in it was written by another version of openclaw_ray" in text
    assert "`openclaw-ray doctor` looks into it" in text


class Live:
    """What the commands use of a connected runtime."""

    name = "r"
    root_key = "agent:main:driver:me"

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.stopped: list[tuple[str, float | None]] = []
        self.report = StopReport(MAIN, 1, 0, 1, 0, (StopRow(MAIN, "run7", "stopped"),))
        self.refuses: str | None = None
        self.changes: dict[str, Any] = {}
        self.closed = False

    def session(self, key: str) -> dict[str, Any] | None:
        return {"key": key, "sessionId": "id-n"} if key == MAIN else None

    def sessions(self, *, limit: int, offset: int, **filters: Any) -> list[dict[str, Any]]:
        return [{"key": self.root_key}, {"key": MAIN, "status": "active"}][offset:]

    def runs(self, *, limit: int, offset: int, **filters: Any) -> list[dict[str, Any]]:
        row = {"runId": "r7", "sessionKey": MAIN, "state": "queued", "waitingFor": "a slot", "pid": 7, "actor": "s-1"}
        return [row][offset:]

    def stop(self, key: str, *, timeout: float | None) -> StopReport:
        self.stopped.append((key, timeout))
        if self.report is None:
            raise FutureTimeout
        return self.report

    def patch(self, key: str, **changes: Any) -> dict[str, Any]:
        self.changes = changes
        if self.refuses is not None:
            raise PatchRefused(key, self.refuses, "label 'x' is in use by agent:b:main")
        return {"key": key, "label": changes["label"]}

    def delete(self, key: str, *, timeout: float | None = None, **seen: Any) -> StopReport:
        self.stopped.append((key, timeout))
        self.changes = seen
        if self.refuses is not None:
            raise DeleteRefused(key, self.refuses)
        return self.report

    def reset(self, key: str, *, timeout: float | None = None, **seen: Any) -> StopReport:
        self.changes = seen
        if self.refuses is not None:
            raise ResetRefused(key, self.refuses)
        return self.report

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def live(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    runtime = Live(state)
    monkeypatch.setattr(openclaw_ray, "Runtime", SimpleNamespace(connect=lambda name: runtime), raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "")
    with StateLock(state):
        yield runtime


def test_a_live_list_leaves_out_the_looks_own_root(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "list", "--name", "r", "--json"]) == 0
    (row,) = listed(capsys)
    assert (row["key"], row["waitingFor"], row["actor"], row["pid"]) == (MAIN, "a slot", "s-1", 7)
    assert live.closed


def test_stop_prints_its_report(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "stop", "main", "--json"]) == 0  # the only live runtime here needs no name
    captured = capsys.readouterr()
    assert json.loads(captured.out) == live.report.to_json()
    assert captured.err.startswith("note: live runtime r (")
    assert live.stopped == [(MAIN, 60.0)]
    assert run(["sessions", "stop", MAIN, "--name", "r", "--timeout", "0"]) == 0
    assert "1 stopped (0 by force), 1 had finished, 0 failed to stop" in capsys.readouterr().out
    assert live.stopped[1] == (MAIN, None)


def test_a_stop_that_missed_something_has_exit_code_1(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.report = StopReport(MAIN, 1, 0, 0, 2)
    assert run(["sessions", "stop", MAIN, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed"] == 2
    live.report = None  # type: ignore[assignment]
    assert run(["sessions", "stop", MAIN, "--timeout", "3"]) == 1
    assert "in force, and not complete after 3 s; `openclaw-ray sessions list`" in capsys.readouterr().err


def test_what_is_not_there_is_not_stopped(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "stop", "agent:no:main"]) == 2
    assert "no session 'agent:no:main' in live runtime r" in capsys.readouterr().err
    assert live.stopped == []


def test_delete_says_what_it_stopped(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "delete", MAIN, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"key": MAIN, "sessionId": "id-n", "stop": live.report.to_json()}
    assert live.stopped == [(MAIN, None)]
    assert run(["sessions", "delete", MAIN]) == 0
    assert capsys.readouterr().out == f"deleted {MAIN} (1 runs were stopped)\n"


def test_a_deletion_that_was_refused_says_why_and_what_to_look_at(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    for word, why in {"main": "never deleted", "changed": "changed meanwhile", "busy": "has not ended"}.items():
        live.refuses = word
        assert run(["sessions", "delete", MAIN]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert why in captured.err
        assert f"next: openclaw-ray sessions show {MAIN}" in captured.err


def test_reset_says_what_it_stopped_or_why_it_was_refused(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "reset", MAIN, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"key": MAIN, "sessionId": "id-n", "previousSessionId": "id-n", "stop": live.report.to_json()}
    assert run(["sessions", "reset", MAIN]) == 0
    assert capsys.readouterr().out == f"reset {MAIN} (1 runs were stopped)\n"
    for word, why in {"root": "no conversation", "busy": "has not ended", "changed": "changed meanwhile"}.items():
        live.refuses = word
        assert run(["sessions", "reset", MAIN]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert why in captured.err
        assert f"next: openclaw-ray sessions show {MAIN}" in captured.err


def test_a_label_is_patched_or_it_is_said_who_has_it(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "patch", MAIN, "--label", "x", "--session-id", "id-n", "--revision", "3"]) == 0
    assert capsys.readouterr().out == f"{MAIN}: label x\n"
    assert live.changes == {"label": "x", "session_id": "id-n", "lifecycle_revision": 3}
    live.refuses = "label"
    assert run(["sessions", "patch", MAIN, "--label", "x"]) == 1
    assert "label 'x' is in use by agent:b:main" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["reset", "delete"])
def test_what_was_seen_goes_along(what: str, live: Live) -> None:
    assert run(["sessions", what, MAIN, "--session-id", "id-n", "--revision", "3"]) == 0
    assert live.changes == {"session_id": "id-n", "lifecycle_revision": 3}


def test_without_a_live_runtime_there_is_nothing_to_stop(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "stop", MAIN]) == 2
    assert "none is alive on this machine: choose one with --name" in capsys.readouterr().err


def test_of_several_live_runtimes_one_must_be_named(
    live: Live, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = state.with_name("s")
    other.mkdir()
    SqliteJournal(other / places.JOURNAL).close()
    with StateLock(other):
        assert run(["sessions", "stop", MAIN]) == 2
    assert "2 are alive on this machine (r, s): choose one with --name" in capsys.readouterr().err
