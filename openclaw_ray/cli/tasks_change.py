"""``openclaw-ray tasks cancel | retry | dismiss | maintenance``: what changes tasks of a live runtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.exits import FAILED, OK, CommandError
from openclaw_ray.cli.live import live_option, open_live
from openclaw_ray.cli.opening import seconds
from openclaw_ray.cli.output import JsonLines, data_stream
from openclaw_ray.cli.table import print_table
from openclaw_ray.cli.tasks_find import known_task
from openclaw_ray.cli.view import LiveView, open_view
from openclaw_ray.core.errors import DeliveryRefused
from openclaw_ray.core.ledger import expired, task_row
from openclaw_ray.core.lifecycle import DeliveryState

if TYPE_CHECKING:
    from openclaw_ray.core.results import StopReport

__all__ = ["cancel", "dismiss", "maintenance", "retry"]

_WITHIN = 60.0


@click.command("cancel", short_help="Stop a task and everything below it.")
@click.argument("task")
@click.option(
    "--timeout",
    metavar="S",
    type=float,
    callback=seconds,
    default=_WITHIN,
    show_default=True,
    help="Seconds to wait for the end of all; 0: no limit. The stop itself stays in force.",
)
@click.option("--json", "as_json", is_flag=True, help="The task and the report as one JSON object.")
@live_option
def cancel(task: str, timeout: float | None, as_json: bool, name: str | None) -> int:
    """Stop the task TASK of a live runtime and everything below it: a run id, or what one alone begins with.

    \b
    Exit status: 0 it is cancelled, 1 it had ended before or could not be confirmed as ended, 2 no such task or
    runtime.
    """
    with open_live(name) as view:
        run_id = str(known_task(view, task)["runId"])
        try:
            report: StopReport = view.runtime.stop_run(run_id, timeout=timeout or None)
        except FutureTimeout:
            what = f"the stop of task {run_id} is in force, and not complete after {timeout:g} s"
            raise CommandError(f"{what}; `openclaw-ray tasks show {run_id}` shows how it stands", FAILED) from None
        row = task_row(known_task(view, run_id))
        if as_json:
            JsonLines().write({"task": row, "stop": report.to_json()})
        else:
            counts = f"{report.stopped} stopped ({report.forced} by force), {report.failed} failed to stop"
            click.echo(f"{run_id} is {row['status']}: {counts}", file=data_stream())
    stopped = any(each.run_id == run_id and each.outcome in ("stopped", "forced") for each in report.rows)
    return OK if stopped and report.failed == 0 else FAILED


@click.command("retry", short_help="Deliver a task's announce again.")
@click.argument("task")
@click.option("--json", "as_json", is_flag=True, help="The task as one JSON object.")
@live_option
def retry(task: str, as_json: bool, name: str | None) -> int:
    """Deliver the announce of the ended task TASK again: one that was suspended, after four receivers died of it
    or could not be started, or that failed. Nothing runs again.

    \b
    Exit status: 0 it is on its way or delivered, 1 not, 2 no such task or runtime.
    """
    good = (DeliveryState.PENDING, DeliveryState.DELIVERED)
    return _delivery(task, name, as_json, lambda view, run_id: view.runtime.redeliver(run_id), good)


@click.command("dismiss", short_help="Give up a task's announce.")
@click.argument("task")
@click.option("--json", "as_json", is_flag=True, help="The task as one JSON object.")
@live_option
def dismiss(task: str, as_json: bool, name: str | None) -> int:
    """Give up the announce of the ended task TASK: nobody is told of it any more. Its row stays.

    \b
    Exit status: 0 it is given up, 1 not, 2 no such task or runtime.
    """
    good = (DeliveryState.DISCARDED,)
    return _delivery(task, name, as_json, lambda view, run_id: view.runtime.dismiss(run_id), good)


def _delivery(
    task: str,
    name: str | None,
    as_json: bool,
    change: Callable[[LiveView, str], object],
    good: tuple[DeliveryState, ...],
) -> int:
    with open_live(name) as view:
        run_id = str(known_task(view, task)["runId"])
        try:
            change(view, run_id)
        except DeliveryRefused as error:
            raise CommandError(str(error), FAILED) from None
        row = task_row(known_task(view, run_id))
        if as_json:
            JsonLines().write(row)
        else:
            click.echo(f"{run_id}: announce {row['deliveryStatus']}", file=data_stream())
    return OK if row["deliveryStatus"] in good else FAILED


@click.command("maintenance", short_help="Drop what is past its time, end what nothing else can end.")
@click.option(
    "--apply", "apply", is_flag=True, help="Do it, in a live runtime; else it is only said what would be done."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per action.")
@click.option("--state", metavar="DIR", help="Read this state dir.")
@click.option("--name", metavar="NAME", help="The runtime NAME.  [default: the newest, or the only live one]")
def maintenance(apply: bool, as_json: bool, name: str | None, state: str | None) -> int:
    """Drop tasks that ended more than 7 days ago (lost ones: 24 hours), events as old, and sessions that ended before
    session.maintenance.pruneAfter; end tasks that nothing else can end. A live runtime does all of it by itself, within
    the hour.

    Without --apply nothing is changed. A runtime that does not run is only looked at; its next start closes what is
    un-ended.

    \b
    Exit status: 0 done, or said; 2 no such runtime.
    """
    if apply and state is not None:
        raise CommandError("--apply needs a live runtime: name it with --name, not its state dir")
    if apply:
        with open_live(name) as view:
            done = view.runtime.maintain(apply=True)
    else:
        with open_view(name, state) as seen:
            if isinstance(seen, LiveView):
                done = seen.runtime.maintain(apply=False)
            else:
                now = round(time.time() * 1000)
                done = [_drops(row) for row in seen.runs() if expired(row, now)]
    if as_json:
        output = JsonLines()
        for row in done:
            output.write({**row, "applied": apply})
    elif done:
        cells = ((row["action"], row["runId"], row["sessionKey"], row["why"]) for row in done)
        print_table(("action", "task id", "session", "why"), cells)
    said = "done" if apply else "to do; --apply does it"
    click.echo(f"note: {len(done)} {said}", err=True)
    return OK


def _drops(row: Mapping[str, Any]) -> dict[str, Any]:
    why = f"{row['state']}, past its retention"
    return {"action": "drop", "runId": row["runId"], "sessionKey": row["sessionKey"], "why": why}
