"""One transcript on disk: where it is, opening it for appending, and reading its newest page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.store._transcript_rows import row_of

__all__ = [
    "append_all",
    "archived_path",
    "check_id",
    "count_lines",
    "cut_torn_line",
    "newest_page",
    "open_appending",
    "rows_in",
    "sync_folder",
    "transcript_path",
]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")
_BLOCK = 64 * 1024


def check_id(what: str, name: str) -> None:
    """Refuse an id that would not be a plain file name.

    Raises:
        ValueError: naming ``what`` it is an id of.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{what} {name!r} cannot name a file: letters, digits and _ . @ + - only, 128 at most"
        )


def transcript_path(folder: Path, agent_id: str, session_id: str) -> Path:
    """Where the transcript of a session is, whether there is one or not.

    Raises:
        ValueError: an id that is no plain file name.
    """
    check_id("agent id", agent_id)
    check_id("session id", session_id)
    return folder / "agents" / agent_id / "sessions" / f"{session_id}.jsonl"


def open_appending(path: str) -> int:
    """A descriptor for reading and appending; a new file has mode 0600, a symbolic link is refused.

    Raises:
        OSError: it cannot be opened.
    """
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def archived_path(path: Path, at: float) -> Path:
    """Where the transcript at ``path`` is, archived at ``at`` seconds since the epoch (SPEC.md G3)."""
    stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return path.with_name(f"{path.name}.deleted.{stamp.replace(':', '-').replace('+00-00', 'Z')}")


def append_all(fd: int, data: bytes) -> None:
    """Append all of ``data``.

    Raises:
        OSError: only a part was written, or nothing; the last line may be torn.
    """
    while data:
        data = data[os.write(fd, data) :]


def sync_folder(folder: str) -> None:
    """Make the names in ``folder`` survive power loss.

    Raises:
        OSError: the disk refuses.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def cut_torn_line(fd: int) -> int:
    """Cut what follows the last line feed, left by a write that was interrupted. The number of bytes cut."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
    return size - end


def rows_in(fd: int, session_id: str) -> Iterator[Row]:
    """All rows of the file from its beginning; damaged lines are passed over."""
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        # by line feeds alone: texts may hold other line separators
        for line in file:
            if row := row_of(session_id, line):
                yield row


def count_lines(path: Path, since: int = 0) -> tuple[int, int]:
    """Line feeds from byte ``since`` on, and the size of the file.

    Raises:
        OSError: it cannot be read; a file that is not there has none.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0, 0
    try:
        feeds = 0
        while block := os.pread(fd, _BLOCK, since):
            feeds += block.count(b"\n")
            since += len(block)
    finally:
        os.close(fd)
    return feeds, since


def newest_page(path: Path, session_id: str, limit: int, offset: int) -> list[Row]:
    """``limit`` rows after the newest ``offset``, oldest first; reads the file from its end, as far as
    needed.

    Raises:
        OSError: it cannot be read; a file that is not there has no rows.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return []
    try:
        blocks: list[bytes] = []
        start = os.fstat(fd).st_size
        feeds = 0
        while start > 0 and feeds <= limit + offset:
            length = min(_BLOCK, start)
            start -= length
            block = os.pread(fd, length, start)
            feeds += block.count(b"\n")
            blocks.append(block)
    finally:
        os.close(fd)
    lines = b"".join(reversed(blocks)).split(b"\n")
    # after the last line feed there is nothing, or a line just being written; before the first one of a part
    # read, a piece
    lines = lines[1 if start else 0 : -1]
    end = len(lines) - offset
    page = lines[max(0, end - limit) : max(0, end)]
    return [row for line in page if (row := row_of(session_id, line))]
