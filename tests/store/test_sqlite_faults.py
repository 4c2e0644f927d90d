"""SqliteJournal when things go wrong: killed, disk full, locked, not its file; and the checkpoint beside
commits."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.protocol.journal import JournalFault, Write
from openclaw_ray.store.sqlite_journal import SqliteJournal

WRITER = """
import sys
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.store.sqlite_journal import SqliteJournal

journal = SqliteJournal(sys.argv[1], sync=sys.argv[2])
n = int(journal.get("meta", "n") or 0)
while True:
    n += 1
    runs = [Write("runs", f"{n}-{k}", b"r" * 500, True, ("R", f"S{n}", "Q", "w", "queued", 1.0, None))
            for k in range(12)]
    journal.commit([Write("meta", "n", b"%d" % n), *runs, Write("rows", n, b"x" * 500)])
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""

LIMITED = """
import resource, sys
from openclaw_ray.core.protocol.journal import JournalFault, Write
from openclaw_ray.store.sqlite_journal import SqliteJournal

journal = SqliteJournal(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
kept, fault = 0, None
while fault is None:
    try:
        journal.commit([Write("meta", f"{kept}-{k}", b"x" * 500) for k in range(40)])
        kept += 1
    except JournalFault as error:
        fault = error
assert journal.count("meta", {}) == 40 * kept, "a part of the failed commit was kept"
try:
    journal.commit([Write("meta", f"big-{k}", b"x" * 500) for k in range(1000)])
except JournalFault:
    pass
else:
    raise AssertionError("the disk is still full")
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.commit([Write("meta", "after", b"room again")])
assert journal.count("meta", {}) == 40 * kept + 1
journal.close()
print(kept, fault)
"""


@pytest.mark.parametrize("sync", ["normal", "full"])
def test_a_killed_writer_leaves_a_prefix_of_whole_transactions(tmp_path: Path, sync: str) -> None:
    path = tmp_path / "registry.sqlite"
    lots = random.Random(20260501)
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), sync], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(lots.randint(5, 60))][-1]
            writer.send_signal(signal.SIGKILL)
            assert writer.wait() == -signal.SIGKILL
        journal = SqliteJournal(path)
        n = int(journal.get("meta", "n") or 0)
        assert n >= acknowledged
        assert [key for key, _ in journal.live("runs")] == [
            f"{i}-{k}" for i in range(1, n + 1) for k in range(12)
        ]
        assert [key for key, _ in journal.after("rows", 0, limit=10 * n)] == list(range(1, n + 1))
        journal.close()


def test_when_the_disk_refuses_nothing_is_kept_and_the_journal_goes_on_when_it_has_room(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "registry.sqlite")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kept, text = done.stdout.split(" ", 1)
    assert int(kept) > 0
    assert "disk" in text


def test_a_full_database_keeps_nothing_of_the_commit_that_did_not_fit(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    journal.commit([Write("meta", "before", b"x")])
    limit = journal.statistics().pages + 2
    journal._read("", f"PRAGMA max_page_count = {limit}", ())
    with pytest.raises(JournalFault, match="database or disk is full"):
        journal.commit(
            [Write("meta", "before", b"changed"), *(Write("bundles", n, b"x" * 3000) for n in range(9))]
        )
    assert journal.get("meta", "before") == b"x"
    assert journal.count("bundles", {}) == 0
    journal.commit([Write("meta", "before", b"small")])
    assert journal.get("meta", "before") == b"small"
    journal.close()


def test_a_lock_of_somebody_else_is_a_fault_and_then_over(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite", busy=0.01)
    other = sqlite3.connect(journal.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalFault, match="database is locked"):
        journal.commit([Write("meta", "a", b"1")])
    assert journal.get("meta", "a") is None
    other.execute("ROLLBACK")
    other.close()
    journal.commit([Write("meta", "a", b"1")])
    assert journal.get("meta", "a") == b"1"
    journal.close()


def test_a_mistaken_write_is_an_error_of_its_own_and_keeps_nothing(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    with pytest.raises(sqlite3.ProgrammingError):
        journal.commit([Write("meta", "a", b"1"), Write("runs", "r", b"x", True, (object(),) * 7)])
    assert journal.get("meta", "a") is None
    journal.commit([Write("meta", "a", b"2")])
    assert journal.get("meta", "a") == b"2"
    journal.close()


def test_what_passed_is_still_to_be_deleted_after_a_commit_that_failed(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    journal.commit([Write("rows", 1, b"1"), Write("rows", 2, b"2")])
    journal.delete_upto("rows", 1)
    with pytest.raises(sqlite3.ProgrammingError):
        journal.commit([Write("meta", "a", b"1", True, ("one too many",))])
    assert journal.live("rows") == [(2, b"2")]
    journal.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    path.write_text("this is a diary\n" * 100)
    for read_only in (False, True):
        with pytest.raises(JournalError, match="not a database"):
            SqliteJournal(path, read_only=read_only)
    assert path.read_text().startswith("this is a diary")


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="not a journal of openclaw_ray"):
        SqliteJournal(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    SqliteJournal(path).close()
    later = sqlite3.connect(path, isolation_level=None)
    later.execute("PRAGMA user_version = 99")
    later.close()
    for read_only in (False, True):
        with pytest.raises(JournalError, match=r"schema 99, this one knows 5.*upgrade openclaw_ray"):
            SqliteJournal(path, read_only=read_only)


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="Not a directory"):
        SqliteJournal(tmp_path / "file" / "registry.sqlite")
    with pytest.raises(JournalError, match="No such file"):
        SqliteJournal(tmp_path / "missing" / "registry.sqlite")


def test_reading_only_refuses_commits_and_needs_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    with pytest.raises(JournalError, match="No such file"):
        SqliteJournal(path, read_only=True)
    path.touch()
    with pytest.raises(JournalError, match="empty"):
        SqliteJournal(path, read_only=True)
    journal = SqliteJournal(path)
    onlooker = SqliteJournal(path, read_only=True)
    journal.commit([Write("meta", "a", b"1")])
    assert onlooker.get("meta", "a") == b"1"
    with pytest.raises(JournalFault, match="reading only"):
        onlooker.commit([Write("meta", "a", b"2")])
    onlooker.close()
    journal.close()


def test_a_journal_is_readable_after_its_writer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), "normal"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.kill()
    onlooker = SqliteJournal(path, read_only=True)
    assert onlooker.count("runs", {}) == 12 * int(onlooker.get("meta", "n") or 0) > 0
    onlooker.close()


# ------------------------------------------------------------------ checkpoint


def test_a_checkpoint_copies_the_log_and_the_next_commit_begins_it_anew(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    for n in range(50):
        journal.commit([Write("events", n, b"x" * 3000)])
    done = journal.checkpoint()
    assert done.log == done.moved > 50
    size = journal.statistics().wal_pages
    for n in range(50, 80):
        journal.commit([Write("events", n, b"x" * 3000)])
    assert journal.statistics().wal_pages == size
    assert journal.statistics().checkpoints == 1
    journal.close()


def test_commits_go_on_beside_checkpoints_and_the_log_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw_ray.store.sqlite_journal._LONG_LOG", 200)
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    over = threading.Event()
    passes = []

    def keep_copying() -> None:
        while not over.is_set():
            passes.append(journal.checkpoint())

    beside = threading.Thread(target=keep_copying)
    beside.start()
    for n in range(3000):
        journal.commit([Write("meta", n % 50, b"x" * 2000), Write("events", n, b"x" * 1000, live=False)])
    over.set()
    beside.join()
    assert journal.count("events", {}) == 3000
    assert journal.statistics().wal_pages < 6000
    assert journal.statistics().checkpoints == len(passes)
    journal.close()


def test_a_reader_in_the_middle_of_the_log_does_not_stop_the_writer(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    journal.commit([Write("meta", "a", b"1")])
    reader = sqlite3.connect(journal.path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT data FROM meta").fetchall() == [(b"1",)]
    journal.commit([Write("meta", "a", b"2")])
    done = journal.checkpoint()
    assert done.moved < done.log
    assert reader.execute("SELECT data FROM meta").fetchall() == [(b"1",)]
    reader.close()
    journal.close()


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    journal.commit([Write("meta", "a", b"1")])
    journal.checkpoint()
    journal.close()
    assert os.listdir(tmp_path) == ["registry.sqlite"]
