"""``openclaw-ray map``: one isolated session per item, one JSON line per item in input order."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.app_file import load_app
from openclaw_ray.cli.exec_template import ExecTemplate
from openclaw_ray.cli.exits import FAILED, OK, CommandError
from openclaw_ray.cli.feed import Feed
from openclaw_ray.cli.interrupt import Interrupt
from openclaw_ray.cli.item_source import glob_files, read_lines, until_stopped
from openclaw_ray.cli.map_rows import TakenOver, result_row
from openclaw_ray.cli.opening import Place, open_runtime, place_options
from openclaw_ray.cli.output import JsonLines
from openclaw_ray.cli.progress import Progress, open_progress
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.named_map import check_map_id

if TYPE_CHECKING:
    from openclaw_ray.core.results import Result

__all__ = ["map_command"]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is done with each item: the agents to start, the one to run, and its input made of the item."""

    agents: tuple[object, ...]
    agent_id: str
    payload: Callable[[str], object]
    app_dir: Path | None = None

    @property
    def tracebacks(self) -> bool:
        """Whether errors of the user's own code are to be located."""
        return self.app_dir is not None


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value} is not a number of seconds; 0 means no limit", ctx, param)
    return value


def _map_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            check_map_id(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
    return value


_NOT_BEGUN = "what was not begun has no row; with --name and --map-id an interrupted map goes on where it stopped"
_GO_ON = "what was not begun has no row; give the same command again to go on where it stopped"


@click.command("map", short_help="Run an agent or a command over many items.")
@click.argument("source", required=False, metavar="[-]")
@click.option("--app", metavar="FILE", help="Python file with agents.")
@click.option("--agent", metavar="ID", help="Which of its agents to run.  [default: the only one]")
@click.option("--exec", "template", metavar="COMMAND", help="Command to run; {} stands for the item.")
@click.option("--shell", is_flag=True, help="COMMAND is a shell line; the item in it is quoted for you.")
@click.option(
    "--lines",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Items are the lines of FILE; - is standard input.",
)
@click.option(
    "--glob",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Items are the files that match; ** recurses.",
)
@click.option(
    "--width",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many at once.  [default: 2 for each CPU of the cluster]",
)
@click.option(
    "--timeout", metavar="S", type=float, callback=_seconds, help="Seconds that an item may run; 0: no limit."
)
@click.option("--retries", metavar="N", type=click.IntRange(min=0), default=0, help="Tries after a failed one.")
@click.option(
    "--on-error",
    type=click.Choice(["collect", "raise"]),
    default="collect",
    show_default=True,
    help="Go on after a failed item, or stop at the first.",
)
@click.option(
    "--map-id",
    metavar="ID",
    callback=_map_id,
    help="Name of the map: the next one of that name takes over what succeeded. Needs --name or --state.",
)
@click.option("--failed-only", is_flag=True, help="With --map-id: run only items that failed in an earlier try.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines; they are the only format, so this changes nothing.")
@click.option("--no-progress", is_flag=True, help="Nothing on standard error but errors and notes.")
@place_options
def map_command(
    source: str | None,
    app: str | None,
    agent: str | None,
    template: str | None,
    shell: bool,
    lines: str | None,
    patterns: tuple[str, ...],
    width: int | None,
    timeout: float | None,
    retries: int,
    on_error: str,
    map_id: str | None,
    failed_only: bool,
    as_json: bool,
    no_progress: bool,
    **place: str | None,
) -> int:
    """Run an agent (--app) or a command (--exec) over many items, each in an isolated session of its own.

    Items are the lines of a file (--lines FILE), of standard input (-), or files (--glob PATTERN). Only the
    line terminator is taken off; blank lines are skipped. They are read as they are needed, so the input may
    be endless.

    One JSON line per item goes to standard output, in input order and as results arrive:

    \b
      {"index": 0, "input": "…", "status": "ok", "text": "…", "error": null,
       "runId": "…", "sessionKey": "…", "runtimeMs": 12}

    A command runs where this one was started, with empty standard input. Its output is the text; an exit
    status other than 0 is an error that has the status and the end of its standard error. Without {} the item
    is the last argument.

    \b
      openclaw-ray map --exec 'wc -w {}' --glob 'docs/**/*.md'
      ls *.log | openclaw-ray map --shell --exec 'sort {} | uniq -c | sort -rn | head -3' -
      openclaw-ray map --app app.py --agent worker --lines items.txt

    A map that was interrupted, or had failures, goes on where it stopped if it has a name: give the same command
    again. Items that succeeded are not run again, their rows come from the journal ("reused": true). An item is
    known by its position and by what is run, so lines may be added at the end. With --failed-only, items that
    were never run to an end have the status cancelled and the error NotTried.

    \b
      openclaw-ray map --name nightly --map-id monday --exec 'convert {} {}.png' --glob '*.svg'

    Ctrl-C stops the sessions, writes the rows that are left and exits; a second one ends at once.

    \b
    Exit status: 0 all ok, 1 some failed, 2 usage or configuration,
                 130 interrupted, 141 the reader of the output went away.
    """
    _check_name(map_id, failed_only, place)
    work = _work(app, agent, template, shell)
    _check_source(source, lines, patterns)
    output = JsonLines()
    with Interrupt() as interrupt, _items(source, lines, patterns, interrupt) as items:
        first = next(items, None)
        if first is None:
            return _nothing(interrupt)
        with (
            open_runtime(work.agents, Place(**place), interrupt, app_dir=work.app_dir) as runtime,
            open_progress(work.agent_id, wanted=not no_progress) as progress,
        ):
            interrupt.note = progress.note
            waiting: deque[str] = deque()
            feed = Feed(
                _feed(itertools.chain((first,), items), waiting, work, progress), interrupt.stopping.is_set
            )
            failed = 0
            taken = TakenOver()
            mapped = runtime.imap(
                work.agent_id,
                feed,
                width=width,
                timeout=timeout,
                retries=retries,
                map_id=map_id,
                failed_only=failed_only,
            )
            with _closed_at_the_end(mapped) as results:
                for index, result in enumerate(results):
                    output.write(result_row(index, waiting.popleft(), result, tracebacks=work.tracebacks))
                    progress.advance(ok=result.ok, stopped=result.status is ResultStatus.CANCELLED)
                    taken.count(result)
                    failed += not result.ok
                    if failed and on_error == "raise" and interrupt.exit_code is None:
                        progress.note(f"item {index} failed: the rest is stopped (--on-error raise)")
                        break
            if map_id is not None:
                progress.note(taken.line())
            if feed.cut:
                progress.note(_NOT_BEGUN if map_id is None else _GO_ON)
        if interrupt.exit_code is not None:
            return interrupt.exit_code
        return FAILED if failed else OK


def _nothing(interrupt: Interrupt) -> int:
    """No item came: there is none, or the command was interrupted before the first."""
    if interrupt.exit_code is not None:
        return interrupt.exit_code
    click.echo("note: the input has no items", err=True)
    return OK


def _work(app: str | None, agent: str | None, template: str | None, shell: bool) -> _Work:
    if (app is None) == (template is None):
        raise click.UsageError("give one of --app FILE and --exec COMMAND")
    if app is not None:
        if shell:
            raise click.UsageError("--shell belongs to --exec")
        loaded = load_app(app)
        agents = tuple(loaded.agents.values())
        return _Work(agents, loaded.pick(agent), lambda item: item, app_dir=loaded.path.resolve().parent)
    assert template is not None
    if agent is not None:
        raise click.UsageError("--agent belongs to --app")
    command = ExecTemplate.parse(template, shell=shell)
    from openclaw_ray.agents.builtin.exec_item import exec_item

    cwd = os.getcwd()
    return _Work((exec_item,), "exec", lambda item: {"argv": command.argv(item), "cwd": cwd})


def _check_name(map_id: str | None, failed_only: bool, place: dict[str, str | None]) -> None:
    if failed_only and map_id is None:
        raise click.UsageError("--failed-only needs the --map-id of an earlier try")
    if map_id is not None and place["name"] is None and place["state"] is None:
        raise click.UsageError("--map-id needs a runtime whose state is kept: add --name NAME, or --state DIR")


def _check_source(source: str | None, lines: str | None, patterns: tuple[str, ...]) -> None:
    if source not in (None, "-"):
        raise click.UsageError(f"unexpected argument {source!r}; items come from --lines FILE, --glob PATTERN or -")
    if (source is not None) + (lines is not None) + bool(patterns) != 1:
        raise click.UsageError("give one of --lines FILE, --glob PATTERN and - (standard input)")


@contextlib.contextmanager
def _items(
    source: str | None, lines: str | None, patterns: tuple[str, ...], interrupt: Interrupt
) -> Iterator[Iterator[str]]:
    def stopping() -> bool:
        return interrupt.stopping.is_set()

    if patterns:
        yield until_stopped(glob_files(patterns), stopping)
    elif source == "-" or lines == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed; name a file with --lines")
        yield until_stopped(read_lines(sys.stdin.fileno(), stop_fd=interrupt.stop_fd), stopping)
    else:
        assert lines is not None
        with open(lines, "rb", buffering=0) as file:
            yield until_stopped(read_lines(file.fileno(), stop_fd=interrupt.stop_fd), stopping)


@contextlib.contextmanager
def _closed_at_the_end(results: Iterator[Result[Any]]) -> Iterator[Iterator[Result[Any]]]:
    """Left early, a map stops what is un-ended; that is to happen while there is a runtime to do it."""
    try:
        yield results
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()


def _feed(items: Iterator[str], waiting: deque[str], work: _Work, progress: Progress) -> Iterator[object]:
    """What the runtime is given; ``waiting`` has the items that it took and that have no row yet."""
    count = 0
    for item in items:
        waiting.append(item)
        count += 1
        yield work.payload(item)
    progress.set_total(count)
