"""``context: "fork"``: how much of a conversation a child may begin with (SPEC.md B1, C stage 2; SCENARIOS.md 45).

1. A transcript of more than `FORK_MOST_BYTES` is not branched: the child begins isolated, and its receipt says so.
2. The copies stand before the child's own rows, each with a key of its own, so that it is known again.
3. A row of more than `FORK_ROW_CHARS` characters is cut, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from openclaw_ray.core.protocol.parts import Row

__all__ = ["FORK_MOST_BYTES", "FORK_ROW_CHARS", "branched", "cut_text", "fork_note", "too_large"]

FORK_MOST_BYTES: Final = 512 * 1024
"""Bytes of transcript, as it is stored, that may be branched."""
FORK_ROW_CHARS: Final = 32_768
"""Characters of one row of a branch."""


def too_large(size: int) -> bool:
    """Whether a transcript of ``size`` bytes is too large to be branched."""
    return size > FORK_MOST_BYTES


def fork_note(size: int) -> str:
    """What who asked for a fork is told in place of it."""
    return (
        f"The conversation has {size} bytes and at most {FORK_MOST_BYTES} are branched: the child began isolated, with "
        "its task alone."
    )


def cut_text(text: str) -> str:
    """A row's text as a branch has it."""
    if len(text) <= FORK_ROW_CHARS:
        return text
    return f"{text[:FORK_ROW_CHARS]}\n[{len(text) - FORK_ROW_CHARS} more characters were cut]"


def branched(rows: Iterable[Row], session_id: str, source: str) -> Iterator[Row]:
    """Rows of the transcript ``source`` as the one of ``session_id`` begins with them."""
    for number, row in enumerate(rows):
        meta = {**(row.meta or {}), "branchedFrom": source}
        yield Row(session_id, 0, -1, row.role, cut_text(row.text), row.at, f"fork:{number}", meta)
