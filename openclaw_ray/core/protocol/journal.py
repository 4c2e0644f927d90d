"""Where the registry's truth is kept: one transaction per step, all or nothing (PROTOCOL.md 1.2).

`Journal` is what the protocol asks of a store; the SQLite one is in ``openclaw_ray.store``. `MemoryJournal` is the
simulator's: its commits can be made to fail, and a crash keeps exactly what was committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol

__all__ = ["COLUMNS", "Journal", "JournalFault", "MemoryJournal", "Write"]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "meta": (),
    "bundles": (),
    "clients": (),
    "actors": (),
    "marks": (),
    "sessions": ("root", "requester", "agent", "state", "created"),
    "roots": (),
    "runs": ("root", "session", "requester", "agent", "state", "created", "ended"),
    "rows": (),
    "events": (),
    "claims": (),
    "items": ("page",),
    "due": (),
    "exchanges": (),
    "threads": (),
}
"""Tables, each with the columns it can be filtered by. ``rows``, ``events`` and ``due`` are keyed by integers."""


class JournalFault(Exception):
    """A commit did not happen; nothing of it was kept."""


class Write(NamedTuple):
    """One upsert (``data`` given) or delete (``data`` is `None`).

    ``live`` marks records that memory holds; `Journal.live` gives those back after a crash. ``columns`` are in the
    order of `COLUMNS` for the table.
    """

    table: str
    key: str | int
    data: bytes | None
    live: bool = True
    columns: tuple[Any, ...] = ()


class Journal(Protocol):
    """A durable store of keyed records with atomic commits."""

    def commit(self, writes: Sequence[Write]) -> None:
        """Apply all of ``writes`` or none.

        Raises:
            JournalFault: nothing was kept (disk full, not writable).
        """

    def live(self, table: str) -> Iterable[tuple[str | int, bytes]]:
        """All live records of a table, in the order in which their keys were first written."""

    def get(self, table: str, key: str | int) -> bytes | None:
        """One record, live or not."""

    def select(
        self, table: str, where: Mapping[str, Any], *, limit: int, offset: int = 0, newest_first: bool = True
    ) -> list[bytes]:
        """Records whose columns equal ``where`` (a list value means any of), by order of first write."""

    def count(self, table: str, where: Mapping[str, Any]) -> int:
        """How many records `select` would find."""

    def after(self, table: str, key: int, *, limit: int) -> list[tuple[int, bytes]]:
        """Records of an integer-keyed table above ``key``, rising."""

    def ended_after(self, table: str, number: int, *, limit: int) -> list[tuple[int, str, bytes]]:
        """Records of a text-keyed table that are not live, as (number, key, data): in the order of first write, of
        which ``number`` is the place of the last one that was seen, 0 for none."""

    def delete_upto(self, table: str, key: int) -> None:
        """Drop records of an integer-keyed table up to ``key``; may be lost in a crash (they are only repeats)."""

    def close(self) -> None:
        """Release the store."""


@dataclass(slots=True)
class _Record:
    order: int
    data: bytes
    live: bool
    columns: tuple[Any, ...]


@dataclass
class MemoryJournal:
    """A journal in memory for tests and the simulator.

    Attributes:
        fail_next: that many of the next commits raise `JournalFault` without keeping anything.
        commits: commits that happened.
    """

    fail_next: int = 0
    commits: int = 0
    _tables: dict[str, dict[str | int, _Record]] = field(default_factory=lambda: {t: {} for t in COLUMNS})
    _order: int = 0

    def commit(self, writes: Sequence[Write]) -> None:
        """See `Journal.commit`."""
        if self.fail_next > 0:
            self.fail_next -= 1
            raise JournalFault("this commit was made to fail")
        for w in writes:
            table = self._tables[w.table]
            if w.data is None:
                table.pop(w.key, None)
                continue
            old = table.get(w.key)
            if old is None:
                self._order += 1
            order = self._order if old is None else old.order
            table[w.key] = _Record(order, w.data, w.live, w.columns)
        self.commits += 1

    def live(self, table: str) -> list[tuple[str | int, bytes]]:
        """See `Journal.live`."""
        return [(key, r.data) for key, r in self._tables[table].items() if r.live]

    def get(self, table: str, key: str | int) -> bytes | None:
        """See `Journal.get`."""
        record = self._tables[table].get(key)
        return record.data if record else None

    def _found(self, table: str, where: Mapping[str, Any]) -> list[_Record]:
        names = COLUMNS[table]

        def fits(record: _Record) -> bool:
            for name, wanted in where.items():
                value = record.columns[names.index(name)]
                if value not in wanted if isinstance(wanted, (list, tuple, set)) else value != wanted:
                    return False
            return True

        return [r for r in self._tables[table].values() if fits(r)]

    def select(
        self, table: str, where: Mapping[str, Any], *, limit: int, offset: int = 0, newest_first: bool = True
    ) -> list[bytes]:
        """See `Journal.select`."""
        found = sorted(self._found(table, where), key=lambda r: r.order, reverse=newest_first)
        return [r.data for r in found[offset : offset + limit]]

    def count(self, table: str, where: Mapping[str, Any]) -> int:
        """See `Journal.count`."""
        return len(self._found(table, where))

    def after(self, table: str, key: int, *, limit: int) -> list[tuple[int, bytes]]:
        """See `Journal.after`."""
        keys = sorted(k for k in self._tables[table] if isinstance(k, int) and k > key)
        return [(k, self._tables[table][k].data) for k in keys[:limit]]

    def ended_after(self, table: str, number: int, *, limit: int) -> list[tuple[int, str, bytes]]:
        """See `Journal.ended_after`."""
        rows = self._tables[table].items()
        found = ((r.order, str(key), r.data) for key, r in rows if r.order > number and not r.live)
        return list(islice(found, limit))

    def delete_upto(self, table: str, key: int) -> None:
        """See `Journal.delete_upto`."""
        rows = self._tables[table]
        for k in [k for k in rows if isinstance(k, int) and k <= key]:
            del rows[k]

    def copy(self) -> MemoryJournal:
        """What a crash at this moment would leave."""
        return MemoryJournal(0, self.commits, {t: dict(rows) for t, rows in self._tables.items()}, self._order)

    def close(self) -> None:
        """See `Journal.close`."""
