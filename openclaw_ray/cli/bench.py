"""``openclaw-ray bench``: run the suite, make a report of a run, compare two, find the limits of this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from openclaw_ray.cli.exits import FAILED, OK, CommandError
from openclaw_ray.cli.opening import seconds

__all__ = ["bench"]


class _BenchGroup(click.Group):
    """Names of benchmarks, or nothing, where a subcommand could stand: that is ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of ``run``, which needs no word of its own; then the subcommands."""
        run.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=_BenchGroup, subcommand_metavar="[NAME ...] | report | compare | limits", short_help="Measure.")
def bench() -> None:
    """Measure this runtime on this machine: all benchmarks, or those named.

    \b
    fork_join spawn_latency depth lanes stop ping_pong registry memory recovery
    skynet pipeline

    Shows the performance budget with pass or fail for each line, "not measured" for those that no benchmark
    of this run measures. Compare ratios, not rates, and measure on a machine that does nothing else.

    \b
    Exit status: 0 every line of the budget that was measured is met, 1 one is
                 missed or a benchmark failed, 2 usage, 130 interrupted.
    """


@bench.command(hidden=True)
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option("--quick", is_flag=True, help="Smaller sizes, for a first look.")
@click.option("--json", "as_json", is_flag=True, help="The results as one JSON object on standard output.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False), help="Write that object to FILE, too.")
@click.option("--set", "settings", metavar="NAME.SIZE=JSON", multiple=True,
              help="Another size for one benchmark, as in fork_join.width=8. Repeatable.")
@click.option("--against", type=click.Choice(["first", "final"]), default="final", show_default=True,
              help="Which column of the budget counts.")
def run(
    names: tuple[str, ...], quick: bool, as_json: bool, output: str | None, settings: tuple[str, ...], against: str
) -> int:
    """Run benchmarks."""
    from openclaw_ray.bench import budget
    from openclaw_ray.bench.catalogue import ABOUT, run_one
    from openclaw_ray.bench.facts import facts
    from openclaw_ray.bench.result import document
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.cli.output import kept_for_data

    wanted = list(dict.fromkeys(names)) or list(ABOUT)
    sizes = _checked(wanted, settings, quick=quick)
    began, here, results = time.monotonic(), facts(), []
    with kept_for_data():
        with Rig(_say) as rig:
            for name in wanted:
                _say(f"{name}: {ABOUT[name]}")
                results.append(run_one(rig, name, quick=quick, settings=sizes.get(name, ())))
        standings = budget.budget_of(results, budget.Column(against))
        lines = {"column": against, "lines": [standing.to_json() for standing in standings]}
        whole = document(results, quick=quick, seconds=time.monotonic() - began, facts=here, budget=lines)
        if output is not None:
            _write(Path(output), json.dumps(whole, indent=2) + "\n")
        if as_json:
            _print(json.dumps(whole, indent=2))
        else:
            _show(whole)
    missed = budget.missed(standings)
    broken = any(result.get("failed") for result in results)
    return FAILED if missed or broken else OK


@bench.command()
@click.argument("results", metavar="RESULTS.json", type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", metavar="FILE", required=True, type=click.Path(dir_okay=False), help="The page.")
def report(results: str, output: str) -> int:
    """Make one self-contained HTML page of a run: figures, tables, plots, caveats.

    Needs matplotlib: pip install 'openclaw_ray[plots]'.
    """
    from openclaw_ray.bench.plots import draw_all, plots_of
    from openclaw_ray.bench.report import page

    document = _read(results)
    plots = plots_of(document["results"])
    try:
        images = draw_all(plots)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"plots need matplotlib, which is not installed ({error}): pip install 'openclaw_ray[plots]'"
        ) from None
    _write(Path(output), page(document, plots, images))
    click.echo(f"{output}: {len(document['results'])} benchmarks, {len(images)} plots", err=True)
    return OK


@bench.command()
@click.argument("first", metavar="A.json", type=click.Path(exists=True, dir_okay=False))
@click.argument("second", metavar="B.json", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option("--all", "everything", is_flag=True, help="Show what is noise, too.")
def compare(first: str, second: str, as_json: bool, everything: bool) -> int:
    """Compare two runs: the ratio B/A of each figure, and whether it is more than noise.

    Ranges of a figure that meet cannot be told apart: that is noise.
    """
    from openclaw_ray.bench.compare import Word
    from openclaw_ray.bench.compare import compare as compared
    from openclaw_ray.bench.report import number
    from openclaw_ray.cli.table import print_table

    found = compared(_read(first), _read(second))
    if as_json:
        _print(json.dumps(found.to_json(), indent=2))
        return OK
    rows = [
        (
            each.benchmark,
            each.name,
            number(each.first.median),
            number(each.second.median),
            each.first.unit,
            "" if each.ratio is None else f"{each.ratio:.2f}",
            f"{each.first.spread:.0%}, {each.second.spread:.0%}",
            each.word.value,
        )
        for each in found.differences
        if everything or each.word is not Word.NOISE
    ]
    if rows:
        columns = ("benchmark", "figure", "A", "B", "unit", "B/A", "spread A, B", "which is")
        print_table(columns, rows, right=("A", "B", "B/A"))
    noise = sum(each.word is Word.NOISE for each in found.differences)
    click.echo(f"{len(found.differences)} figures compared, {noise} of them noise", err=True)
    for caveat in found.caveats:
        click.echo(f"note: {caveat}", err=True)
    return OK


@bench.command()
@click.option("--cpu-ms", default=0.0, show_default=True, callback=seconds, help="CPU time of each session, ms.")
@click.option("--wait-ms", default=0.0, show_default=True, callback=seconds, help="What it waits besides, ms.")
@click.option("--memory-mb", type=click.FloatRange(min=1), help="Most for all processes.  [default: 80 % of free]")
@click.option("--latency-ms", type=click.FloatRange(min=0, min_open=True), help="Most p99 of a session.")
@click.option("--highest", default=64, show_default=True, type=click.IntRange(1, 512), help="Most sessions at once.")
@click.option("--depth", default=5, show_default=True, type=click.IntRange(1, 32), help="maxSpawnDepth.")
@click.option("--quick", is_flag=True, help="Shorter rounds.")
@click.option("--json", "as_json", is_flag=True, help="The points and the recommendation as one JSON object.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False), help="Write that object to FILE, too.")
def limits(
    cpu_ms: float,
    wait_ms: float,
    memory_mb: float | None,
    latency_ms: float | None,
    highest: int,
    depth: int,
    quick: bool,
    as_json: bool,
    output: str | None,
) -> int:
    """Find the limits of this machine: raise concurrency until throughput falls or a bound is hit.

    Recommends maxConcurrent and ray.pool.max, and says why. They hold for sessions like those that were
    measured: --cpu-ms and --wait-ms say what each does.
    """
    from openclaw_ray.bench.limits import default_bounds, find_limits
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.cli.output import data_stream, kept_for_data

    with kept_for_data():
        bounds = default_bounds(memory_mb=memory_mb, latency_ms=latency_ms, highest=highest, depth=depth)
        lasts, rounds = (1.0, 3) if quick else (4.0, 5)
        with Rig(_say) as rig:
            result, said = find_limits(rig, bounds, cpu_ms=cpu_ms, wait_ms=wait_ms, seconds=lasts, rounds=rounds)
        text = json.dumps(result, indent=2)
        if output is not None:
            _write(Path(output), text + "\n")
        if as_json:
            _print(text)
        else:
            out = data_stream()
            click.echo(f"agents.defaults.subagents.maxConcurrent: {said.max_concurrent}", file=out)
            click.echo(f"ray.pool.max: {said.pool_max}", file=out)
            for reason in said.reasons:
                click.echo(f"  {reason}", file=out)
    return OK


# ---------------------------------------------------------------------- inside


def _checked(wanted: Sequence[str], settings: Sequence[str], *, quick: bool) -> dict[str, list[tuple[str, Any]]]:
    """The settings by benchmark, once names and settings are known to be right."""
    from openclaw_ray.bench.catalogue import configuration, find, parse_setting

    sizes: dict[str, list[tuple[str, Any]]] = {}
    try:
        for setting in settings:
            name, dot, rest = setting.partition(".")
            if not dot or name not in wanted:
                raise ValueError(f"--set {setting}: it begins with the name of a benchmark that runs, and a dot")
            sizes.setdefault(name, []).append(parse_setting(rest))
        for name in wanted:
            configuration(find(name), quick=quick, settings=sizes.get(name, ()))
    except ValueError as error:
        raise CommandError(str(error)) from None
    return sizes


def _show(document: Mapping[str, Any]) -> None:
    """What was measured, and the budget, as tables."""
    from openclaw_ray.bench.compare import is_busy
    from openclaw_ray.bench.report import number
    from openclaw_ray.cli.table import print_table

    rows = [
        (result["benchmark"], name, number(figure["median"]), f"{number(figure['low'])} … {number(figure['high'])}",
         figure["unit"])
        for result in document["results"]
        for name, figure in result["figures"].items()
    ]
    if rows:
        print_table(("benchmark", "figure", "median", "range", "unit"), rows, right=("median", "range"))
    for result in document["results"]:
        if why := result.get("skipped") or result.get("failed"):
            word = "skipped" if result.get("skipped") else "FAILED"
            click.echo(f"{result['benchmark']}: {word}: {why}", err=True)
    lines = [
        (line["what"], number(line["value"]), line["bound"], line["unit"], line["verdict"], line["note"])
        for line in document["budget"]["lines"]
    ]
    title = f"Performance budget ({document['budget']['column']})"
    print_table(("measure", "value", "bound", "unit", "verdict", "note"), lines, title=title, right=("value", "bound"))
    if is_busy(document):
        load = document["host"]["load_before"][0]
        click.echo(f"note: the machine was busy when this began (load {load:g}); do not rely on times", err=True)


def _read(path: str) -> dict[str, Any]:
    from openclaw_ray.bench.result import NotResults, read_document

    try:
        return read_document(path)
    except NotResults as error:
        raise CommandError(str(error)) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}", FAILED) from None


def _print(text: str) -> None:
    from openclaw_ray.cli.exits import OutputClosed
    from openclaw_ray.cli.output import data_stream

    try:
        click.echo(text, file=data_stream())
    except BrokenPipeError:
        raise OutputClosed from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
