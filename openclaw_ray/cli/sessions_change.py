"""``openclaw-ray sessions stop`` and ``sessions delete``: what changes a session of a live runtime."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING

import click

from openclaw_ray.cli.exits import FAILED, OK, CommandError
from openclaw_ray.cli.live import known_session, live_option, open_live
from openclaw_ray.cli.opening import seconds
from openclaw_ray.cli.output import JsonLines
from openclaw_ray.cli.table import print_table

if TYPE_CHECKING:
    from openclaw_ray.core.results import StopReport

__all__ = ["stop"]

_STOP_WITHIN = 60.0


@click.command("stop", short_help="Stop a session and everything below it.")
@click.argument("key")
@click.option(
    "--timeout",
    metavar="S",
    type=float,
    callback=seconds,
    default=_STOP_WITHIN,
    show_default=True,
    help="Seconds to wait for the end of all; 0: no limit. The stop itself stays in force.",
)
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
@live_option
def stop(key: str, timeout: float | None, as_json: bool, name: str | None) -> int:
    """Stop the session KEY of a live runtime and everything below it, and print the report.

    Runs that are asked to stop get `ray.stopGraceSeconds`; then their processes are ended. Transcripts stay.

    \b
    Exit status: 0 all of it is stopped, 1 some could not be confirmed, 2 no such session or runtime.
    """
    with open_live(name) as view:
        known = str(known_session(view, key)["key"])
        try:
            report: StopReport = view.runtime.stop(known, timeout=timeout or None)
        except FutureTimeout:
            what = f"the stop of {known} is in force, and not complete after {timeout:g} s"
            raise CommandError(f"{what}; `openclaw-ray sessions list` shows what is left", FAILED) from None
        if as_json:
            JsonLines().write(report.to_json())
        else:
            counts = f"{report.stopped} stopped ({report.forced} by force), {report.finished} had finished"
            rows = ((row.outcome, row.session_key, row.run_id) for row in report.rows)
            title = f"{report.key}: {counts}, {report.failed} failed to stop"
            print_table(("outcome", "session", "run"), rows, title=title)
    return OK if report.failed == 0 else FAILED
