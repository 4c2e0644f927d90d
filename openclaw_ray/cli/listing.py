"""The flags that all lists share, as ``ray list`` has them: filters by any field, formats, details.

1. A filter is ``FIELD=VALUE`` or ``FIELD!=VALUE``. FIELD is a field of the JSON rows, in either spelling (``agentId``,
   ``agent_id``), or one inside of one (``error.cause``); letter case counts in neither. All filters have to hold.
2. A row without the field is unlike every value. A field that no row has is told of: it is most likely misspelt.
3. ``--limit`` counts what the filters leave.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import click

from openclaw_ray.cli.exits import OutputClosed
from openclaw_ray.cli.output import JsonLines, data_stream
from openclaw_ray.cli.table import print_table

__all__ = ["FORMATS", "Filter", "Listing", "format_options", "list_flags", "parse_filter"]

Command = TypeVar("Command", bound=Callable[..., object])
Row = Mapping[str, Any]

FORMATS = ("table", "json", "yaml")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition on a row.

    Attributes:
        path: names of fields, from outer to inner, as `_plain` has them.
        value: what it is to be, in lower case; ``equal`` is False if it is not to be that.
        text: as it was written.
    """

    path: tuple[str, ...]
    value: str
    equal: bool
    text: str

    def of(self, row: Row) -> object:
        """What the row has there; `_MISSING` if it has not."""
        found: object = row
        for name in self.path:
            if not isinstance(found, Mapping):
                return _MISSING
            found = next((value for key, value in found.items() if _plain(str(key)) == name), _MISSING)
        return found

    def holds(self, row: Row) -> bool:
        """Whether the row is wanted."""
        found = self.of(row)
        return (found is not _MISSING and str(found).lower() == self.value) is self.equal


def parse_filter(text: str) -> Filter:
    """A filter from its text.

    Raises:
        ValueError: it is none.
    """
    left, sign, value = text.partition("=")
    equal = not left.endswith("!")
    path = tuple(_plain(part) for part in left.removesuffix("!").strip().split("."))
    if not sign or not all(path):
        raise ValueError(f"{text!r} is no filter: FIELD=VALUE or FIELD!=VALUE, e.g. state=running")
    return Filter(path, value.strip().lower(), equal, text)


def _plain(name: str) -> str:
    return name.strip().replace("_", "").lower()


@dataclass
class Listing:
    """How rows are chosen and shown.

    Attributes:
        filters: all have to hold.
        limit: at most so many rows; `None` is all.
        form: one of `FORMATS`, or ``lines``: a JSON object per row.
        detail: all fields of each row instead of a few columns.
    """

    filters: tuple[Filter, ...] = ()
    limit: int | None = None
    form: str = "table"
    detail: bool = False
    _unseen: dict[str, Filter] = field(default_factory=dict)

    def chosen(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are wanted; afterwards a note on fields that none had."""
        self._unseen = {each.text: each for each in self.filters}
        yield from itertools.islice(filter(self._wanted, rows), self.limit)
        for each in self._unseen.values():
            click.echo(f"note: no row has a field {'.'.join(each.path)!r} (--filter {each.text}); see --json", err=True)

    def _wanted(self, row: Row) -> bool:
        for each in list(self._unseen.values()):
            if each.of(row) is not _MISSING:
                del self._unseen[each.text]
        return all(each.holds(row) for each in self.filters)

    def show(
        self,
        rows: Iterable[Row],
        columns: Sequence[str],
        cells: Callable[[Any], Sequence[object]],
        *,
        title: str = "",
        right: Sequence[str] = (),
    ) -> None:
        """Write rows, which `chosen` has chosen, to standard output.

        Args:
            columns, cells, title, right: of the table, see `print_table`.

        Raises:
            OutputClosed: nobody reads any more.
        """
        if self.form == "lines":
            output = JsonLines()
            for row in rows:
                output.write(row)
        elif self.form == "json":
            import json

            _write(json.dumps(list(rows), ensure_ascii=True, indent=2) + "\n")
        elif self.form == "yaml":
            _write(_yaml(list(rows)))
        elif self.detail:
            for row in rows:
                print_table(("field", "value"), row.items(), title=title)
        else:
            print_table(columns, map(cells, rows), title=title, right=right)


def _yaml(rows: list[Row]) -> str:
    import json

    import yaml  # type: ignore[import-untyped]  # Ray brings it

    plain = json.loads(json.dumps(rows))  # words of ours are enumerations, which YAML has none of
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)
    return text


def _write(text: str) -> None:
    try:
        data_stream().write(text)
        data_stream().flush()
    except BrokenPipeError:
        raise OutputClosed from None


def _filters(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Filter, ...]:
    try:
        return tuple(parse_filter(text) for text in texts)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


_FORMAT = (
    click.option("--json", "as_json", is_flag=True, help="One JSON object per line instead of a table."),
    click.option(
        "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="json: one array."
    ),
)
_CHOICE = (
    click.option(
        "-f", "--filter", "filters", metavar="FIELD=VALUE", multiple=True, callback=_filters,
        help="Only rows whose field, as --json has it, is (or with != is not) this.",
    ),
    click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most N rows, newest first."),
    click.option("--detail", is_flag=True, help="All fields of each row."),
)  # fmt: skip


def list_flags(command: Command) -> Command:
    """The options of a list; the command gets them as ``listing``."""
    return _with(command, (*_FORMAT, *_CHOICE))


def format_options(command: Command) -> Command:
    """``--json`` and ``--format`` alone, as ``listing``."""
    return _with(command, _FORMAT)


def _with(command: Command, options: Sequence[Callable[[Any], Any]]) -> Command:
    @functools.wraps(command)
    def gathered(
        as_json: bool,
        form: str,
        filters: tuple[Filter, ...] = (),
        limit: int | None = None,
        detail: bool = False,
        **rest: Any,
    ) -> object:
        return command(listing=Listing(filters, limit, "lines" if as_json else form, detail), **rest)

    made: Any = gathered
    for option in reversed(options):
        made = option(made)
    return cast("Command", made)
