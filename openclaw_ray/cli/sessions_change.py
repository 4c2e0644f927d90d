"""``openclaw-ray sessions stop``, ``patch``, ``reset`` and ``delete``: what changes a session of a live runtime."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, TypeVar

import click

from openclaw_ray.cli.exits import FAILED, OK, CommandError
from openclaw_ray.cli.live import known_session, live_option, open_live
from openclaw_ray.cli.opening import seconds
from openclaw_ray.cli.output import JsonLines, data_stream
from openclaw_ray.cli.table import print_table

if TYPE_CHECKING:
    from openclaw_ray.core.results import StopReport

__all__ = ["delete", "patch", "reset", "stop"]

Command = TypeVar("Command", bound=Callable[..., object])

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


def _seen_options(command: Command) -> Command:
    """The options that say which session is meant, as a list showed it."""
    for option in (
        click.option("--revision", metavar="N", type=click.IntRange(min=0), help="Only if of this revision still."),
        click.option("--session-id", metavar="ID", help="Only if it is this session still."),
    ):
        command = option(command)
    return command


@click.command("patch", short_help="Change a session's label.")
@click.argument("key")
@click.option("--label", metavar="TEXT", required=True, help="Its label from now on; empty takes it away.")
@_seen_options
@click.option("--json", "as_json", is_flag=True, help="The session's row as one JSON object.")
@live_option
def patch(
    key: str, label: str, session_id: str | None, revision: int | None, as_json: bool, name: str | None
) -> int:
    """Change the label of the session KEY of a live runtime.

    No other live session of the same requester may have it. Nothing else of a session can be changed: lineage, depth
    and policy are set when it is made.

    \b
    Exit status: 0 changed, 1 not changed, 2 no such session or runtime.
    """
    with open_live(name) as view:
        known = str(known_session(view, key)["key"])
        row = view.runtime.patch(known, label=label, session_id=session_id, lifecycle_revision=revision)
        if as_json:
            JsonLines().write(row)
        else:
            click.echo(f"{known}: label {row.get('label', '(none)')}", file=data_stream())
    return OK


@click.command("delete", short_help="Stop a session, then delete it.")
@click.argument("key")
@_seen_options
@click.option("--json", "as_json", is_flag=True, help="What was done as one JSON object.")
@live_option
def delete(key: str, session_id: str | None, revision: int | None, as_json: bool, name: str | None) -> int:
    """Stop the session KEY of a live runtime and everything below it, then delete it.

    Its transcript is renamed to *.deleted.<timestamp> in its folder, and the session is listed as archived. What
    its children did stays. A main session and a client's root are not deleted.

    \b
    Exit status: 0 deleted, 1 not deleted, 2 no such session or runtime.
    """
    with open_live(name) as view:
        row = known_session(view, key)
        report: StopReport = view.runtime.delete(row["key"], **_seen(session_id, revision))
        if as_json:
            JsonLines().write({"key": row["key"], "sessionId": row["sessionId"], "stop": report.to_json()})
        else:
            click.echo(f"deleted {row['key']} ({report.stopped} runs were stopped)", file=data_stream())
    return OK


@click.command("reset", short_help="Stop a session, then begin it anew.")
@click.argument("key")
@_seen_options
@click.option("--json", "as_json", is_flag=True, help="What was done as one JSON object.")
@live_option
def reset(key: str, session_id: str | None, revision: int | None, as_json: bool, name: str | None) -> int:
    """Stop the session KEY of a live runtime and everything below it, then begin it anew under the same key.

    It gets a new session id, an empty transcript and state; messages that waited for it are dropped. The old
    transcript is renamed to *.deleted.<timestamp> in its folder. What its children did stays. A main session can be
    reset, a client's root cannot.

    \b
    Exit status: 0 reset, 1 not reset, 2 no such session or runtime.
    """
    with open_live(name) as view:
        row = known_session(view, key)
        report: StopReport = view.runtime.reset(row["key"], **_seen(session_id, revision))
        if as_json:
            new = known_session(view, str(row["key"]))["sessionId"]
            was = {"key": row["key"], "sessionId": new, "previousSessionId": row["sessionId"]}
            JsonLines().write({**was, "stop": report.to_json()})
        else:
            click.echo(f"reset {row['key']} ({report.stopped} runs were stopped)", file=data_stream())
    return OK


def _seen(session_id: str | None, revision: int | None) -> dict[str, Any]:
    return {
        **({} if session_id is None else {"session_id": session_id}),
        **({} if revision is None else {"lifecycle_revision": revision}),
    }
