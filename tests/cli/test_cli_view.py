"""Looking at a runtime from outside: by its journal on disk, or live."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import openclaw_ray
from openclaw_ray.cli import view
from openclaw_ray.cli.main import run
from openclaw_ray.cli.view import DiskView, LiveView, open_view
from openclaw_ray.core.errors import JournalError, RayUnreachable, RuntimeNotFound
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.store import places
from openclaw_ray.store.sqlite_journal import SqliteJournal


def record(number: int, state: RunState) -> list[Write]:
    key = f"agent:w:subagent:{number}"
    run = Run(
        id=f"run{number}",
        seq=number,
        session=key,
        session_id=f"session{number}",
        agent="w",
        route="map",
        requester="R",
        parent="",
        root="R",
        depth=1,
        reserve_depth=1,
        task="a task",
        created=1.0,
        lane="l",
        lane_width=1,
        klass=("b", "", "", ()),
        state=state,
    )
    session = Session(key, f"session{number}", "w", 1, "R", "R", "leaf", 1.0)
    return [
        Write("runs", run.id, run.freeze(), False, ("R", key, "R", "w", state.value, 1.0, None)),
        Write("sessions", key, session.freeze(), False, ("R", "R", "w", "passive", 1.0)),
    ]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State of two runtimes; ``new`` was written to last, and has one log."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for name in ("old", "new"):
        folder = tmp_path / "ray" / name
        folder.mkdir(parents=True)
        journal = SqliteJournal(folder / places.JOURNAL)
        for number, state in enumerate((RunState.SUCCEEDED, RunState.FAILED, RunState.QUEUED)):
            journal.commit(record(number, state))
        journal.close()
    (folder / "logs").mkdir()
    (folder / "logs" / "session1.log").write_bytes(b"said\n")
    return tmp_path / "ray"


def test_the_newest_runtime_on_disk_is_read(home: Path) -> None:
    with open_view(None, None) as seen:
        assert seen.source == f"runtime new ({home / 'new'})"
        assert [row["runId"] for row in seen.runs()] == ["run2", "run1", "run0"]
        assert [row["runId"] for row in seen.runs(["failed", "succeeded"])] == ["run1", "run0"]


def test_a_newest_journal_that_cannot_be_read_is_passed_over_with_a_note(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(home / "new")
    with open_view(None, None) as seen:
        assert seen.source == f"runtime old ({home / 'old'})"
    [note] = capsys.readouterr().err.splitlines()
    assert note.startswith("note: passed over: ")
    assert str(home / "new") in note
    assert "another version" in note
    spoil(home / "old")
    with pytest.raises(JournalError, match="ray/old/"), open_view(None, None):
        pass
    with pytest.raises(JournalError), open_view("new", None) as seen:
        list(seen.runs())


def spoil(state_dir: Path) -> None:
    """Add a run of a version to come."""
    journal = SqliteJournal(state_dir / places.JOURNAL)
    [run, _] = record(9, RunState.QUEUED)
    journal.commit([run._replace(data=b"of a version to come")])
    journal.close()


def test_pages_are_followed_to_their_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_PAGE", 2)
    with open_view(None, None) as seen:
        assert [row["runId"] for row in seen.runs()] == ["run2", "run1", "run0"]


def test_a_log_is_found_by_the_key_of_its_session(home: Path) -> None:
    with open_view(None, None) as seen:
        log = seen.log("agent:w:subagent:1")
        assert log is not None
        assert list(log) == [b"said\n"]
        empty = seen.log("agent:w:subagent:2")
        assert empty is not None
        assert list(empty) == []
        assert seen.log("agent:w:subagent:9") is None


def test_a_name_or_a_folder_chooses_another_one(home: Path) -> None:
    with open_view("old", None) as seen:
        assert seen.source == f"runtime old ({home / 'old'})"
    with open_view("new", str(home / "old")) as seen:
        assert seen.source == f"runtime old ({home / 'old'})"


def test_what_is_not_there_says_what_is(home: Path) -> None:
    with pytest.raises(RuntimeNotFound, match=r"no runtime 'mine'.*new"), open_view("mine", None):
        pass
    with pytest.raises(JournalError), open_view(None, "/no/such/place"):
        pass


class Live:
    """What `LiveView` uses of a runtime."""

    def __init__(self, state_dir: Path) -> None:
        self.name = "live"
        self.state_dir = state_dir
        self.closed = False

    def runs(self, *, limit: int, offset: int, **filters: Any) -> list[dict[str, Any]]:
        return [{"runId": "r", "filters": filters}][offset:]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def live(home: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    runtime = Live(home / "new")
    monkeypatch.setattr(openclaw_ray, "Runtime", SimpleNamespace(connect=lambda name: runtime), raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "a:1")
    return runtime


def test_a_live_runtime_answers_for_itself(live: Live) -> None:
    with open_view("live", None) as seen:
        assert isinstance(seen, LiveView)
        assert seen.source.startswith("live runtime live (")
        assert list(seen.runs(["queued"])) == [{"runId": "r", "filters": {"state": ["queued"]}}]
        log = seen.log("agent:w:subagent:1")
        assert log is not None
        assert list(log) == [b"said\n"]
    assert live.closed


@pytest.mark.parametrize("error", [RuntimeNotFound("new", ()), RayUnreachable("a:1", "refused")])
def test_a_runtime_that_is_gone_is_read_from_disk(
    error: Exception, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(name: str) -> Live:
        raise error

    monkeypatch.setattr(openclaw_ray, "Runtime", SimpleNamespace(connect=connect), raising=False)
    with open_view("new", None) as seen:
        assert isinstance(seen, DiskView)


def test_no_cluster_is_looked_for_unless_one_is_named_or_the_name_has_an_owner(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def never(name: str) -> Iterator[LiveView]:
        raise AssertionError(name)
        yield

    monkeypatch.setattr(LiveView, "open", never)
    with open_view("new", None) as seen:
        assert isinstance(seen, DiskView)


def test_the_commands_show_it(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["runs", "--json", "--status", "queued"]) == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(row["runId"], row["agentId"], row["task"]) for row in rows] == [("run2", "w", "a task")]
    assert run(["runs"]) == 0
    assert b"agent:w:subagent:1" in capfdbinary.readouterr().out
    assert run(["sessions", "logs", "agent:w:subagent:1"]) == 0
    assert capfdbinary.readouterr().out == b"said\n"
    assert run(["runs", "--name", "mine"]) == 2
    assert capfdbinary.readouterr().err.startswith(b"error: no runtime 'mine'")
