"""The journal for those who only look: the command line without a live runtime, and the hub for older events.

Opened read-only beside the registry, whose journal it never holds up: each question is a read of its own. How
a record is written is the registry's affair, so what turns its bytes into an object is given by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.store.places import JOURNAL
from openclaw_ray.store.sqlite_journal import SqliteJournal

__all__ = ["Reading"]

RunT = TypeVar("RunT")
SessionT = TypeVar("SessionT")
EventT = TypeVar("EventT")
Answer = TypeVar("Answer")


class Reading(Generic[RunT, SessionT, EventT]):
    """Runs, sessions and events of one state dir, as the last commit left them. A context manager.

    Args:
        state_dir: the folder with ``registry.sqlite``.
        run, session, event: make an object of a record's bytes.

    Raises:
        JournalError: there is no journal there, or it cannot be read.
    """

    def __init__(
        self,
        state_dir: str | Path,
        *,
        run: Callable[[bytes], RunT],
        session: Callable[[bytes], SessionT],
        event: Callable[[bytes], EventT],
    ) -> None:
        self._journal = SqliteJournal(Path(state_dir) / JOURNAL, read_only=True)
        self._run, self._session, self._event = run, session, event

    def run(self, run_id: str) -> RunT | None:
        """One run, or `None`."""
        data = self._ask(lambda journal: journal.get("runs", run_id))
        return None if data is None else self._run(data)

    def session(self, key: str) -> SessionT | None:
        """One session by the key of its record, or `None`."""
        data = self._ask(lambda journal: journal.get("sessions", key))
        return None if data is None else self._session(data)

    def runs(
        self, *, limit: int = 100, offset: int = 0, newest_first: bool = True, **filters: Any
    ) -> list[RunT]:
        """Runs by order of admission.

        Args:
            filters: ``root``, ``session``, ``requester``, ``agent``, ``state``, ``created``, ``ended``; a
                list means any of its values, `None` that there is none. Those after ``requester`` have no
                index.

        Raises:
            ValueError: there is no such filter.
            JournalError: the journal cannot be read.
        """
        return [self._run(data) for data in self._select("runs", filters, limit, offset, newest_first)]

    def sessions(
        self, *, limit: int = 100, offset: int = 0, newest_first: bool = True, **filters: Any
    ) -> list[SessionT]:
        """Sessions by order of birth.

        Args:
            filters: ``root``, ``requester``, ``agent``, ``state``, ``created``, as for `runs`.

        Raises:
            ValueError: there is no such filter.
            JournalError: the journal cannot be read.
        """
        return [
            self._session(data) for data in self._select("sessions", filters, limit, offset, newest_first)
        ]

    def count_runs(self, **filters: Any) -> int:
        """How many runs `runs` would give without a limit."""
        return self._ask(lambda journal: journal.count("runs", filters))

    def count_sessions(self, **filters: Any) -> int:
        """How many sessions `sessions` would give without a limit."""
        return self._ask(lambda journal: journal.count("sessions", filters))

    def events(self, after: int = 0, limit: int = 1_000) -> list[EventT]:
        """Events whose number is above ``after``, rising.

        Raises:
            JournalError: the journal cannot be read.
        """
        found = self._ask(lambda journal: journal.after("events", after, limit=limit))
        return [self._event(data) for _, data in found]

    def close(self) -> None:
        """Release the file; harmless twice."""
        self._journal.close()

    def _select(
        self, table: str, filters: dict[str, Any], limit: int, offset: int, newest_first: bool
    ) -> list[bytes]:
        return self._ask(
            lambda journal: journal.select(
                table, filters, limit=limit, offset=offset, newest_first=newest_first
            )
        )

    def _ask(self, question: Callable[[SqliteJournal], Answer]) -> Answer:
        try:
            return question(self._journal)
        except JournalFault as fault:
            raise JournalError(str(self._journal.path), str(fault)) from fault

    def __enter__(self) -> Reading[RunT, SessionT, EventT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
