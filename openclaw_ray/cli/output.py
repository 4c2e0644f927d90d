"""Standard output: one JSON object a line, each written at once, and the end of a reader noticed.

It is for the command's data alone. Ray prints notes of its own, and what tasks and actors print, to the driver's
``sys.stdout``; an app file may print when it is imported. While any of that can happen, `kept_for_data` sends it to
standard error, and the command writes to `data_stream`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import BinaryIO, TextIO

from openclaw_ray.cli.exits import FAILED, CommandError, OutputClosed

__all__ = ["JsonLines", "data_stream", "discard_output", "kept_for_data", "printable"]

_kept: list[TextIO] = []


@contextlib.contextmanager
def kept_for_data() -> Iterator[None]:
    """Within it ``sys.stdout`` is standard error, and `data_stream` is what ``sys.stdout`` was."""
    if sys.stdout is None or sys.stderr is None:
        yield
        return
    _kept.append(data_stream())
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _kept.pop()


def data_stream() -> TextIO:
    """The standard output that a command writes its data to."""
    return _kept[-1] if _kept else sys.stdout


class JsonLines:
    """Writes rows to standard output as JSON lines, flushed row by row.

    Args:
        stream: where to; standard output if not given.
    """

    def __init__(self, stream: BinaryIO | None = None) -> None:
        if stream is None and data_stream() is None:
            raise CommandError("standard output is closed; redirect it to a file or to /dev/null")
        self._stream = data_stream().buffer if stream is None else stream

    def write(self, row: Mapping[str, object]) -> None:
        """Write one row.

        Undecodable bytes of file names (lone surrogates in Python) come out as ``\\udcXX`` escapes, so that a
        row is always valid UTF-8 and valid JSON.

        Raises:
            OutputClosed: nobody reads any more.
            CommandError: it cannot be written, as on a full disk.
        """
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        try:
            self._stream.write(line.encode("utf-8", "backslashreplace") + b"\n")
            self._stream.flush()
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            raise CommandError(f"cannot write to standard output: {error.strerror}", FAILED) from error


def discard_output() -> None:
    """Give up standard output, so that the interpreter's last flush finds no broken pipe."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def printable(text: str) -> str:
    """``text`` for a terminal: escape sequences in file names and the like become ``\ufffd``."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
