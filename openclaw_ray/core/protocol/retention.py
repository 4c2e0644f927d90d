"""Retention: what has ended and is past its time leaves the journal (SPEC.md H2, H4).

1. A run is kept for 7 days after its end, with what a stop's report needs of it, a lost one for 24 hours; an event for
   7 days; a session that has ended for ``session.maintenance.pruneAfter`` after its end. What is in memory, has not
   ended, or is an item of a named map, stays.
2. A *round* goes through a table in the order in which its records were first written, a few at a look, so that no step
   waits for more than that. It is over with the first record that was made too late to be past its time: all behind it
   were made later still.
3. The first round begins a minute after the registry has, the next one an hour after the end of the one before.
4. Lost runs are few and go before the others: each has a time of its own in the table of what is due (`archiving`).
5. A session that was not archived by its time is archived first: its transcript is renamed. Files of archived
   transcripts go by the time in their names (`openclaw_ray.store.pruning`).
6. All of it goes by the wall clock and the journal alone: after a crash it begins again.

The database's file does not shrink: the pages that become free are used for what is written next, so that it levels out
at the most that was kept at a time. To give them back to the disk would be to write the whole file anew with every step
waiting for it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass

from openclaw_ray.core.ledger import TASK_KEPT
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.archiving import BACKLOG_EVERY, SWEEP, bury
from openclaw_ray.core.protocol.records import Run, Session, thaw
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.upkeep import Done, Upkeep

__all__ = ["EVENTS_AT_ONCE", "FIRST_AFTER", "ROUND_EVERY", "TABLES", "Cursor", "Retention"]

FIRST_AFTER = 60.0
"""Seconds from the registry's start to the first round (3)."""
ROUND_EVERY = 3600.0
"""Seconds from the end of one round to the next (3)."""
EVENTS_AT_ONCE = 256
"""Most events that one look drops."""
_TOO_LATE = Done("", "", "", "")
"""Made too late to be past its time: the end of a table's part of a round (2)."""
TABLES = ("events", "runs", "roots", "sessions")
"""What rounds go through, in this order."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a round is: the table, and the number of the last record that it has looked at."""

    table: str = TABLES[0]
    after: int = 0


class Retention:
    """The sweeper of records."""

    def __init__(self, state: State, upkeep: Upkeep) -> None:
        self.s = state
        self.upkeep = upkeep
        self._cursor: Cursor | None = None
        self._next = state.clock.mono() + FIRST_AFTER

    # ------------------------------------------------------------------ by itself

    def sweep(self, now: float) -> None:
        """One look, if it is time for one (2); ``now``: monotonic."""
        if now < self._next or self.s.recovering:
            return
        _, self._cursor = self.look(self._cursor or Cursor(), apply=True)
        self._next = now + (ROUND_EVERY if self._cursor is None else BACKLOG_EVERY)

    def next_look(self, latest: float) -> float:
        """When to look again; ``latest`` unless it is earlier."""
        return min(latest, self._next) if self._cursor is not None else latest

    # ------------------------------------------------------------------ one look

    def look(self, cursor: Cursor, *, apply: bool, most: int = SWEEP) -> tuple[list[Done], Cursor | None]:
        """Look at the next records of a round, and drop those whose time is over.

        Args:
            apply: do it; else it is only said what would be done.
            most: how many records.

        Returns:
            what was done, or would be; where to go on, `None` at the end of the round.
        """
        if cursor.table == "events":
            return self._events(cursor, apply)
        found = self.s.journal.ended_after(cursor.table, cursor.after, limit=most)
        look = self._session if cursor.table == "sessions" else self._run
        done: list[Done] = []
        for _, _, data in found:
            verdict = look(data, apply)
            if verdict is _TOO_LATE:
                return done, self._next_table(cursor)
            if verdict is not None:
                done.append(verdict)
        if len(found) < most:
            return done, self._next_table(cursor)
        return done, Cursor(cursor.table, found[-1][0])

    def _next_table(self, cursor: Cursor) -> Cursor | None:
        place = TABLES.index(cursor.table) + 1
        return Cursor(TABLES[place]) if place < len(TABLES) else None

    def _run(self, data: bytes, apply: bool) -> Done | None:
        run: Run = thaw(Run, data)
        if run.created + TASK_KEPT > self.s.clock.wall():
            return _TOO_LATE
        return self.upkeep.drop_record(run, apply=apply)

    def _session(self, data: bytes, apply: bool) -> Done | None:
        s = self.s
        session: Session = thaw(Session, data)
        key, now, kept = session.key, s.clock.wall(), s.limits.prune_after
        if session.created + kept > now:
            return _TOO_LATE
        ended = session.ended or session.created
        if key in s.sessions or ended + kept > now or not (session.depth > 0 or session.client):
            return None
        if session.depth > 0 and session.state != SessionState.ARCHIVED:
            if apply:
                bury(s, session, "pruneAfter")
                s.retire(session)
            return Done("archive", "", key, f"{session.state}, past session.maintenance.pruneAfter")
        if apply:
            s.drop("sessions", key)
        return Done("drop", "", key, f"{session.state}, past session.maintenance.pruneAfter")

    def _events(self, cursor: Cursor, apply: bool) -> tuple[list[Done], Cursor | None]:
        s = self.s
        found = s.journal.after("events", cursor.after, limit=EVENTS_AT_ONCE)
        until = s.clock.wall() - TASK_KEPT
        old = _how_many(found, lambda data: pickle.loads(data).at <= until)
        done: list[Done] = []
        if old:
            last = found[old - 1][0]
            done.append(Done("drop", "", "", f"{old} events up to number {last}, older than 7 days"))
            if apply:
                s.journal.delete_upto("events", last)
        if old < EVENTS_AT_ONCE:
            return done, self._next_table(cursor)
        return done, Cursor("events", found[-1][0])


def _how_many(found: list[tuple[int, bytes]], is_old: Callable[[bytes], bool]) -> int:
    """How many of these, which rise in time, are old; few of them are read."""
    low, high = 0, len(found)
    while low < high:
        middle = (low + high) // 2
        if is_old(found[middle][1]):
            low = middle + 1
        else:
            high = middle
    return low
