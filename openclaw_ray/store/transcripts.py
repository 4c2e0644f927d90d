"""Transcripts: one JSONL file per session, append-only, each row once (DESIGN.md 10, PROTOCOL.md 7.4).

``<state_dir>/agents/<agentId>/sessions/<sessionId>.jsonl``, directories with mode 0700, files with 0600.

1. `begin` names a new activation of a session; rows of a lower one come from a process that is no longer it,
   and are refused. A row with nothing but a key was written by the registry and not by an activation; its key
   is fence enough.
2. A row that is written already is passed over: by its key, else by (sessionId, activation, seq).
3. On opening, a last line that was torn by a crash or a full disk is cut.
4. There may be very many short sessions: few files are open at a time, and what is written is remembered for
   the sessions used last; for the others the file is read again.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from openclaw_ray.core.branching import branched
from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.core.transcript_pages import TranscriptPage, cut_page
from openclaw_ray.store._transcript_file import (
    append_all,
    archived_path,
    check_id,
    count_lines,
    cut_torn_line,
    newest_page,
    open_appending,
    rows_in,
    sync_folder,
    transcript_path,
)
from openclaw_ray.store._transcript_rows import WrittenRows, line_of

__all__ = ["TranscriptStatistics", "Transcripts", "transcript_path"]

_Transcript = tuple[str, str]  # agent id, session id
_ARCHIVED = sys.maxsize  # as an activation: above every other

_SESSIONS_REMEMBERED = 4_096
_ROWS_REMEMBERED = 262_144
_BEGUN_REMEMBERED = 65_536
_COUNTED = 1_024  # transcripts whose number of rows is remembered


@dataclass(frozen=True, slots=True)
class TranscriptStatistics:
    """Transcripts since they were opened.

    Attributes:
        written, repeated, refused: rows that were appended, that were there already, that a newer activation
            fenced off.
        bytes: bytes appended.
        open_files: files open now. ``opened``: how often one was opened.
        reread: how often a file was read to know its rows.
        cut: torn last lines that were cut.
        remembered: rows held in memory to know them again. ``sessions``: of how many sessions.
    """

    written: int
    repeated: int
    refused: int
    bytes: int
    open_files: int
    opened: int
    reread: int
    cut: int
    remembered: int
    sessions: int


class Transcripts:
    """The transcripts below one state dir. Safe for several threads of one process, the only one that writes
    there.

    Args:
        folder: the state dir.
        sync: ``full`` flushes each append to the disk itself (``ray.journal.sync``).
        open_files: how many files may be open at a time.
    """

    def __init__(
        self, folder: str | Path, *, sync: Literal["normal", "full"] = "normal", open_files: int = 64
    ) -> None:
        self.folder = Path(folder)
        self._full = sync == "full"
        self._most_open = open_files
        self._lock = threading.Lock()
        self._open: OrderedDict[_Transcript, int] = OrderedDict()
        self._seen: OrderedDict[_Transcript, WrittenRows] = OrderedDict()
        self._begun: OrderedDict[str, int] = OrderedDict()
        self._counted: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._written = self._repeated = self._refused = self._bytes = 0
        self._opened = self._reread = self._cut = self._remembered = 0

    def begin(self, session_id: str, activation: int) -> None:
        """A new activation of the session has begun; rows of lower ones are refused from now on.

        Known for the 65,536 sessions named last; of others, the highest activation that has written a row
        counts.
        """
        with self._lock:
            self._begin(session_id, activation)

    def append(self, agent_id: str, rows: Iterable[Row]) -> int:
        """Append what is not there yet, in this order for each session. The number of rows written.

        Raises:
            JournalError: a file cannot be written (full disk). Its rows, and those of sessions that come
                after it, are to be given again; those of sessions before it are kept, and giving them again
                changes nothing.
            ValueError: an id that is no plain file name; nothing was written.
        """
        sessions: dict[str, list[Row]] = {}
        for row in rows:
            sessions.setdefault(row.session_id, []).append(row)
        check_id("agent id", agent_id)
        for session_id in sessions:
            check_id("session id", session_id)
        with self._lock:
            return sum(self._append((agent_id, session_id), group) for session_id, group in sessions.items())

    def read(self, agent_id: str, session_id: str, *, limit: int, offset: int = 0) -> list[Row]:
        """A page of rows, oldest first: the newest ``limit`` of those before the newest ``offset``.

        A session without a transcript, or with an archived one, has none. A damaged line takes a place, but
        gives no row.

        Raises:
            JournalError: the file cannot be read.
            ValueError: an id that is no plain file name, or a negative number.
        """
        if limit < 0 or offset < 0:
            raise ValueError(f"limit {limit} and offset {offset} count rows, from 0")
        path = transcript_path(self.folder, agent_id, session_id)
        try:
            return newest_page(path, session_id, limit, offset) if limit else []
        except OSError as error:
            raise JournalError(str(path), f"transcript cannot be read: {error.strerror}") from error

    def page(self, agent_id: str, session_id: str, *, limit: int, offset: int = 0, anchor: str = "") -> TranscriptPage:
        """A page of rows as for `read`, with the number of all rows; around the message ``anchor`` if one is named.

        Raises:
            JournalError: the file cannot be read.
            ValueError: an id that is no plain file name, or a negative number.
        """
        total = self._count(agent_id, session_id)
        if anchor:
            return cut_page(self.read(agent_id, session_id, limit=total), limit, 0, anchor)
        rows = self.read(agent_id, session_id, limit=limit, offset=offset)
        return TranscriptPage(tuple(rows), total, offset)

    def _count(self, agent_id: str, session_id: str) -> int:
        """Rows of a transcript; what was counted before is not read again, as nothing but its end changes."""
        path = transcript_path(self.folder, agent_id, session_id)
        lines, size = self._counted.pop(session_id, (0, 0))
        try:
            if size and (not path.exists() or path.stat().st_size < size):
                lines, size = 0, 0
            more, size = count_lines(path, size)
        except OSError as error:
            raise JournalError(str(path), f"transcript cannot be read: {error.strerror}") from error
        self._counted[session_id] = (lines + more, size)
        if len(self._counted) > _COUNTED:
            self._counted.popitem(last=False)
        return lines + more

    def archive(self, agent_id: str, session_id: str, *, at: float | None = None) -> Path | None:
        """Rename the transcript to ``<sessionId>.jsonl.deleted.<timestamp>`` (SPEC.md G3).

        Rows that come later for this session are refused, as long as this object knows of it.

        Args:
            at: seconds since the epoch for the timestamp (UTC); now by default.

        Returns:
            the new path; `None` if there is no transcript, as after a first call.

        Raises:
            JournalError: it cannot be renamed.
            ValueError: an id that is no plain file name.
        """
        path = transcript_path(self.folder, agent_id, session_id)
        target = archived_path(path, time.time() if at is None else at)
        with self._lock:
            self._forget((agent_id, session_id))
            self._begin(session_id, _ARCHIVED)
            try:
                while target.exists():
                    target = target.with_name(target.name + "+")
                path.rename(target)
                if self._full:
                    sync_folder(os.path.dirname(path))
            except FileNotFoundError:
                return None
            except OSError as error:
                raise JournalError(str(path), f"transcript cannot be archived: {error.strerror}") from error
        return target

    def size(self, agent_id: str, session_id: str) -> int:
        """Bytes of a transcript; 0 if there is none.

        Raises:
            ValueError: an id that is no plain file name.
        """
        try:
            return transcript_path(self.folder, agent_id, session_id).stat().st_size
        except OSError:
            return 0

    def begun(self, agent_id: str, session_id: str) -> bool:
        """Whether a transcript has begun; one that was archived has."""
        there = transcript_path(self.folder, agent_id, session_id).exists()
        return there or self._begun.get(session_id, 0) == _ARCHIVED

    def branch(self, agent_id: str, session_id: str, source: str) -> bool:
        """Begin a transcript with a copy of the rows of another one of the same agent, unless it has begun; the copy
        is there as a whole or not at all. Whether it was made now.

        Long rows are cut (`openclaw_ray.core.branching`). Copies are told apart from the session's own rows by keys.

        Raises:
            JournalError: it cannot be read or written.
            ValueError: an id that is no plain file name.
        """
        path = transcript_path(self.folder, agent_id, session_id)
        part = path.with_name(f".{path.name}.part")
        with self._lock:
            if path.exists() or self._begun.get(session_id, 0) == _ARCHIVED:
                return False
            try:
                rows = newest_page(transcript_path(self.folder, agent_id, source), source, sys.maxsize, 0)
                data = b"".join(line_of(row) for row in branched(rows, session_id, source))
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                part.unlink(missing_ok=True)
                fd = open_appending(str(part))
                try:
                    append_all(fd, data)
                    if self._full:
                        os.fsync(fd)
                finally:
                    os.close(fd)
                part.rename(path)
                if self._full:
                    sync_folder(os.path.dirname(path))
            except OSError as error:
                detail = f"transcript cannot be branched: {error.strerror}"
                raise JournalError(str(path), detail) from error
            self._bytes += len(data)
        return True

    def archived_before(self, agent_id: str, session_id: str, at: float) -> bool:
        """Whether the order to archive it ``at`` that time was carried out, by whichever process; then rows of before
        it that come again are refused, too.
        """
        done = archived_path(transcript_path(self.folder, agent_id, session_id), at).exists()
        if done:
            with self._lock:
                self._begin(session_id, _ARCHIVED)
        return done

    def statistics(self) -> TranscriptStatistics:
        """A snapshot."""
        with self._lock:
            return TranscriptStatistics(
                written=self._written,
                repeated=self._repeated,
                refused=self._refused,
                bytes=self._bytes,
                open_files=len(self._open),
                opened=self._opened,
                reread=self._reread,
                cut=self._cut,
                remembered=self._remembered,
                sessions=len(self._seen),
            )

    def close(self) -> None:
        """Close all files; harmless twice. A later append opens them again."""
        with self._lock:
            while self._open:
                os.close(self._open.popitem()[1])

    # ------------------------------------------------------------------ under the lock

    def _begin(self, session_id: str, activation: int) -> None:
        self._begun[session_id] = max(activation, self._begun.get(session_id, 0))
        self._begun.move_to_end(session_id)
        if len(self._begun) > _BEGUN_REMEMBERED:
            self._begun.popitem(last=False)

    def _append(self, name: _Transcript, rows: list[Row]) -> int:
        begun = self._begun.get(name[1], 0)
        if begun == _ARCHIVED:
            self._refused += len(rows)
            return 0
        try:
            lines = self._new_lines(name, begun, rows)
            if lines:
                data = b"".join(lines)
                fd = self._descriptor(name)
                append_all(fd, data)
                if self._full:
                    os.fsync(fd)
                self._bytes += len(data)
        except BaseException as error:
            # what got there is found, and a torn line cut, when the file is opened again
            self._forget(name)
            if isinstance(error, OSError):
                detail = f"transcript cannot be written: {error.strerror}"
                raise JournalError(str(transcript_path(self.folder, *name)), detail) from error
            raise
        self._written += len(lines)
        self._bound_memory()
        return len(lines)

    def _new_lines(self, name: _Transcript, begun: int, rows: list[Row]) -> list[bytes]:
        seen = self._written_rows(name)
        before = len(seen)
        lines = []
        try:
            for row in rows:
                if row.activation < max(begun, seen.highest) and (row.key is None or row.seq >= 0):
                    self._refused += 1
                elif seen.add(row):
                    lines.append(line_of(row))
                else:
                    self._repeated += 1
        finally:
            self._remembered += len(seen) - before
        return lines

    def _written_rows(self, name: _Transcript) -> WrittenRows:
        seen = self._seen.get(name)
        if seen is not None:
            self._seen.move_to_end(name)
            return seen
        fd = self._descriptor(name)
        seen = WrittenRows()
        if os.fstat(fd).st_size:
            self._reread += 1
            self._cut += cut_torn_line(fd) > 0
            for row in rows_in(fd, name[1]):
                seen.add(row)
        self._seen[name] = seen
        self._remembered += len(seen)
        return seen

    def _descriptor(self, name: _Transcript) -> int:
        fd = self._open.get(name)
        if fd is not None:
            self._open.move_to_end(name)
            return fd
        # a string: for a short session, a `Path` would cost as much as the rest of the append
        plain = f"{self.folder}/agents/{name[0]}/sessions/{name[1]}.jsonl"
        try:
            fd = open_appending(plain)
        except FileNotFoundError:
            path = Path(plain)
            for folder in (self.folder, path.parents[2], path.parents[1], path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            fd = open_appending(plain)
        self._open[name] = fd
        self._opened += 1
        if self._full:
            sync_folder(os.path.dirname(plain))
        if len(self._open) > self._most_open:
            os.close(self._open.popitem(last=False)[1])
        return fd

    def _bound_memory(self) -> None:
        while len(self._seen) > 1 and (
            len(self._seen) > _SESSIONS_REMEMBERED or self._remembered > _ROWS_REMEMBERED
        ):
            self._remembered -= len(self._seen.popitem(last=False)[1])

    def _forget(self, name: _Transcript) -> None:
        if (seen := self._seen.pop(name, None)) is not None:
            self._remembered -= len(seen)
        if (fd := self._open.pop(name, None)) is not None:
            with suppress(OSError):
                os.close(fd)
