"""Pages of a transcript, and what ``sessions_history`` gives of one (SPEC.md B6).

1. ``limit`` and ``offset`` count rows of the transcript, tool rows included, so that a page is the same whatever is
   left out of its view; ``offset`` counts from the newest, and ``nextOffset`` goes back in time.
2. Rows that did not fit into the view's bytes are the next page's: no row is passed over.
3. A message's id names one row: its announce key, else ``<activation>:<number>``. A page around it has half of its rows
   before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openclaw_ray.core.compact import compact
from openclaw_ray.core.protocol.messages import Row

__all__ = ["TranscriptPage", "cut_page", "history_json", "message_id", "message_of"]


@compact
@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Rows, oldest first.

    Attributes:
        total: rows of the whole transcript.
        offset: rows after the newest of these.
        found: False if the message that the page was to be around is not there.
    """

    rows: tuple[Row, ...]
    total: int
    offset: int = 0
    found: bool = True


def message_id(row: Row) -> str:
    """What names a row in its transcript (3)."""
    return row.key if row.key is not None else f"{row.activation}:{row.seq}"


def cut_page(rows: Sequence[Row], limit: int, offset: int, anchor: str = "") -> TranscriptPage:
    """A page of a transcript that is there as a whole; around the message ``anchor`` if one is named (3)."""
    total = len(rows)
    if anchor:
        at = next((number for number, row in enumerate(rows) if message_id(row) == anchor), None)
        if at is None:
            return TranscriptPage((), total, 0, False)
        newest = min(total, max(at + limit - limit // 2, limit))
        offset = total - newest
    end = max(0, total - offset)
    return TranscriptPage(tuple(rows[max(0, end - limit) : end]), total, offset)


def message_of(row: Row) -> dict[str, Any]:
    """A row as a message."""
    named = {name: value for name, value in (row.meta or {}).items() if name not in ("role", "content", "text")}
    return {
        "role": row.role,
        "content": row.text,
        **named,
        "timestamp": round(row.at * 1000),
        "messageId": message_id(row),
    }


def history_json(
    page: TranscriptPage, session: Mapping[str, Any], *, include_tools: bool, raw: bool = False
) -> dict[str, Any]:
    """The answer of ``sessions_history``; ``raw`` masks and leaves out nothing, for the operator alone."""
    from openclaw_ray.core.history import View, view  # who looks at no history does not pay for it

    messages = [message_of(row) for row in page.rows]
    if raw:
        seen = View(messages, 0)
        flags: dict[str, Any] = {"messages": messages, "raw": True}
    else:
        seen = view(messages, include_tools=include_tools)
        flags = seen.to_json()
    # without a row in the view, all of the page has been looked at
    covered = len(page.rows) - seen.first
    oldest = page.total - page.offset - covered
    further = page.offset + covered if page.rows and oldest > 0 else None
    return {
        "sessionKey": session["key"],
        "sessionId": session["sessionId"],
        **flags,
        "offset": page.offset,
        "hasMore": further is not None,
        **({} if further is None else {"nextOffset": further}),
        "totalMessages": page.total,
    }
