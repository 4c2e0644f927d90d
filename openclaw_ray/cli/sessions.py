"""``openclaw-ray sessions …``: which there are, what each did, and stopping, resetting or deleting one."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from openclaw_ray.cli.exits import OK, OutputClosed
from openclaw_ray.cli.listing import Listing, list_flags
from openclaw_ray.cli.live import known_session
from openclaw_ray.cli.output import JsonLines, data_stream, printable
from openclaw_ray.cli.sessions_change import delete, patch, reset, stop
from openclaw_ray.cli.sessions_filters import list_options, listed
from openclaw_ray.cli.sessions_send import send
from openclaw_ray.cli.table import print_table
from openclaw_ray.cli.view import StateView, open_view, view_options
from openclaw_ray.core.history import masked
from openclaw_ray.core.lifecycle import RunState, SessionState
from openclaw_ray.core.log_lines import LogOf, as_records, as_text, lines_of

__all__ = ["sessions"]

_AT_ONCE = 200
_SHOWN = 50
"""Runs and children of one session that `show` lists."""
_UNENDED = [state.value for state in RunState if not state.terminal]
_LIVE_FIELDS = ("waitingFor", "pauseReason", "progress", "node", "pid", "actor")


@click.group(short_help="List sessions, look into one, send to it, stop, reset or delete it.", no_args_is_help=False)
def sessions() -> None:
    """List sessions, look into one, label, send to it, stop, reset or delete it."""


for _command in (send, stop, patch, reset, delete):
    sessions.add_command(_command)


@sessions.command("list", short_help="List sessions, live or of the newest runtime on disk.")
@click.option("--agent", metavar="ID", multiple=True, help="Only sessions of this agent.")
@click.option(
    "--status",
    "states",
    type=click.Choice([state.value for state in SessionState]),
    metavar="WORD",
    multiple=True,
    help=f"Only sessions in this state: {', '.join(SessionState)}.",
)
@list_flags
@list_options
@view_options
def list_sessions(
    listing: Listing,
    agent: tuple[str, ...],
    states: tuple[str, ...],
    name: str | None,
    state: str | None,
    **more: Any,
) -> int:
    """List sessions, newest first: who, where it stands, what its run waits for, and in which process it is.

    With --name a live runtime is asked; without, or if it is gone, its state on this machine is read, of the
    newest runtime if none is named.
    """
    filters: dict[str, Any] = {}
    if agent:
        filters["agent"] = [agent_id.lower() for agent_id in agent]
    if states:
        filters["state"] = list(states)
    with open_view(name, state) as view:
        found = listed(view, more, filters) if any(more.values()) else view.sessions(**filters)
        columns = ("state", "agent", "depth", "session", "label", "run", "where", "waits for")
        found = found if listing.filters else itertools.islice(found, listing.limit)  # spares looking for their runs
        rows = listing.chosen(_with_runs(view, found))
        listing.show(rows, columns, _cells, title=view.source, right=("depth",))
    return OK


@sessions.command("show", short_help="Show one session, its runs and its children.")
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@view_options
def show(key: str, as_json: bool, name: str | None, state: str | None) -> int:
    """Show the session KEY: its row, its runs and its children, the newest 50 of each."""
    with open_view(name, state) as view:
        row = known_session(view, key)
        runs = list(itertools.islice(view.runs(session=row["key"]), _SHOWN))
        children = list(itertools.islice(view.sessions(requester=row["key"]), _SHOWN))
        if as_json:
            JsonLines().write({**row, "runs": runs, "children": children})
            return OK
        fields = (*row.items(), ("runs", len(runs)), ("children", len(children)))
        print_table(("field", "value"), fields, title=view.source)
        if runs:
            print_table(("run", "state", "ms", "why"), map(_run_cells, runs), title="runs", right=("ms",))
        if children:
            named = ((child["status"], child["agentId"], child["key"], child.get("label")) for child in children)
            print_table(("state", "agent", "session", "label"), named, title="children")
    return OK


@sessions.command("history", short_help="Print a page of a session's transcript.")
@click.argument("key")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most N rows."
)
@click.option("--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Leave out the newest N rows.")
@click.option("--raw", is_flag=True, help="As it is stored: credentials are not masked.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
@view_options
def history(
    key: str, limit: int, offset: int, raw: bool, as_json: bool, name: str | None, state: str | None
) -> int:
    """Print transcript rows of the session KEY, oldest first: the newest N of those before the newest --offset.

    Credentials are masked in what is printed; what is stored is not changed.

    A deleted session has no transcript any more; its file is kept beside the others as *.deleted.<timestamp>.
    """
    with open_view(name, state) as view:
        row = known_session(view, key)
        rows = view.history(str(row["key"]), limit, offset)
        rows = rows if raw else masked(rows)
        if as_json:
            output = JsonLines()
            for line in rows:
                output.write(line)
        else:
            _print_rows(rows)
    if not rows:
        click.echo(f"note: no transcript rows of {row['key']} here", err=True)
    return OK


@sessions.command("logs", short_help="Print what a session's processes wrote.")
@click.argument("key")
@click.option("--tail", metavar="N", type=click.IntRange(min=0), help="Only the last N lines.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with session, run and root.")
@view_options
def logs(key: str, tail: int | None, as_json: bool, name: str | None, state: str | None) -> int:
    """Print what the session KEY and its commands wrote to standard output and standard error.

    KEY is a session key as `map` rows and `openclaw-ray sessions list` show it. Logs are read where they were
    written: on the machine that ran the session. With `ray.logs: "json"` they are JSON, and are shown as text here
    unless --json is given; lines of logs that are text have the time of this look with it, and no run.
    """
    with open_view(name, state) as view:
        row = known_session(view, key)
        known = str(row["key"])
        lines: Iterable[bytes] = lines_of(view.log(known) or ())
        if as_json:
            lines = as_records(lines, LogOf(known, "", str(row.get("rootKey", ""))), time.time())
        else:
            lines = map(as_text, lines)
        if tail is not None:
            lines = deque(lines, maxlen=tail)
        wrote = False
        try:
            for chunk in lines:
                wrote = True
                data_stream().buffer.write(chunk)
            data_stream().buffer.flush()
        except BrokenPipeError:
            raise OutputClosed from None
    if not wrote:
        click.echo(f"note: nothing here from {key}: it wrote nothing, or ran on another machine", err=True)
    return OK


def _with_runs(view: StateView, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Session rows, each with what its un-ended run waits for, and where it is."""
    rows = iter(rows)
    while page := list(itertools.islice(rows, _AT_ONCE)):
        # newest first: of several runs of a session the oldest one has the turn, the others are in line behind it
        live = {run["sessionKey"]: run for run in view.runs(_UNENDED, session=[row["key"] for row in page])}
        for row in page:
            run = live.get(row["key"])
            more = {} if run is None else {name: run[name] for name in _LIVE_FIELDS if name in run}
            yield {**row, **({} if run is None else {"runId": run["runId"], "runState": run["state"]}), **more}


def _cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    where = " ".join(str(row[name]) for name in ("actor", "pid") if name in row)
    return (
        row.get("status"),
        row.get("agentId"),
        row.get("depth"),
        row.get("key"),
        row.get("label"),
        row.get("runState"),
        where,
        row.get("waitingFor", row.get("pauseReason")),
    )


def _run_cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    error = row.get("error")
    why = error.get("message") if isinstance(error, Mapping) else row.get("waitingFor", row.get("pauseReason"))
    return row.get("runId"), row.get("state"), row.get("runtimeMs"), why


def _print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    out = data_stream()
    try:
        for row in rows:
            lines = str(row["text"]).splitlines() or [""]
            out.write(f"{row['role']}: " + "\n  ".join(printable(line) for line in lines) + "\n")
        out.flush()
    except BrokenPipeError:
        raise OutputClosed from None
