"""Tables on standard output, for people: as wide as the terminal, else 160 columns; long cells fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openclaw_ray.cli.exits import OutputClosed
from openclaw_ray.cli.output import data_stream, printable

__all__ = ["cell", "print_table"]

_PLAIN_WIDTH = 160


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", right: Sequence[str] = ()
) -> None:
    """Print rows under their columns; the last column folds, the others are kept whole.

    Args:
        columns: their names.
        rows: cells of any kind; `None` is an empty one.
        title: a line above.
        right: columns of numbers.

    Raises:
        OutputClosed: nobody reads any more.
    """
    from rich.console import Console
    from rich.table import Table

    out = data_stream()
    console = Console(file=out, width=None if out.isatty() else _PLAIN_WIDTH, markup=False, highlight=False)
    table = Table(box=None, pad_edge=False)
    for column in columns:
        last = column == columns[-1]
        table.add_column(
            column,
            no_wrap=not last,
            overflow="fold" if last else "ellipsis",
            justify="right" if column in right else "left",
        )
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    try:
        if title:
            console.print(printable(title), style="bold", soft_wrap=True)
        console.print(table)
        out.flush()
    except BrokenPipeError:
        raise OutputClosed from None


def cell(value: object) -> str:
    """A value as the text of a cell."""
    return "" if value is None else printable(str(value))
