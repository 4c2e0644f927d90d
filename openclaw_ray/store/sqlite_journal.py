"""The registry's journal over SQLite: a commit is one transaction (DESIGN.md 10, PROTOCOL.md 1.2).

1. A commit is one transaction in the write-ahead log. With ``sync="normal"`` it survives the death of every
   process, with ``"full"`` (one fsync a commit) also power loss.
2. What fails in it (full disk, file not writable, somebody else's lock) is rolled back, raised as
   `JournalFault`, and leaves the journal usable.
3. The log goes back into the database by `SqliteJournal.checkpoint`, which runs on a connection of its own,
   so that a commit need not wait for it.
4. `SqliteJournal.delete_upto` only notes what may go; it goes with the next commit, for nothing.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from openclaw_ray.core.protocol.journal import COLUMNS, JournalFault, Write
from openclaw_ray.store._opening import connect, open_reader, open_writer
from openclaw_ray.store._schema import Statements, statements
from openclaw_ray.store._selection import count_query, select_query

__all__ = ["Checkpoint", "JournalStatistics", "SqliteJournal"]

_SQL = {table: statements(table) for table in COLUMNS}

_LONG_LOG = 16_384
"""Pages (64 MiB) over which a checkpoint makes the log begin anew, though writers never pause."""

_RESTART_WAIT = 0.05
"""Seconds for which a checkpoint that must restart the log may hold up a commit."""


@dataclass(frozen=True, slots=True)
class JournalStatistics:
    """A journal since it was opened.

    Attributes:
        commits, failed: transactions that were kept, and that were rolled back.
        writes: records written or deleted by the kept ones.
        bytes: bytes of data in those records.
        pages: pages of the database as the last commit left it.
        wal_pages: pages for which the write-ahead log's file has room now.
        slowest_commit: seconds.
        checkpoints: how often the log was copied back, by `SqliteJournal.checkpoint`.
    """

    commits: int
    failed: int
    writes: int
    bytes: int
    pages: int
    wal_pages: int
    slowest_commit: float
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What one checkpoint did: pages in the log, pages of it that are in the database now, seconds."""

    log: int
    moved: int
    seconds: float

    @property
    def complete(self) -> bool:
        """True if nothing is left, so that the next commit begins the log anew."""
        return self.moved >= self.log


class SqliteJournal:
    """`openclaw_ray.core.protocol.journal.Journal` in one SQLite file.

    Safe for several threads that share one lock of the caller's; only `checkpoint` and `close` need none.

    Args:
        path: the file; made with mode 0600 if it is not there.
        sync: ``normal`` or ``full`` (``ray.journal.sync``).
        read_only: open beside a writer, or without one; commits are then refused.
        busy: seconds that an operation waits for somebody else's lock.

    Raises:
        JournalError: the file cannot be used: not writable, not a journal of ours, or of a newer version.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        sync: Literal["normal", "full"] = "normal",
        read_only: bool = False,
        busy: float = 1.0,
    ) -> None:
        self.path = Path(path)
        self._db: sqlite3.Connection | None
        if read_only:
            self._db = open_reader(self.path, busy=busy)
        else:
            self._db = open_writer(self.path, full=sync == "full", busy=busy)
        self._read_only = read_only
        self._side: sqlite3.Connection | None = None
        self._side_lock = threading.Lock()
        self._page_size: int = self._db.execute("PRAGMA page_size").fetchone()[0]
        self._passed: dict[str, int] = {}
        self._commits = self._failed = self._writes = self._bytes = self._checkpoints = 0
        self._slowest = 0.0

    def commit(self, writes: Sequence[Write]) -> None:
        """Apply all of ``writes`` or none, in their order for each table.

        Raises:
            JournalFault: nothing was kept; the text is SQLite's. The next commit may succeed.
        """
        db = self._open()
        if self._read_only:
            raise JournalFault(f"{self.path}: opened for reading only")
        if not writes and not self._passed:
            return
        began = time.perf_counter()
        passed = self._passed
        try:
            db.execute("BEGIN IMMEDIATE")
            for table, key in passed.items():
                db.execute(_SQL[table].delete_upto, (key,))
            for table, kind, records in _batches(writes):
                _apply(db, _SQL[table], kind, records)
            db.execute("COMMIT")
        except BaseException as error:
            self._failed += 1
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            # a wrong number of columns or a value of no SQL type is a mistake of ours: not to be tried again
            # for ever
            if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.ProgrammingError):
                raise JournalFault(f"{self.path}: {error}") from error
            raise
        self._passed = {}
        self._commits += 1
        self._writes += len(writes)
        self._bytes += sum(len(write.data) for write in writes if write.data is not None)
        self._slowest = max(self._slowest, time.perf_counter() - began)

    def live(self, table: str) -> list[tuple[str | int, bytes]]:
        """All live records of a table, in the order in which their keys were first written."""
        return self._read(table, _SQL[table].live, ())

    def get(self, table: str, key: str | int) -> bytes | None:
        """One record, live or not."""
        found = self._read(table, _SQL[table].get, (key,))
        return found[0][0] if found else None

    def select(
        self, table: str, where: Mapping[str, Any], *, limit: int, offset: int = 0, newest_first: bool = True
    ) -> list[bytes]:
        """Records whose columns equal ``where`` (a list value means any of), by order of first write.

        Raises:
            ValueError: ``where`` names something that is not a column of the table.
        """
        sql, bound = select_query(table, where, limit=limit, offset=offset, newest_first=newest_first)
        return [data for (data,) in self._read(table, sql, bound)]

    def count(self, table: str, where: Mapping[str, Any]) -> int:
        """How many records `select` would find without a limit."""
        sql, bound = count_query(table, where)
        found: int = self._read(table, sql, bound)[0][0]
        return found

    def after(self, table: str, key: int, *, limit: int) -> list[tuple[int, bytes]]:
        """Records of an integer-keyed table above ``key``, rising."""
        # what has passed need not be deleted for this: it is not looked at
        return self._read("", _SQL[table].after, (max(key, self._passed.get(table, key)), limit))

    def ended_after(self, table: str, number: int, *, limit: int) -> list[tuple[int, str, bytes]]:
        """Records of a text-keyed table that are not live, as (number, key, data), by order of first write."""
        return self._read(table, _SQL[table].ended_after, (number, limit))

    def delete_upto(self, table: str, key: int) -> None:
        """Drop records of an integer-keyed table up to ``key``; on disk with the next commit."""
        self._passed[table] = max(key, self._passed.get(table, key))

    def checkpoint(self) -> Checkpoint:
        """Copy the write-ahead log back into the database; for a thread of its own, without a lock.

        Commits go on meanwhile. Only a log over 64 MiB is made to begin anew, which holds up a commit for as
        long as the last few pages take, 50 ms at most. Call it every second or so.

        Raises:
            JournalFault: the disk refuses; the log is kept and the journal works on.
        """
        began = time.perf_counter()
        with self._side_lock:
            self._open()
            try:
                if self._side is None:
                    self._side = connect(self.path, "mode=rw", _RESTART_WAIT)
                _, log, moved = self._side.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if log > _LONG_LOG:
                    # Under uninterrupted writing something is added during each pass, so that none ever finds
                    # the log copied as a whole. The second pass is short; what is left after it is copied
                    # with writers held up.
                    self._side.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    _, log, moved = self._side.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            except sqlite3.Error as error:
                raise JournalFault(f"{self.path}: checkpoint: {error}") from error
            self._checkpoints += 1
        return Checkpoint(log, moved, time.perf_counter() - began)

    def statistics(self) -> JournalStatistics:
        """A snapshot; under the caller's lock, like a read."""
        try:
            wal = self.path.with_name(self.path.name + "-wal").stat().st_size
        except OSError:
            wal = 0
        return JournalStatistics(
            commits=self._commits,
            failed=self._failed,
            writes=self._writes,
            bytes=self._bytes,
            pages=self._open().execute("PRAGMA page_count").fetchone()[0],
            wal_pages=wal // self._page_size,
            slowest_commit=self._slowest,
            checkpoints=self._checkpoints,
        )

    def close(self) -> None:
        """Release the file; harmless twice. The log goes into the database if nobody else has it open."""
        with self._side_lock:
            for db in (self._side, self._db):
                if db is not None:
                    with suppress(sqlite3.Error):
                        db.close()
            self._side = self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise JournalFault(f"{self.path}: the journal is closed")
        return self._db

    def _read(self, table: str, sql: str, bound: Sequence[Any]) -> list[Any]:
        db = self._open()
        if table in self._passed:
            self.commit(())
        try:
            return db.execute(sql, bound).fetchall()
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            raise JournalFault(f"{self.path}: {error}") from error


class _Kind(Enum):
    LIVE = "an upsert of a record that is live, as it most likely was before"
    ENDED = "an upsert of a record that is not live, and may have been"
    GONE = "a delete"


def _batches(writes: Sequence[Write]) -> list[tuple[str, _Kind, list[tuple[Any, ...]]]]:
    """(table, kind, records): few statements, and for each table the order of ``writes``."""
    batches: list[tuple[str, _Kind, list[tuple[Any, ...]]]] = []
    last: dict[str, tuple[str, _Kind, list[tuple[Any, ...]]]] = {}
    for table, key, data, live, columns in writes:
        kind = _Kind.GONE if data is None else _Kind.LIVE if live else _Kind.ENDED
        batch = last.get(table)
        if batch is None or batch[1] is not kind:
            batch = last[table] = (table, kind, [])
            batches.append(batch)
        # plain ints: sqlite3 takes a detour through its adapters for bools
        batch[2].append((key,) if data is None else (key, 1 if live else 0, data, *columns))
    return batches


def _apply(db: sqlite3.Connection, sql: Statements, kind: _Kind, records: list[tuple[Any, ...]]) -> None:
    if kind is _Kind.GONE:
        db.executemany(sql.delete, records)
        return
    cheap = sql.keep_live if kind is _Kind.LIVE else sql.keep_links
    if cheap is None or db.executemany(cheap, records).rowcount < len(records):
        # some record has another root, session or requester than before, or is live again: all once more, in
        # full
        db.executemany(sql.upsert, records)
