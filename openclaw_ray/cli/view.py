"""Looking at a runtime from outside: a live one by its name, or any by its state on disk.

1. A state dir that was named is read from disk, whether its runtime still runs or not.
2. A name is looked for in the Ray cluster at ``RAY_ADDRESS``, or in this machine's if the name has an owner
   now: a live runtime also tells what waits for what, and where things run.
3. If it is not there, its state on this machine is read; without a name, that of the runtime written to last
   whose journal can be read: those of other versions are passed over, with a note.

What changes something needs a live one: `openclaw_ray.cli.live`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from openclaw_ray.cli.output import kept_for_data

if TYPE_CHECKING:
    from openclaw_ray.store.reading import Reading

__all__ = ["DiskView", "LiveView", "StateView", "open_view", "view_options"]

Command = TypeVar("Command", bound=Callable[..., object])
Row = Mapping[str, object]

_PAGE = 500
_CHUNK = 1 << 20


class StateView(Protocol):
    """One runtime, read only.

    Attributes:
        source: what is looked at, for people: the runtime's name and its state dir.
    """

    @property
    def source(self) -> str:
        """See the class."""

    def runs(self, states: Sequence[str] = (), **filters: Any) -> Iterator[Row]:
        """Rows of runs (``runId``, ``sessionKey``, ``state``, …), newest first; of these states if any."""

    def run(self, run_id: str) -> Row | None:
        """One run's row, or `None`."""

    def sessions(self, **filters: Any) -> Iterator[Row]:
        """Rows of sessions (``key``, ``agentId``, ``status``, …), newest first."""

    def listed(self, given: Mapping[str, Any]) -> Iterator[Row]:
        """Sessions as ``sessions_list`` finds and shows them, by its filters, newest first."""

    def session(self, key: str) -> Row | None:
        """One session's row, or `None`."""

    def history(self, key: str, limit: int, offset: int) -> list[dict[str, Any]]:
        """A page of the session's transcript, newest last; ``offset`` counts from the newest."""

    def log(self, key: str) -> Iterator[bytes] | None:
        """What a session wrote, in pieces, nothing if there is no log here; `None` if there is no session."""


class DiskView:
    """A runtime by its state dir."""

    def __init__(self, state_dir: Path, reading: Reading[Any, Any, Any]) -> None:
        self._state_dir = state_dir
        self._reading = reading

    @property
    def source(self) -> str:
        """Name and place."""
        return f"runtime {self._state_dir.name} ({self._state_dir})"

    def runs(self, states: Sequence[str] = (), **filters: Any) -> Iterator[Row]:
        """Page by page from the journal."""
        return _pages(self._reading.runs, _with_states(filters, states))

    def look(self) -> None:
        """Read a run and a session, the newest and the oldest of each.

        Raises:
            JournalError: this version cannot read them.
        """
        for newest_first in (True, False):
            self._reading.runs(limit=1, newest_first=newest_first)
            self._reading.sessions(limit=1, newest_first=newest_first)

    @property
    def in_use(self) -> bool:
        """Whether a runtime has it open, as far as can be told from here."""
        from openclaw_ray.store.statelock import owner_of

        return owner_of(self._state_dir) is not None

    def run(self, run_id: str) -> Row | None:
        """From the journal."""
        found: Row | None = self._reading.run(run_id)
        return found

    def sessions(self, **filters: Any) -> Iterator[Row]:
        """Page by page from the journal."""
        return _pages(self._reading.sessions, filters)

    def listed(self, given: Mapping[str, Any]) -> Iterator[Row]:
        """By the registry's own rule over its journal, which is only read."""
        from openclaw_ray.core.clock import SystemClock
        from openclaw_ray.core.limits import RuntimeLimits
        from openclaw_ray.core.protocol.session_views import SessionViews
        from openclaw_ray.core.protocol.state import State
        from openclaw_ray.store.places import JOURNAL
        from openclaw_ray.store.sqlite_journal import SqliteJournal

        journal = SqliteJournal(self._state_dir / JOURNAL, read_only=True)
        with contextlib.closing(journal):
            views = SessionViews(State(journal, RuntimeLimits(), SystemClock(), pool_max=1, cpus=1))
            yield from _listed(lambda page: views.answer(None, "list", page).value, given)

    def session(self, key: str) -> Row | None:
        """From the journal."""
        found: Row | None = self._reading.session(key)
        return found

    def history(self, key: str, limit: int, offset: int) -> list[dict[str, Any]]:
        """From the transcript's file."""
        from openclaw_ray.store.transcripts import Transcripts

        session = self._reading.session(key)
        if session is None:
            return []
        rows = Transcripts(self._state_dir).read(session["agentId"], session["sessionId"], limit=limit, offset=offset)
        return [{"role": r.role, "text": r.text, "at": r.at, **(r.meta or {})} for r in rows]

    def log(self, key: str) -> Iterator[bytes] | None:
        """From the log's file."""
        session = self._reading.session(key)
        if session is None:
            return None
        newest = self._reading.runs(session=key, limit=1)
        return _read_log(self._state_dir, session["sessionId"], _still_at(newest[0]) if newest else "")

    @classmethod
    @contextlib.contextmanager
    def open(cls, state_dir: Path) -> Iterator[DiskView]:
        """Open the journal for reading, beside a registry that may be writing it.

        Raises:
            JournalError: there is none, or it cannot be read.
        """
        import pickle

        from openclaw_ray.actors.registry_views import event_of, run_row, session_row
        from openclaw_ray.core.errors import JournalError
        from openclaw_ray.core.protocol.records import Run, Session, thaw
        from openclaw_ray.store.places import JOURNAL
        from openclaw_ray.store.reading import Reading

        def thawed(cls: type[Any], data: bytes) -> Any:
            try:
                return thaw(cls, data)
            except (ValueError, TypeError, AttributeError, ImportError, EOFError, pickle.UnpicklingError) as error:
                why = f"a {cls.__name__.lower()} in it was written by another version of openclaw_ray ({error})"
                raise JournalError(str(state_dir / JOURNAL), why) from error

        reading: Reading[Any, Any, Any] = Reading(
            state_dir,
            run=lambda data: run_row(thawed(Run, data)),
            session=lambda data: session_row(thawed(Session, data)),
            event=event_of,
        )
        with reading:
            yield cls(state_dir, reading)


class LiveView:
    """A runtime that answers for itself; logs are read from disk, where they are on this machine."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime

    @property
    def source(self) -> str:
        """Name and place."""
        return f"live runtime {self._runtime.name} ({self._runtime.state_dir})"

    @property
    def runtime(self) -> Any:
        """The connected `openclaw_ray.Runtime`."""
        return self._runtime

    def runs(self, states: Sequence[str] = (), **filters: Any) -> Iterator[Row]:
        """Page by page from the registry."""
        return _pages(self._runtime.runs, _with_states(filters, states))

    def run(self, run_id: str) -> Row | None:
        """From the registry."""
        found: Row | None = self._runtime.run(run_id)
        return found

    def sessions(self, **filters: Any) -> Iterator[Row]:
        """Page by page from the registry, without the root that this look itself has there."""
        return (row for row in _pages(self._runtime.sessions, filters) if row["key"] != self._runtime.root_key)

    def listed(self, given: Mapping[str, Any]) -> Iterator[Row]:
        """From the registry, without the root that this look itself has there."""
        found = _listed(lambda page: self._runtime._query("asked", None, "list", page).value, given)
        return (row for row in found if row["key"] != self._runtime.root_key)

    def session(self, key: str) -> Row | None:
        """From the registry."""
        found: Row | None = self._runtime.session(key)
        return found

    def history(self, key: str, limit: int, offset: int) -> list[dict[str, Any]]:
        """From the hub."""
        rows: list[dict[str, Any]] = self._runtime.history(key, limit=limit, offset=offset)
        return rows

    def log(self, key: str) -> Iterator[bytes] | None:
        """See `DiskView.log`."""
        with DiskView.open(self._runtime.state_dir) as disk:
            return disk.log(key)

    @classmethod
    @contextlib.contextmanager
    def open(cls, name: str) -> Iterator[LiveView]:
        """Connect to it.

        Raises:
            RuntimeNotFound, RayUnreachable, RayClientUnsupported: it is not there.
        """
        import openclaw_ray as oc

        runtime = oc.Runtime.connect(name)
        try:
            yield cls(runtime)
        finally:
            runtime.close()


@contextlib.contextmanager
def open_view(name: str | None, state_dir: str | None) -> Iterator[StateView]:
    """Open a runtime for looking at, as the module's steps say.

    Args:
        name: of the runtime.
        state_dir: its state dir.

    Raises:
        RuntimeNotFound: there is none, with what there is instead.
        JournalError: its state cannot be read.
    """
    from openclaw_ray.core.errors import RayUnreachable, RuntimeNotFound
    from openclaw_ray.store.places import newest_state_dir

    with kept_for_data(), contextlib.ExitStack() as stack:
        view: StateView | None = None
        if state_dir is None and name is not None and _may_be_live(name):
            with contextlib.suppress(RuntimeNotFound, RayUnreachable):
                view = _enter(stack, LiveView.open(name))
        if view is None:
            if state_dir is None and name is None:
                view = _newest(stack)
            else:
                place = newest_state_dir(name) if state_dir is None else Path(state_dir).expanduser()
                view = _enter(stack, DiskView.open(place))
        yield view


def view_options(command: Command) -> Command:
    """The options ``--name`` and ``--state``."""
    for option in (
        click.option("--state", metavar="DIR", help="Read this state dir."),
        click.option("--name", metavar="NAME", help="The runtime NAME.  [default: the newest on this machine]"),
    ):
        command = option(command)
    return command


def _newest(stack: contextlib.ExitStack) -> StateView:
    """The runtime written to last, of those whose journals can be read.

    Raises:
        RuntimeNotFound: there is none on this machine.
        JournalError: none can be read; that of the newest.
    """
    from openclaw_ray.core.errors import JournalError
    from openclaw_ray.store.places import list_runtimes, newest_state_dir

    newest_state_dir()  # raises if there is none
    first: JournalError | None = None
    for place in list_runtimes():
        try:
            with contextlib.ExitStack() as opening:
                view = opening.enter_context(DiskView.open(place.path))
                view.look()
                stack.push(opening.pop_all())
                return view
        except JournalError as error:
            first = first or error
            click.echo(f"note: passed over: {error}", err=True)
    assert first is not None
    raise first


def _enter(stack: contextlib.ExitStack, view: AbstractContextManager[StateView]) -> StateView:
    return stack.enter_context(view)


def _may_be_live(name: str) -> bool:
    """Whether to look in a cluster; without ``RAY_ADDRESS`` it is the one on this machine that the name is in."""
    from openclaw_ray.store.places import list_runtimes

    if os.environ.get("RAY_ADDRESS"):
        return True
    return any(place.name == name and place.owner is not None for place in list_runtimes())


def _with_states(filters: dict[str, Any], states: Sequence[str]) -> dict[str, Any]:
    return {**filters, "state": list(states)} if states else filters


def _pages(page: Callable[..., list[dict[str, Any]]], filters: dict[str, Any]) -> Iterator[Row]:
    offset = 0
    while rows := page(limit=_PAGE, offset=offset, **filters):
        yield from rows
        offset += len(rows)


def _listed(page: Callable[[dict[str, Any]], Any], given: Mapping[str, Any]) -> Iterator[Row]:
    """All pages of a list."""
    offset: int | None = 0
    while offset is not None:
        found = page({**given, "limit": _PAGE, "offset": offset})
        yield from found.rows
        if found.scanned_out:
            click.echo("note: there are more sessions than were looked through; narrow the filters", err=True)
            return
        offset = found.further


def _still_at(run: Row) -> str:
    """The actor whose own file has a turn's output: it runs there still, or died there."""
    error = run.get("error")
    died = isinstance(error, dict) and error.get("cause") == "process_died"
    return str(run.get("actor") or "") if died or "endedAt" not in run else ""


def _read_log(state_dir: Path, session_id: str, actor: str) -> Iterator[bytes]:
    from openclaw_ray.actors.session_log import log_path, output_path

    paths = [log_path(state_dir, session_id)]
    if actor:
        paths.append(output_path(state_dir, actor))
    for path in paths:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
