"""Files of archived transcripts that are past their time (SPEC.md A3, ``session.maintenance.pruneAfter``).

1. An archived transcript has the time of its archiving in its name: ``<sessionId>.jsonl.deleted.<timestamp>``. Nothing
   else is looked at, so that it needs neither the journal nor a process that remembers.
2. Only files with such a name go, a bounded number at a time; what cannot be removed is left, and tried again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["prune_archives"]

_MARK = ".jsonl.deleted."


def prune_archives(state_dir: str | Path, before: float, *, most: int = 1_000) -> int:
    """Remove transcripts that were archived before that time; how many went, ``most`` if there may be more.

    Args:
        before: seconds since the epoch.
    """
    gone = 0
    for path in _archives(Path(state_dir), before):
        if gone >= most:
            break
        with suppress(OSError):
            os.unlink(path)
            gone += 1
    return gone


def _archives(state_dir: Path, before: float) -> Iterator[str]:
    for folder in sorted(state_dir.glob("agents/*/sessions")):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                at = _archived_at(entry.name)
                if at is not None and at < before:
                    yield entry.path


def _archived_at(name: str) -> float | None:
    """When a file of this name was archived; `None` if it is no archived transcript."""
    _, mark, stamp = name.rpartition(_MARK)
    if not mark:
        return None
    try:
        at = datetime.strptime(stamp.rstrip("+"), "%Y-%m-%dT%H-%M-%S.%fZ")
    except ValueError:
        return None
    return at.replace(tzinfo=UTC).timestamp()
