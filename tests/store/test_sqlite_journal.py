"""SqliteJournal: what it keeps, in which order, and that it behaves like the simulator's journal."""

from __future__ import annotations

import sqlite3
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.journal import COLUMNS, Journal, JournalFault, MemoryJournal, Write
from openclaw_ray.store._selection import select_query
from openclaw_ray.store.sqlite_journal import SqliteJournal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    opened = SqliteJournal(tmp_path / "registry.sqlite")
    yield opened
    opened.close()


def run(
    key: str,
    data: bytes = b"data",
    *,
    live: bool = True,
    root: str = "R",
    session: str = "S",
    requester: str = "Q",
    state: str = "queued",
    ended: float | None = None,
) -> Write:
    return Write("runs", key, data, live, (root, session, requester, "worker", state, 1.5, ended))


def test_a_commit_is_there_after_reopening(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    journal.commit([Write("meta", "incarnation", b"7"), run("r1", b"one"), Write("events", 5, b"event")])
    journal.close()
    again = SqliteJournal(tmp_path / "registry.sqlite")
    assert again.get("meta", "incarnation") == b"7"
    assert again.get("runs", "r1") == b"one"
    assert again.after("events", 4, limit=10) == [(5, b"event")]
    again.close()


def test_the_file_and_its_companions_are_private(journal: SqliteJournal) -> None:
    journal.commit([run("r1")])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in journal.path.parent.iterdir()}
    assert modes == dict.fromkeys(("registry.sqlite", "registry.sqlite-wal", "registry.sqlite-shm"), 0o600)


def test_an_update_keeps_the_place_of_the_first_write(journal: SqliteJournal) -> None:
    journal.commit([run("a"), run("b"), run("c")])
    journal.commit([run("a", b"new", state="running")])
    assert [key for key, _ in journal.live("runs")] == ["a", "b", "c"]
    assert journal.select("runs", {}, limit=9, newest_first=False)[0] == b"new"


def test_a_key_written_again_after_its_delete_is_the_newest(journal: SqliteJournal) -> None:
    journal.commit([run("a"), run("b")])
    journal.commit([Write("runs", "a", None), run("a")])
    assert [key for key, _ in journal.live("runs")] == ["b", "a"]


def test_a_record_that_ends_leaves_the_live_ones_and_can_come_back(journal: SqliteJournal) -> None:
    journal.commit([run("a"), run("b")])
    journal.commit([run("a", b"end", live=False, state="succeeded", ended=2.5)])
    assert [key for key, _ in journal.live("runs")] == ["b"]
    assert journal.get("runs", "a") == b"end"
    journal.commit([run("a", b"again", live=True)])
    assert journal.live("runs") == [("a", b"again"), ("b", b"data")]


def test_columns_that_usually_last_may_change_all_the_same(journal: SqliteJournal) -> None:
    journal.commit([run("a", root="R1", session="S1", requester="Q1"), run("b", root="R1")])
    journal.commit(
        [run("a", b"moved", root="R2", session="S2", requester="Q2"), run("b", b"stays", root="R1")]
    )
    assert journal.select("runs", {"root": "R1"}, limit=9) == [b"stays"]
    assert journal.select("runs", {"requester": "Q2", "session": "S2"}, limit=9) == [b"moved"]


def test_filters_take_values_lists_and_the_absence_of_a_value(journal: SqliteJournal) -> None:
    journal.commit(
        [
            run("a", b"a", state=RunState.QUEUED),
            run("b", b"b", state=RunState.RUNNING, root="other"),
            run("c", b"c", state=RunState.FAILED, ended=3.0, live=False),
        ]
    )
    assert journal.select("runs", {"state": RunState.RUNNING}, limit=9) == [b"b"]
    assert journal.select("runs", {"state": ["queued", "failed"]}, limit=9) == [b"c", b"a"]
    assert journal.select("runs", {"ended": None}, limit=9) == [b"b", b"a"]
    assert journal.select("runs", {"ended": [None, 3.0], "root": "R"}, limit=9) == [b"c", b"a"]
    assert journal.select("runs", {"state": []}, limit=9) == []
    assert journal.count("runs", {"root": "R"}) == 2


def test_a_page_is_limited_and_begins_after_its_offset(journal: SqliteJournal) -> None:
    journal.commit([run(f"r{n}", b"%d" % n) for n in range(10)])
    assert journal.select("runs", {"root": "R"}, limit=3, offset=2) == [b"7", b"6", b"5"]
    assert journal.select("runs", {}, limit=2, offset=9, newest_first=False) == [b"9"]


def test_a_filter_that_the_table_has_not_is_an_error_that_names_those_it_has(journal: SqliteJournal) -> None:
    with pytest.raises(ValueError, match=r"sessions cannot be filtered by 'colour'; by: root, requester"):
        journal.select("sessions", {"colour": "red"}, limit=1)


@pytest.mark.parametrize("column", ["root", "requester"])
def test_looking_up_a_few_runs_among_many_uses_an_index(journal: SqliteJournal, column: str) -> None:
    from openclaw_ray.store._selection import select_query

    sql, bound = select_query("runs", {column: "x"}, limit=5, offset=0, newest_first=True)
    plan = journal._read("runs", f"EXPLAIN QUERY PLAN {sql}", bound)
    assert [row[3] for row in plan] == [f"SEARCH runs USING INDEX runs_{column} ({column}=?)"]


def test_the_live_records_are_found_without_reading_the_others(journal: SqliteJournal) -> None:
    from openclaw_ray.store._schema import statements

    plan = journal._read("runs", f"EXPLAIN QUERY PLAN {statements('runs').live}", ())
    assert [row[3] for row in plan] == ["SCAN runs USING INDEX runs_live"]


def test_what_has_passed_is_gone_at_once_and_on_disk_with_the_next_commit(journal: SqliteJournal) -> None:
    journal.commit([Write("rows", n, b"%d" % n) for n in range(1, 6)])
    commits = journal.statistics().commits
    journal.delete_upto("rows", 3)
    assert journal.after("rows", 0, limit=9) == [(4, b"4"), (5, b"5")]
    assert journal.statistics().commits == commits
    journal.commit([Write("meta", "x", b"y")])
    onlooker = SqliteJournal(journal.path, read_only=True)
    assert onlooker.live("rows") == [(4, b"4"), (5, b"5")]
    onlooker.close()


def test_every_kind_of_read_leaves_out_what_has_passed(journal: SqliteJournal) -> None:
    reads: list[Callable[[], int]] = [
        lambda: journal.count("rows", {}),
        lambda: len(journal.live("rows")),
        lambda: len(journal.select("rows", {}, limit=9)),
    ]
    for read in reads:
        journal.commit([Write("rows", n, b"x") for n in (1, 2)])
        journal.delete_upto("rows", 1)
        assert read() == 1
    journal.commit([Write("rows", n, b"x") for n in (1, 2)])
    journal.delete_upto("rows", 1)
    assert journal.get("rows", 1) is None


def test_statistics_count_what_was_kept(journal: SqliteJournal) -> None:
    journal.commit([run("a", b"12345"), Write("meta", "m", b"678")])
    journal.commit([Write("meta", "m", None)])
    with pytest.raises(Exception, match="binding"):
        journal.commit([Write("runs", "b", b"x", True, ("too few",))])
    seen = journal.statistics()
    assert (seen.commits, seen.failed, seen.writes, seen.bytes) == (2, 1, 3, 8)
    assert seen.pages > 1
    assert seen.wal_pages > 1
    assert 0 < seen.slowest_commit < 60


def test_a_closed_journal_says_so_and_closes_twice(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "registry.sqlite")
    journal.close()
    journal.close()
    for use in (
        lambda: journal.commit([run("a")]),
        lambda: journal.get("runs", "a"),
        journal.checkpoint,
        journal.statistics,
    ):
        with pytest.raises(JournalFault, match="closed"):
            use()


def test_threads_that_share_a_lock_share_the_journal(journal: SqliteJournal) -> None:
    lock = threading.Lock()

    def write(name: int) -> None:
        for n in range(50):
            with lock:
                journal.commit([run(f"{name}-{n}")])

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journal.count("runs", {}) == 200


# ------------------------------------------------------------------ the same as the simulator's

KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from([None, "x", "y"])


@st.composite
def writes(draw: st.DrawFn) -> Write:
    table = draw(st.sampled_from(["meta", "sessions", "runs", "rows", "events"]))
    key = draw(st.integers(1, 6)) if table in ("rows", "events") else draw(KEYS)
    if draw(st.integers(0, 4)) == 0:
        return Write(table, key, None)
    columns = tuple(draw(VALUES) for _ in COLUMNS[table])
    return Write(table, key, draw(st.binary(max_size=4)), draw(st.booleans()), columns)


def everything(journal: Journal) -> list[object]:
    seen: list[object] = []
    for table, columns in COLUMNS.items():
        # an integer-keyed table of the simulator's is in the order of writing, of SQLite in that of its
        # numbers: the same where the numbers rise, as they do in use
        order = sorted if table in ("rows", "events") else list
        seen.append(order(journal.live(table)))
        for column in columns:
            for wanted in (None, "x", ["x", "y"], [None, "y"]):
                seen.append(journal.count(table, {column: wanted}))
                seen.append(journal.select(table, {column: wanted}, limit=3, offset=1))
        if table in ("rows", "events"):
            seen.append(journal.after(table, 2, limit=3))
    return seen


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(writes(), max_size=6), max_size=6), st.integers(0, 4))
def test_it_answers_as_the_simulators_journal_does(commits: list[list[Write]], passed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real, model = SqliteJournal(Path(folder) / "registry.sqlite"), MemoryJournal()
        try:
            for n, batch in enumerate(commits):
                real.commit(batch)
                model.commit(batch)
                if n == 2:
                    real.delete_upto("rows", passed)
                    model.delete_upto("rows", passed)
            assert everything(real) == everything(model)
        finally:
            real.close()


def older(path: Path) -> None:
    """Make a journal of version 1 of one that has nothing newer in it."""
    db = sqlite3.connect(path, isolation_level=None)
    for table in ("claims", "items", "due", "exchanges", "threads"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        db.execute(f"DROP TABLE {table}")
    db.execute("PRAGMA user_version = 1")
    db.close()


def test_a_journal_of_an_older_version_is_brought_up_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    journal = SqliteJournal(path)
    journal.commit([run("r1", b"one"), Write("meta", "seq", b"7")])
    journal.close()
    older(path)
    with closing(SqliteJournal(path, read_only=True)) as reader:
        assert reader.get("runs", "r1") == b"one", "who only reads changes nothing"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    for _ in range(2):
        with closing(SqliteJournal(path)) as journal:
            journal.commit([Write("items", "m1", b"item", False, ("m\n0",)), Write("claims", "m", b"claim")])
            assert journal.select("items", {"page": ["m\n0"]}, limit=9) == [b"item"]
            assert journal.live("claims") == [("m", b"claim")]
            assert journal.get("runs", "r1") == b"one"
    with closing(sqlite3.connect(path)) as db:
        made = set(db.execute("SELECT type, name FROM sqlite_master"))
        assert db.execute("PRAGMA user_version").fetchone() == (5,)
    fresh = tmp_path / "fresh.sqlite"
    SqliteJournal(fresh).close()
    with closing(sqlite3.connect(fresh)) as db:
        assert set(db.execute("SELECT type, name FROM sqlite_master")) == made


def test_a_page_of_items_is_found_by_its_index(journal: SqliteJournal) -> None:
    sql, bound = select_query("items", {"page": ["m\n0"]}, limit=9, offset=0, newest_first=False)
    with closing(sqlite3.connect(journal.path)) as db:
        plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", bound))
    assert "items_page" in plan
