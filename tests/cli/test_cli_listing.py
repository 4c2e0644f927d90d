"""The flags that lists share: filters, limit, format, detail (cli.listing)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from openclaw_ray.agents.outcome import failed
from openclaw_ray.cli.listing import Listing, parse_filter
from openclaw_ray.cli.main import run
from openclaw_ray.core.lifecycle import Cause, RunState
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.store import places
from openclaw_ray.store.sqlite_journal import SqliteJournal

ROWS: list[dict[str, Any]] = [
    {"runId": "1", "agentId": "Worker", "state": "failed", "error": {"cause": "raised"}},
    {"runId": "2", "agentId": "worker", "state": "running", "depth": 2},
    {"runId": "3", "agentId": "main", "state": "queued", "depth": 0},
]


def chosen(*filters: str, limit: int | None = None) -> list[str]:
    listing = Listing(tuple(parse_filter(text) for text in filters), limit)
    return [row["runId"] for row in listing.chosen(ROWS)]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ((), ["1", "2", "3"]),
        (("agentId=worker",), ["1", "2"]),
        (("agent_id=WORKER", "state!=failed"), ["2"]),
        (("depth=0",), ["3"]),
        (("depth!=2",), ["1", "3"]),
        (("error.cause=raised",), ["1"]),
        (("state = queued",), ["3"]),
    ],
)
def test_all_filters_have_to_hold(filters: tuple[str, ...], ids: list[str]) -> None:
    assert chosen(*filters) == ids


def test_a_limit_counts_what_the_filters_leave() -> None:
    assert chosen("agentId=worker", limit=1) == ["1"]


def test_a_field_that_no_row_has_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert chosen("stat=queued") == []
    assert "no row has a field 'stat'" in capsys.readouterr().err
    assert chosen("depth=7") == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["state", "=x", "a..b=x", "!=x"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="FIELD=VALUE"):
        parse_filter(text)
    assert run(["runs", "--filter", text]) == 2


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A state dir with three runs."""
    journal = SqliteJournal(tmp_path / places.JOURNAL)
    writes = []
    for number, word in enumerate((RunState.SUCCEEDED, RunState.RUNNING, RunState.FAILED)):
        klass = ("", "", "", ())
        run = Run(f"r{number}", number, "agent:a:x", "id", "a", "map", "", "", "root", 1, 1, "task", 1.0, "l", 1, klass)
        run.state = word
        if word is RunState.FAILED:
            run.outcome = failed(Cause.RAISED, "ValueError", "no good")
        writes.append(Write("runs", run.id, run.freeze(), False, ("root", run.session, "", "a", word.value, 1.0, None)))
    journal.commit(writes)
    journal.close()
    return str(tmp_path)


def test_a_format_holds_the_same_rows(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for form in (["--json"], ["--format", "json"], ["--format", "yaml"]):
        assert run(["runs", "--state", state, "--filter", "state!=running", *form]) == 0
        said[form[-1]] = capsys.readouterr().out
    rows = json.loads(said["json"])
    assert [row["runId"] for row in rows] == ["r2", "r0"]
    assert [json.loads(line) for line in said["--json"].splitlines()] == rows
    assert yaml.safe_load(said["yaml"]) == rows


def test_details_are_all_fields(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--state", state, "--limit", "1", "--detail"]) == 0
    out = capsys.readouterr().out
    assert all(field in out for field in ("rootKey", "createdAt", "r2"))
    assert "r1" not in out
