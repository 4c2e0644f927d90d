"""``openclaw-ray top``: the tree of what runs now, drawn anew each second.

1. Each look asks for the un-ended runs and the figures, in two questions; the newest `MOST_READ` runs are read.
2. `top_model` makes a picture of it, and of the look before, which rates are from.
3. On a terminal it is drawn as high as the terminal is; elsewhere it is printed once, or is a JSON object a look.
4. A registry that does not answer is told of above the last picture; a runtime that has ended ends the command.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from openclaw_ray.cli.exits import OK, OutputClosed
from openclaw_ray.cli.live import live_option, open_live
from openclaw_ray.cli.output import JsonLines, data_stream, printable
from openclaw_ray.cli.top_model import Hidden, Look, Picture, TopRow, fit, picture

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["top"]

MOST_READ = 5_000
"""Un-ended runs read in a look: more would keep the registry busy with looking."""
PLAIN_ROWS = 200
"""Rows of a picture that is not on a terminal."""
PLAIN_WIDTH = 160
"""Columns of it."""
NODE_SHOWN = 8
"""Characters of a node's id; `--json` has it whole."""


@click.command(short_help="Show the tree of what runs now, live.")
@click.option("--once", is_flag=True, help="One picture, and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per picture, with all rows.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Between two pictures.",
)
@live_option
def top(once: bool, as_json: bool, every: float, name: str | None) -> int:
    """Show what a live runtime has at work, as a tree: where each run stands, how old it is, what it waits for and at
    which place in the queue, its process and node; lanes, limits and rates above. Ctrl-C ends it.

    The widest trees and the oldest runs come first; what the terminal has no room for is counted.

    \b
    Exit status: 0 it was shown, also if the runtime ended meanwhile, 1 it does not answer, 2 there is none of this
    name.
    """
    from openclaw_ray.core.errors import RuntimeClosed

    with open_live(name) as view:
        try:
            if as_json:
                _write(view.runtime, 0.0 if once else every)
            elif once or not data_stream().isatty():
                _print(view.runtime)
            else:
                _draw(view.runtime, every)
        except KeyboardInterrupt:
            pass
        except RuntimeClosed:
            if once:
                raise
            click.echo("note: the runtime has ended", err=True)
    return OK


# ---------------------------------------------------------------------- looking


def _look(runtime: Any) -> Look:
    """The runtime now, without the root that this look itself has there.

    Raises:
        RuntimeClosed: it has ended.
        RuntimeUnavailable: it does not answer.
    """
    stats = runtime.stats().to_json()
    runs = runtime.runs(state=["queued", "running", "paused"], limit=MOST_READ)
    own = runtime.root_key
    return Look(time.time(), [run for run in runs if run["sessionKey"] != own], stats, len(runs) == MOST_READ)


def _pictures(runtime: Any, every: float) -> Iterator[Picture]:
    """A picture now and after each ``every`` seconds, 0 for the first alone."""
    before: Look | None = None
    while True:
        look = _look(runtime)
        yield picture(look, before)
        if not every:
            return
        before = look
        _pause(every)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


# ---------------------------------------------------------------------- showing


def _write(runtime: Any, every: float) -> None:
    output = JsonLines()
    for shown in _pictures(runtime, every):
        output.write({"name": runtime.name, **shown.to_json()})


def _print(runtime: Any) -> None:
    from rich.console import Console

    out = data_stream()
    console = Console(
        file=out, width=None if out.isatty() else PLAIN_WIDTH, markup=False, highlight=False, emoji=False
    )
    height = console.size.height if out.isatty() else PLAIN_ROWS
    try:
        console.print(_drawing(runtime.name, picture(_look(runtime)), height))
        out.flush()
    except BrokenPipeError:
        raise OutputClosed from None


def _draw(runtime: Any, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from openclaw_ray.core.errors import RuntimeUnavailable

    console = Console(file=data_stream(), markup=False, highlight=False, emoji=False)
    before: Look | None = None
    shown: Picture | None = None
    with Live(console=console, auto_refresh=False, screen=True, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            trouble = ""
            try:
                look = _look(runtime)
            except RuntimeUnavailable as error:
                if shown is None:
                    raise
                trouble = f"does not answer: {error}"
            else:
                shown, before = picture(look, before), look
            live.update(_drawing(runtime.name, shown, console.size.height, trouble), refresh=True)
            _pause(every)


def _drawing(name: str, shown: Picture, height: int, trouble: str = "") -> RenderableType:
    """A picture, at most ``height`` lines high."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = [f"{name}: {trouble}"] if trouble else []
    head += _head(name, shown)
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    for column in ("session", "state", "depth", "age", "process", "node", "waiting for"):
        right = column in ("depth", "age", "process")
        table.add_column(
            column,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if right else "left",
            ratio={"session": 3, "waiting for": 2}.get(column),
        )
    table.expand = True
    for row in fit(shown.rows, max(1, height - len(head) - 1)):
        table.add_row(*(_hidden(row) if isinstance(row, Hidden) else _cells(row)))
    lines = [Text(printable(line), no_wrap=True, overflow="ellipsis") for line in head]
    return Group(*lines, table) if shown.rows else Group(*lines)


def _head(name: str, shown: Picture) -> list[str]:
    """The figures, in a few lines."""
    stats = shown.stats
    actors: Mapping[str, int] = stats.get("actors") or {}
    rate = "" if shown.started_per_second is None else f", {shown.started_per_second:g} a second"
    counts = ", ".join(f"{count} {state}" for state, count in shown.counts.items())
    processes = ", ".join(f"{count} {state}" for state, count in sorted(actors.items())) or "none"
    lines = [
        f"{name}  {time.strftime('%H:%M:%S', time.localtime(shown.at))}  {counts}{' and more' if shown.more else ''}",
        f"sessions started {stats.get('sessionsStarted', 0)}{rate}; processes {processes}, at most "
        f"{stats.get('poolMax', 0)}; {stats.get('memoryBytes', 0) / 1e6:.0f} MB on the registry's host",
    ]
    if lanes := stats.get("lanes"):
        lines.append("lanes " + ", ".join(_lanes(lanes)))
    if limits := stats.get("limits"):
        lines.append(
            "limits " + ", ".join(f"{limit} {x['held']} in, {x['waiting']} waiting" for limit, x in limits.items())
        )
    return lines


def _lanes(lanes: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Slots by kind of lane: each spawning session may have one of its own."""
    kinds: dict[str, list[Mapping[str, int]]] = {}
    for lane, slots in lanes.items():
        kinds.setdefault(lane.partition(":")[0], []).append(slots)
    for kind, all_slots in kinds.items():
        taken = sum(slots["taken"] for slots in all_slots)
        width = sum(slots["width"] for slots in all_slots) if all(slots["width"] for slots in all_slots) else "any"
        yield f"{kind} {taken} of {width}" + (f" (in {len(all_slots)})" if len(all_slots) > 1 else "")


def _cells(row: TopRow) -> tuple[str, ...]:
    from openclaw_ray.core.announce_text import duration

    name = row.agent_id or row.session_key
    below = ", ".join(f"{count} {state}" for state, count in row.below.items())
    text = " ".join(part for part in (name, row.text if row.text != name else "") if part)
    why = (row.waiting_for or "").removesuffix(f"; place {row.place} in the queue")
    return (
        "  " * row.level + printable(text) + (f" ({below})" if below else ""),
        row.state,
        str(row.depth),
        duration(row.age_ms) if row.age_ms else "0",
        "" if row.pid is None else str(row.pid),
        printable((row.node or "")[:NODE_SHOWN]),
        printable(f"#{row.place}: {why}" if row.place is not None else why),
    )


def _hidden(row: Hidden) -> tuple[str, ...]:
    counts = ", ".join(f"{count} {state}" for state, count in row.counts.items())
    return ("  " * row.level + f"… {sum(row.counts.values()):,} more", "", "", "", "", "", counts)
