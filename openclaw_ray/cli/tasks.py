"""``openclaw-ray tasks …``: the ledger of all runs, as background tasks (SPEC.md H2). Here: looking."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

import click

from openclaw_ray.cli.exits import FAILED, OK
from openclaw_ray.cli.listing import Listing, list_flags
from openclaw_ray.cli.output import JsonLines
from openclaw_ray.cli.table import print_table
from openclaw_ray.cli.tasks_change import cancel, dismiss, maintenance, retry
from openclaw_ray.cli.tasks_find import known_task
from openclaw_ray.cli.view import DiskView, StateView, open_view, view_options
from openclaw_ray.core.ledger import audit as audited
from openclaw_ray.core.ledger import task_row
from openclaw_ray.core.lifecycle import RunState

__all__ = ["tasks"]

_WORDS = [state.value for state in RunState if state is not RunState.PAUSED]
_AUDITED = 10_000


@click.group(short_help="List background tasks, cancel one, find and mend what is wrong.", no_args_is_help=False)
def tasks() -> None:
    """List background tasks, cancel one, find and mend what is wrong.

    A task is one run of a session. It is kept for 7 days after its end, a lost one for 24 hours.
    """


for _command in (cancel, retry, dismiss, maintenance):
    tasks.add_command(_command)


@tasks.command("list", short_help="List tasks, live or of the newest runtime on disk.")
@click.option(
    "--status",
    "states",
    type=click.Choice(_WORDS),
    metavar="WORD",
    multiple=True,
    help=f"Only tasks in this state: {', '.join(_WORDS)}.",
)
@click.option("--agent", metavar="ID", multiple=True, help="Only tasks of this agent.")
@list_flags
@view_options
def list_tasks(
    listing: Listing,
    states: tuple[str, ...],
    agent: tuple[str, ...],
    name: str | None,
    state: str | None,
) -> int:
    """List tasks, newest first. A paused run is at work; `state` in the JSON form tells.

    With --name a live runtime is asked; without, or if it is gone, its state on this machine is read, of the
    newest runtime if none is named.
    """
    wanted = [word for each in states for word in ((each, "paused") if each == RunState.RUNNING else (each,))]
    filters: dict[str, Any] = {"agent": [agent_id.lower() for agent_id in agent]} if agent else {}
    with open_view(name, state) as view:
        columns = ("status", "agent", "task id", "session", "label", "delivery", "ms", "why")
        rows = listing.chosen(map(task_row, view.runs(wanted, **filters)))
        listing.show(rows, columns, _cells, title=view.source, right=("ms",))
    return OK


@tasks.command("show", short_help="Show one task.")
@click.argument("task")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@view_options
def show(task: str, as_json: bool, name: str | None, state: str | None) -> int:
    """Show the task TASK: a run id, or what one alone begins with.

    \b
    Exit status: 0 shown, 2 no such task or runtime.
    """
    with open_view(name, state) as view:
        row = task_row(known_task(view, task))
        if as_json:
            JsonLines().write(row)
        else:
            print_table(("field", "value"), row.items(), title=view.source)
    return OK


@tasks.command("audit", short_help="Tell what is wrong with tasks.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=_AUDITED, show_default=True, help="Look at N tasks."
)
@view_options
def audit(as_json: bool, limit: int, name: str | None, state: str | None) -> int:
    """Tell what is wrong with tasks: without a process, stale, lost, with an announce that nobody will take.

    \b
    Exit status: 0 nothing is wrong, 1 there are findings, 2 no such runtime.
    """
    with open_view(name, state) as view:
        rows = list(itertools.islice(view.runs(), limit))
        running: bool | None = True
        if isinstance(view, DiskView):
            running = None if view.in_use else False  # a journal does not tell of processes
        now = round(time.time() * 1000)
        findings = list(audited(rows, _remembered(view), now, running=running))
        if as_json:
            output = JsonLines()
            for finding in findings:
                output.write(finding.to_json())
        elif findings:
            cells = ((f.severity, f.code, f.task_id, f.session_key, f.text, f.remedy) for f in findings)
            print_table(("", "what", "task id", "session", "detail", "remedy"), cells, title=view.source)
    click.echo(f"note: {len(findings)} findings in {len(rows)} tasks", err=True)
    return FAILED if findings else OK


def _remembered(view: StateView) -> Any:
    """Sessions by key, each asked for once."""
    known: dict[str, Any] = {}

    def session(key: str) -> Any:
        if key not in known:
            known[key] = view.session(key) if key else None
        return known[key]

    return session


def _cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    error = row.get("error")
    why = error.get("message") if isinstance(error, Mapping) else row.get("waitingFor", row.get("pauseReason"))
    names = ("status", "agentId", "taskId", "childSessionKey", "label", "deliveryStatus", "runtimeMs")
    return (*(row.get(name) for name in names), why)
