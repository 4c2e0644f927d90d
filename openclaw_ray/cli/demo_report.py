"""The demo's report as tables."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from openclaw_ray.cli.output import printable

if TYPE_CHECKING:
    from openclaw_ray.agents.builtin.survey.combine import Report
    from openclaw_ray.cli.demo import RuntimeFigures

__all__ = ["megabytes", "print_report"]

_SHOWN = 10
_PLAIN_WIDTH = 120
_FIGURES = ("files", "bytes", "lines", "words", "functions", "classes", "todos")


def print_report(report: Report, figures: RuntimeFigures, root: Path) -> None:
    """Print totals by folder, the longest lists, duplicates and findings, and what the job cost."""
    console = Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else _PLAIN_WIDTH, markup=False, highlight=False
    )
    totals = report["totals"]
    console.print(f"Survey of {printable(str(root))}", style="bold", soft_wrap=True)
    console.print(_folders(report))
    _print_some(
        console,
        "Largest files",
        ("bytes", "file"),
        [(f"{row['bytes']:,}", row["path"]) for row in report["largest"]],
    )
    _print_some(
        console,
        "Longest functions",
        ("lines", "function", "where"),
        [(f"{row['lines']:,}", row["name"], f"{row['path']}:{row['line']}") for row in report["longestFunctions"]],
    )
    _print_some(
        console,
        f"Duplicate files ({totals['duplicates']:,} beyond the first of each content)",
        ("bytes", "copies", "files"),
        [(f"{row['bytes']:,}", f"{len(row['files']):,}", _first(row["files"])) for row in report["duplicates"]],
    )
    kinds = Counter(finding["kind"] for finding in report["findings"])
    _print_some(
        console,
        f"Findings ({', '.join(f'{count:,} {kind}' for kind, count in sorted(kinds.items()))})",
        ("kind", "path", "detail"),
        [
            (
                row["kind"],
                row["path"],
                f"{row['count']:,} {row['detail']}" if "count" in row else row["detail"],
            )
            for row in report["findings"]
        ],
    )
    console.print(
        f"{figures.sessions:,} sessions in {figures.wall:.1f} s ({figures.rate:.0f}/s), "
        f"{figures.warm:,} warm and {figures.cold:,} cold activations, "
        f"peak memory {megabytes(figures.peak_memory)}; started in {figures.start:.1f} s"
    )


def megabytes(size: int) -> str:
    """Bytes as ``812 MB``."""
    return f"{size / 1e6:,.0f} MB"


def _folders(report: Report) -> Table:
    table = Table(box=None, show_footer=True)
    table.add_column("folder", footer="total", overflow="fold")
    for name in _FIGURES:
        table.add_column(name, justify="right", footer=f"{report['totals'][name]:,}")
    for row in report["folders"]:
        cells = (
            row["files"],
            row["bytes"],
            row["lines"],
            row["words"],
            row["functions"],
            row["classes"],
            row["todos"],
        )
        table.add_row(printable(row["folder"]), *(f"{cell:,}" for cell in cells))
    return table


def _print_some(console: Console, title: str, columns: Iterable[str], rows: list[tuple[str, ...]]) -> None:
    """A table of the first rows, and how many more there are; nothing if there are none."""
    if not rows:
        return
    table = Table(box=None)
    for column in columns:
        table.add_column(column, justify="right" if column in ("bytes", "lines", "copies") else "left", overflow="fold")
    for row in rows[:_SHOWN]:
        table.add_row(*(printable(cell) for cell in row))
    console.print()
    console.print(title, style="bold")
    console.print(table)
    if len(rows) > _SHOWN:
        console.print(f"… and {len(rows) - _SHOWN:,} more (--json has all)")


def _first(files: list[str]) -> str:
    more = f" and {len(files) - 2:,} more" if len(files) > 2 else ""
    return ", ".join(files[:2]) + more
