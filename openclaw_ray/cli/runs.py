"""``openclaw-ray runs``: what ran, what runs, and how it ended."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import click

from openclaw_ray.cli.exits import OK
from openclaw_ray.cli.output import JsonLines
from openclaw_ray.cli.table import print_table
from openclaw_ray.cli.view import open_view, view_options
from openclaw_ray.core.lifecycle import RunState

__all__ = ["runs"]


@click.command(short_help="List runs, live or of the newest runtime on disk.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line instead of a table.")
@click.option(
    "--status",
    type=click.Choice([state.value for state in RunState]),
    metavar="WORD",
    multiple=True,
    help=f"Only runs in this state: {', '.join(state.value for state in RunState)}.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most N rows, newest first.")
@view_options
def runs(as_json: bool, status: tuple[str, ...], limit: int | None, name: str | None, state: str | None) -> int:
    """List runs, newest first: who, where it stands, how long it took, why it failed.

    With --name a live runtime is asked, which also tells what waits for what; without, or if it is gone, its
    state on this machine is read, of the newest runtime if none is named.
    """
    with open_view(name, state) as view:
        rows = itertools.islice(view.runs(status), limit)
        if as_json:
            output = JsonLines()
            for row in rows:
                output.write(row)
        else:
            _print_table(rows, view.source)
    return OK


def _print_table(rows: Iterable[Mapping[str, object]], source: str) -> None:
    columns = ("state", "agent", "session", "run", "ms", "why")
    print_table(columns, map(_cells, rows), title=source, right=("ms",))


def _cells(row: Mapping[str, object]) -> tuple[object, ...]:
    error = row.get("error")
    why = error.get("message") if isinstance(error, Mapping) else row.get("waitingFor", row.get("pauseReason"))
    return (
        row.get("state"),
        row.get("agentId"),
        row.get("sessionKey"),
        row.get("runId"),
        row.get("runtimeMs"),
        why,
    )
