"""Rows of ``sessions_list`` and the card of ``session_status`` (SPEC.md B5, B7). Pure: facts in, JSON out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openclaw_ray.core import keys
from openclaw_ray.core.announce_text import duration
from openclaw_ray.core.history import json_bytes
from openclaw_ray.core.key_words import ChatType, KeyKind
from openclaw_ray.core.redaction import redact
from openclaw_ray.core.results import camel_dict

__all__ = [
    "FRESH_MS",
    "KINDS",
    "LIST_BYTES",
    "LIST_DEFAULT",
    "LIST_MAX",
    "STATUS_WORDS",
    "SessionPage",
    "channel_of",
    "envelope",
    "kind_of",
    "state_version",
    "status_card",
    "title_of",
]

LIST_DEFAULT = 100
LIST_MAX = 200
"""Rows of one list."""
LIST_BYTES = 65_536
"""Bytes of JSON of all its rows."""
FRESH_MS = 30 * 60_000
"""How long an ended child is linked to (the ghost rule)."""
KINDS = ("main", "group", "cron", "hook", "node", "other")
STATUS_WORDS = ("idle", "queued", "running", "done", "failed", "timeout", "killed")
_TITLE_MAX = 60


@dataclass(frozen=True, slots=True)
class SessionPage:
    """What the registry found for a list.

    Attributes:
        rows: as they are shown, without messages.
        further: offset of the next page, if there is one.
        scanned_out: it stopped looking before it knew whether there are more.
        visibility: what the viewer's sight is bound by; `None` for the operator.
    """

    rows: tuple[dict[str, Any], ...]
    further: int | None = None
    scanned_out: bool = False
    visibility: str | None = None


def kind_of(key: str) -> str:
    """The kind of session that a key names, one of `KINDS`."""
    seen = keys.inspect(key)
    if seen.kind is KeyKind.MAIN:
        return "main"
    if seen.kind is KeyKind.CRON:
        return "cron"
    head = (seen.rest or "").partition(":")[0]
    if head == "hook":
        return "hook"
    if head == "node" or head.startswith("node-"):
        return "node"
    return "group" if seen.chat_type in (ChatType.GROUP, ChatType.CHANNEL) else "other"


def channel_of(key: str) -> str | None:
    """The channel that a conversation's key names, if it does."""
    seen = keys.inspect(key)
    if seen.chat_type is ChatType.UNKNOWN or not seen.rest:
        return None
    head = seen.rest.partition(":")[0]
    return None if head in ("group", "channel", "direct", "dm") else head


def title_of(task: str) -> str | None:
    """A title made of the first line of what a session was asked."""
    line = next((line for line in redact(task).text.splitlines() if line.strip()), "")
    line = " ".join(line.split())
    return (line if len(line) <= _TITLE_MAX else line[: _TITLE_MAX - 1] + "…") or None


def envelope(
    page: SessionPage, rows: Iterable[Mapping[str, Any]], *, limit: int, offset: int, most: int = LIST_BYTES
) -> dict[str, Any]:
    """A list as it is given out: as many of ``rows`` as have ``most`` bytes of JSON."""
    kept: list[Mapping[str, Any]] = []
    total, further, why = 2, page.further, "scan-limit" if page.scanned_out else None
    for row in rows:
        total += json_bytes(row) + 1
        if total > most:
            further, why = offset + len(kept), "byte-limit"
            break
        kept.append(row)
    return {
        "count": len(kept),
        "sessions": kept,
        "hasMore": further is not None,
        "limitApplied": limit,
        **camel_dict({"next_offset": further, "truncation_reason": why}),
        **({} if page.visibility is None else {"visibility": {"mode": page.visibility}}),
    }


def state_version(row: Mapping[str, Any]) -> str:
    """Differs as soon as something in ``row`` does."""
    text = json.dumps(row, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def status_card(row: Mapping[str, Any], now: int) -> str:
    """A session's status as text; ``now`` in milliseconds since the epoch."""
    lines = [f"session {row['key']}", f"agent {row['agentId']}, {row['role']}, depth {row['depth']}, {row['kind']}"]
    state = str(row["status"])
    if row.get("waitingFor"):
        state += f": waits for {row['waitingFor']}"
    elif row.get("pauseReason"):
        state += f": {row['pauseReason']}"
    since = row.get("startedAt")
    if since is not None and row.get("endedAt") is None:
        state += f", for {duration(max(0, now - since))}"
    lines.append(state)
    if row.get("label"):
        lines.append(f"label {json.dumps(row['label'], ensure_ascii=False)}")
    lines.append(f"model {row['model']}" if row.get("model") else "model: none (its agent is a program)")
    if row.get("totalTokens") is not None:
        lines.append(f"tokens {row['totalTokens']}")
    if row.get("queued"):
        lines.append(f"{row['queued']} in its queue")
    below: Sequence[Any] = row.get("childSessions") or ()
    lines.append(f"children: {len(below)} live or fresh")
    if row.get("cwd"):
        lines.append(f"cwd {row['cwd']}")
    return "\n".join(lines)
