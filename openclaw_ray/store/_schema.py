"""Tables, indexes and statements of ``registry.sqlite``, made from `COLUMNS` of the journal's interface.

Each table has ``key``, ``live``, its columns and ``data``. Tables keyed by text number their records by
``id`` in the order of first write, which an update leaves alone; ``rows``, ``events`` and ``due`` have their
own number as that.

What a write costs decides the indexes: in a small commit every tree touched is a page in the log, about 6 µs.
The two tables that grow with every run have one for each column that leads from a record to few others, and
one over the live records alone, so that a start after a crash reads those and not a history of millions.
``agent``, ``state``, ``created`` and ``ended`` have none: a filter by them alone scans, newest first, until
its limit is reached.
"""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_ray.core.protocol.journal import COLUMNS

__all__ = ["APPLICATION_ID", "INTEGER_KEYED", "SCHEMA_VERSION", "Statements", "creation", "statements", "upgrade"]

APPLICATION_ID = 0x6F63_7261
"""``ocra``: marks a SQLite file as a journal of ours (``PRAGMA application_id``)."""

SCHEMA_VERSION = 5
"""``PRAGMA user_version`` of the tables as they are made here."""

INTEGER_KEYED = frozenset({"rows", "events", "due"})
"""Tables whose key is an integer, by which they are read in order."""

_ADDED = {2: ("claims", "items"), 3: ("due",), 4: ("exchanges",), 5: ("threads",)}
"""Tables that came with a version."""

_LASTING = {"sessions": ("root", "requester"), "runs": ("root", "requester"), "items": ("page",)}
"""Indexed columns that a record is born with: an upsert that finds them unchanged spares their indexes."""


@dataclass(frozen=True, slots=True)
class Statements:
    """The SQL for one table.

    Attributes:
        upsert: (key, live, data, \\*columns) → the record, whatever was there.
        keep_live, keep_links: the same at half the price, and without effect (no row counted) on a record
            that changes its lasting columns; `keep_live` also on one that changes its ``live``. `None` where
            nothing would be saved.
        delete: (key).
        get: (key) → data.
        live: () → (key, data) of live records by order of first write.
        after: (key, limit) → (key, data), rising; for integer keys.
        ended_after: (id, limit) → (id, key, data) of records that are not live, rising; for text keys.
        delete_upto: (key); for integer keys.
    """

    upsert: str
    keep_live: str | None
    keep_links: str | None
    delete: str
    get: str
    live: str
    after: str
    ended_after: str
    delete_upto: str


def _order(table: str) -> str:
    return "key" if table in INTEGER_KEYED else "id"


def creation() -> list[str]:
    """The statements that make all tables and indexes in an empty file, its marks included."""
    made = [statement for table in COLUMNS for statement in _table(table)]
    return [*made, f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {SCHEMA_VERSION}"]


def upgrade(version: int) -> list[str]:
    """The statements that bring a file of an older ``version`` to this one; it keeps all that it has."""
    newer = sorted(number for number in _ADDED if number > version)
    made = [statement for number in newer for table in _ADDED[number] for statement in _table(table)]
    return [*made, f"PRAGMA user_version = {SCHEMA_VERSION}"]


def _table(table: str) -> list[str]:
    # no type for the key: whatever was written comes back as it was, text or number
    key = "key INTEGER PRIMARY KEY" if table in INTEGER_KEYED else "id INTEGER PRIMARY KEY, key NOT NULL UNIQUE"
    fields = "".join(f", {column}" for column in COLUMNS[table])
    made = [f"CREATE TABLE {table} ({key}, live INTEGER NOT NULL{fields}, data BLOB NOT NULL)"]
    if lasting := _LASTING.get(table):
        made += [f"CREATE INDEX {table}_{column} ON {table} ({column})" for column in lasting]
        made.append(f"CREATE INDEX {table}_live ON {table} (id) WHERE live = 1")
    return made


def statements(table: str) -> Statements:
    """The SQL for ``table``."""
    columns = COLUMNS[table]
    names = ("key", "live", "data", *columns)
    insert = (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT (key) "
    )

    def update(changing: tuple[str, ...]) -> str:
        return "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in changing)

    keep_live = keep_links = None
    if lasting := _LASTING.get(table):
        loose = tuple(name for name in names[1:] if name not in lasting)
        same = " AND ".join(f"{table}.{name} IS excluded.{name}" for name in lasting)
        keep_links = f"{insert}{update(loose)} WHERE {same}"
        still = tuple(name for name in loose if name != "live")
        keep_live = f"{insert}{update(still)} WHERE {same} AND {table}.live IS excluded.live"
    return Statements(
        upsert=insert + update(names[1:]),
        keep_live=keep_live,
        keep_links=keep_links,
        delete=f"DELETE FROM {table} WHERE key = ?",
        get=f"SELECT data FROM {table} WHERE key = ?",
        live=f"SELECT key, data FROM {table} WHERE live = 1 ORDER BY {_order(table)}",
        after=f"SELECT key, data FROM {table} WHERE key > ? ORDER BY key LIMIT ?",
        ended_after=f"SELECT id, key, data FROM {table} WHERE id > ? AND live = 0 ORDER BY id LIMIT ?",
        delete_upto=f"DELETE FROM {table} WHERE key <= ?",
    )
