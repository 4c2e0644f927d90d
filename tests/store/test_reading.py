"""Reading: what a journal holds, seen from outside of the registry."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.store.places import JOURNAL
from openclaw_ray.store.reading import Reading
from openclaw_ray.store.sqlite_journal import SqliteJournal


def fill(folder: Path) -> SqliteJournal:
    journal = SqliteJournal(folder / JOURNAL)
    for n in range(10):
        state = "failed" if n == 7 else "succeeded"
        journal.commit(
            [
                Write(
                    "runs",
                    f"r{n}",
                    pickle.dumps(("run", n)),
                    False,
                    ("R", f"k{n}", "R", "w", state, 1.0, 2.0),
                ),
                Write(
                    "sessions", f"k{n}", pickle.dumps(("session", n)), n == 9, ("R", "R", "w", "ended", 1.0)
                ),
                Write("events", n + 1, pickle.dumps(("event", n + 1)), False),
            ]
        )
    return journal


def reading(folder: Path) -> Reading[Any, Any, Any]:
    return Reading(folder, run=pickle.loads, session=pickle.loads, event=pickle.loads)


def test_it_sees_what_the_registry_has_committed_while_it_writes(tmp_path: Path) -> None:
    journal = fill(tmp_path)
    with reading(tmp_path) as seen:
        assert seen.runs(limit=2) == [("run", 9), ("run", 8)]
        assert seen.runs(root="R", state=["failed"], limit=5) == [("run", 7)]
        assert seen.runs(newest_first=False, limit=1, offset=3) == [("run", 3)]
        assert seen.sessions(requester="R", limit=1) == [("session", 9)]
        assert seen.events(after=8) == [("event", 9), ("event", 10)]
        assert seen.events(after=0, limit=1) == [("event", 1)]
        assert seen.run("r3") == ("run", 3)
        assert seen.session("k3") == ("session", 3)
        assert seen.run("unknown") is None
        assert seen.session("unknown") is None
        assert (seen.count_runs(state="failed"), seen.count_sessions()) == (1, 10)
        journal.commit([Write("events", 11, pickle.dumps(("event", 11)))])
        assert seen.events(after=10) == [("event", 11)]
    journal.close()


def test_it_reads_a_journal_that_nobody_has_open(tmp_path: Path) -> None:
    fill(tmp_path).close()
    with reading(tmp_path) as seen:
        assert len(seen.runs()) == 10


READ_AS_NOBODY = """
import os, sys
from openclaw_ray.store.reading import Reading

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with Reading(sys.argv[1], run=len, session=len, event=len) as seen:
    print(len(seen.runs()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_another_user_reads_a_closed_journal_where_he_may_not_write() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder).close()
        folder.chmod(0o755)
        (folder / JOURNAL).chmod(0o644)
        done = subprocess.run(
            [sys.executable, "-c", READ_AS_NOBODY, name],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.strip() == "10", done.stderr
        assert os.listdir(folder) == [JOURNAL]


def test_it_never_holds_up_a_checkpoint(tmp_path: Path) -> None:
    journal = fill(tmp_path)
    with reading(tmp_path) as seen:
        seen.runs()
        assert journal.checkpoint().complete
    journal.close()


def test_no_journal_and_unknown_filters_are_errors(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="No such file"):
        reading(tmp_path)
    fill(tmp_path).close()
    with reading(tmp_path) as seen:
        with pytest.raises(ValueError, match="cannot be filtered by 'colour'"):
            seen.runs(colour="red")
        seen.close()
        with pytest.raises(JournalError, match="closed"):
            seen.runs()
