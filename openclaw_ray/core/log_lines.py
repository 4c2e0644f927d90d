"""Lines of sessions' logs with ``ray.logs: "json"``: a JSON object each, which says of which session, run and tree it
is. Pure.

1. A record has ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, ``sessionKey``, ``runId``, ``rootKey``.
2. What a program or its commands print has no level and comes from the logger ``output``; it has the time at which its
   turn ended. A line that is such a record already stays as it is.
3. For people a record is its time, level, logger and message in one line; tracebacks follow in lines of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

__all__ = ["OUTPUT", "LogOf", "as_records", "as_text", "lines_of", "record"]

OUTPUT = "output"
"""The logger of what was printed."""
_FIELDS = ("time", "logger", "message", "sessionKey")


@dataclass(frozen=True, slots=True)
class LogOf:
    """Whose log it is: session key, run id, session key of the tree's root."""

    session_key: str = ""
    run_id: str = ""
    root_key: str = ""


def record(of: LogOf, at: float, message: str, *, logger: str = OUTPUT, level: str | None = None) -> bytes:
    """One line; ``at``: seconds since the epoch."""
    fields: dict[str, Any] = {"time": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")}
    if level is not None:
        fields["level"] = level
    fields |= {"logger": logger, "message": message, "sessionKey": of.session_key}
    if of.run_id:
        fields["runId"] = of.run_id
    fields["rootKey"] = of.root_key
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def as_records(lines: Iterable[bytes], of: LogOf, at: float) -> Iterator[bytes]:
    """All of them as records (2); empty lines are left out."""
    for line in lines:
        if _fields_of(line) is not None:
            yield line if line.endswith(b"\n") else line + b"\n"
        elif text := line.decode("utf-8", "replace").rstrip("\r\n"):
            yield record(of, at, text)


def as_text(line: bytes) -> bytes:
    """A line for people (3)."""
    fields = _fields_of(line)
    if fields is None:
        return line
    message = str(fields["message"])
    if fields["logger"] != OUTPUT:
        message = f"{fields['time']} {fields.get('level', '')} {fields['logger']}: {message}"
    return message.encode("utf-8", "backslashreplace") + b"\n"


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines from pieces, each with its end; the last one may have none."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _fields_of(line: bytes) -> dict[str, Any] | None:
    """The fields of a record; `None` if the line is none."""
    if not line.startswith(b'{"time":'):
        return None
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and all(name in fields for name in _FIELDS) else None
