"""Opening ``registry.sqlite``: what must hold of the file before it is read or written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from openclaw_ray.core.errors import JournalError
from openclaw_ray.store._schema import APPLICATION_ID, SCHEMA_VERSION, creation, upgrade

__all__ = ["AUTO_CHECKPOINT", "connect", "open_reader", "open_writer"]

AUTO_CHECKPOINT = 131_072
"""Pages of log (512 MiB) at which a commit copies it back by itself; `checkpoint` is to come before."""

_CACHE_KIB = 16_384


def connect(path: Path, mode: str, busy: float) -> sqlite3.Connection:
    """A connection in autocommit mode, for any thread; ``mode`` as in SQLite's URIs, ``busy`` in seconds."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        timeout=busy,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )


def open_writer(path: Path, *, full: bool, busy: float) -> sqlite3.Connection:
    """Open the journal for writing; a file that is not there, or is empty, becomes a new one with mode 0600.

    Raises:
        JournalError: not writable, no database, not one of ours, of a newer version, or no WAL possible.
    """
    try:
        # SQLite gives its companions (-wal, -shm) the mode of this file
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise JournalError(str(path), f"cannot be opened for writing: {error.strerror}") from error
    return _open(path, "mode=rw", busy, lambda db: _prepare(path, db, full))


def open_reader(path: Path, *, busy: float) -> sqlite3.Connection:
    """Open the journal for reading only, beside a writer or without one.

    Raises:
        JournalError: there is none, or it is not one of ours, or from a newer version.
    """
    try:
        path.stat()
    except OSError as error:
        raise JournalError(str(path), f"cannot be read: {error.strerror}") from error

    def check(db: sqlite3.Connection) -> None:
        if not _recognise(path, db):
            raise JournalError(str(path), "it is empty")

    try:
        return _open(path, "mode=ro", busy, check)
    except JournalError:
        # Without leave to write beside the file SQLite cannot set up its shared memory. A journal that was
        # closed in order has no WAL and can be read without.
        if path.with_name(path.name + "-wal").exists():
            raise
        return _open(path, "mode=ro&immutable=1", busy, check)


def _open(
    path: Path, mode: str, busy: float, prepare: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    try:
        db = connect(path, mode, busy)
    except sqlite3.Error as error:
        raise JournalError(str(path), str(error)) from error
    try:
        prepare(db)
    except BaseException as error:
        with suppress(sqlite3.Error):
            db.close()
        if isinstance(error, sqlite3.Error):
            raise JournalError(str(path), str(error)) from error
        raise
    return db


def _prepare(path: Path, db: sqlite3.Connection, full: bool) -> None:
    if not _recognise(path, db):
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise JournalError(
                str(path), f"this file system allows no write-ahead log (SQLite chose {mode!r})"
            )
        db.execute("BEGIN IMMEDIATE")
        for statement in creation():
            db.execute(statement)
        db.execute("COMMIT")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version < SCHEMA_VERSION:
        db.execute("BEGIN IMMEDIATE")
        for statement in upgrade(version):
            db.execute(statement)
        db.execute("COMMIT")
    db.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
    db.execute(f"PRAGMA wal_autocheckpoint = {AUTO_CHECKPOINT}")
    # the log's file is never cut while it is in use: giving back 200 MB of disk held up a commit for 60 ms
    db.execute("PRAGMA journal_size_limit = -1")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def _recognise(path: Path, db: sqlite3.Connection) -> bool:
    """Whether the file has our tables; False if it is empty.

    Raises:
        JournalError: it has somebody else's, or those of a newer version.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (objects,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not objects and not application:
        return False
    if application != APPLICATION_ID:
        raise JournalError(str(path), "this is a SQLite database, but not a journal of openclaw_ray")
    if version > SCHEMA_VERSION:
        raise JournalError(
            str(path),
            f"written by a newer openclaw_ray (schema {version}, this one knows {SCHEMA_VERSION}): "
            "upgrade openclaw_ray, or use another state_dir",
        )
    return True
