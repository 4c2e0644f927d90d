"""Where items come from: lines, or files by pattern; one after the other, never all at once."""

from __future__ import annotations

import glob
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator

from openclaw_ray.cli.exits import FAILED, CommandError

__all__ = ["LONGEST_LINE", "glob_files", "read_lines", "until_stopped"]

LONGEST_LINE = 16 << 20
"""Bytes."""

_CHUNK = 64 << 10


def read_lines(fd: int, *, stop_fd: int | None = None) -> Iterator[str]:
    """Lines of ``fd`` without their terminator (``\\n`` or ``\\r\\n``); blank ones are left out.

    Bytes that are not UTF-8 are kept as lone surrogates, as Python has them in file names.

    Args:
        fd: read as data comes; not closed.
        stop_fd: ends the lines once it is readable, even while ``fd`` has nothing to read.

    Raises:
        CommandError: it cannot be read, or a line is longer than `LONGEST_LINE`.
    """
    number = 0
    rest: list[bytes] = []
    size = 0
    while chunk := _read(fd, stop_fd):
        *lines, last = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*rest, lines[0]))
            rest, size = [], 0
        for line in lines:
            number += 1
            if text := _text(line):
                yield text
        rest.append(last)
        size += len(last)
        if size > LONGEST_LINE:
            raise CommandError(f"line {number + 1} of the input is longer than {LONGEST_LINE >> 20} MB", FAILED)
    if text := _text(b"".join(rest)):
        yield text


def glob_files(patterns: Iterable[str]) -> Iterator[str]:
    """Regular files that match, pattern by pattern, sorted within each; ``**`` goes into folders."""
    for pattern in patterns:
        for path in sorted(glob.iglob(pattern, recursive=True)):
            if os.path.isfile(path):
                yield path


def until_stopped(items: Iterable[str], stopping: Callable[[], bool]) -> Iterator[str]:
    """``items`` up to the moment when ``stopping()`` is true."""
    for item in items:
        if stopping():
            return
        yield item


def _read(fd: int, stop_fd: int | None) -> bytes:
    """The next bytes; none at the end, or when it is to stop."""
    try:
        if stop_fd is not None and not stat.S_ISREG(os.fstat(fd).st_mode):
            ready, _, _ = select.select([fd, stop_fd], [], [])
            if stop_fd in ready:
                return b""
        return os.read(fd, _CHUNK)
    except OSError as error:
        raise CommandError(f"the input cannot be read: {error.strerror}", FAILED) from error


def _text(line: bytes) -> str:
    """The line as text; ``""`` if it is blank."""
    text = line.removesuffix(b"\r").decode("utf-8", errors="surrogateescape")
    return text if text.strip() else ""
