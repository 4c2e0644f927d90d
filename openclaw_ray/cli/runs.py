"""``openclaw-ray runs``: what ran, what runs, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping

import click

from openclaw_ray.cli.exits import OK
from openclaw_ray.cli.listing import Listing, list_flags
from openclaw_ray.cli.view import open_view, view_options
from openclaw_ray.core.lifecycle import RunState

__all__ = ["runs"]


@click.command(short_help="List runs, live or of the newest runtime on disk.")
@click.option(
    "--status",
    type=click.Choice([state.value for state in RunState]),
    metavar="WORD",
    multiple=True,
    help=f"Only runs in this state: {', '.join(state.value for state in RunState)}.",
)
@list_flags
@view_options
def runs(listing: Listing, status: tuple[str, ...], name: str | None, state: str | None) -> int:
    """List runs, newest first: who, where it stands, how long it took, why it failed.

    With --name a live runtime is asked, which also tells what waits for what; without, or if it is gone, its
    state on this machine is read, of the newest runtime if none is named.
    """
    with open_view(name, state) as view:
        columns = ("state", "agent", "session", "run", "ms", "why")
        listing.show(listing.chosen(view.runs(status)), columns, _cells, title=view.source, right=("ms",))
    return OK


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
