"""``openclaw-ray sessions …``: what one session did."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import click

from openclaw_ray.cli.exits import OK, CommandError, OutputClosed
from openclaw_ray.cli.output import data_stream
from openclaw_ray.cli.view import open_view, view_options

__all__ = ["sessions"]


@click.group(short_help="Look into one session.", no_args_is_help=False)
def sessions() -> None:
    """Look into one session."""


@sessions.command("logs", short_help="Print what a session's processes wrote.")
@click.argument("key")
@click.option("--tail", metavar="N", type=click.IntRange(min=0), help="Only the last N lines.")
@view_options
def logs(key: str, tail: int | None, name: str | None, state: str | None) -> int:
    """Print what the session KEY and its commands wrote to standard output and standard error.

    KEY is a session key as `map` rows and `openclaw-ray runs` show it. Logs are read where they were written:
    on the machine that ran the session.
    """
    with open_view(name, state) as view:
        source = view.source
        chunks = view.log(key)
        if chunks is None:
            raise CommandError(f"no session {key!r} in {source}; `openclaw-ray runs` lists the keys")
        if tail is not None:
            chunks = _last_lines(chunks, tail)
        wrote = False
        try:
            for chunk in chunks:
                wrote = True
                data_stream().buffer.write(chunk)
            data_stream().buffer.flush()
        except BrokenPipeError:
            raise OutputClosed from None
    if not wrote:
        click.echo(f"note: nothing here from {key}: it wrote nothing, or ran on another machine", err=True)
    return OK


def _last_lines(chunks: Iterable[bytes], count: int) -> Iterator[bytes]:
    kept: deque[bytes] = deque(maxlen=count)
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        kept.extend(line + b"\n" for line in lines)
    if rest:
        kept.append(rest)
    return iter(kept)
