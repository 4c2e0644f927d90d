"""What several messages are made of: payloads, outcomes, the clean check, transcript rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openclaw_ray.core.compact import compact
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.results import ErrorInfo

__all__ = [
    "TEXT_LIMIT",
    "VALUE_LIMIT",
    "Archive",
    "Branch",
    "CleanCheck",
    "Outcome",
    "Payload",
    "Row",
]


VALUE_LIMIT = 64 * 1024
"""Bytes of pickle up to which a value or an input is journaled (DESIGN.md 7)."""
TEXT_LIMIT = 102_400
"""Bytes of UTF-8 at which a result text is cut (SPEC.md F3)."""


@compact
@dataclass(frozen=True, slots=True)
class Payload:
    """A Python object on its way: its pickle up to `VALUE_LIMIT`, else an opaque reference.

    Attributes:
        data: the pickle, journaled; `None` if it is larger.
        ref: opaque reference (an ObjectRef) to a larger one; owned by the process that made it, never journaled.
        size: bytes of the pickle.
    """

    data: bytes | None = None
    ref: Any = None
    size: int = 0


@compact
@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended, as its process saw it.

    Attributes:
        state: a terminal `RunState`; the registry's verdict may differ.
        text: text handed up, cut at `TEXT_LIMIT` bytes; `None` if there is none.
        value: pickle of the returned object if ≤ `VALUE_LIMIT`.
        held: bytes of a larger value that stays in the process until it is taken; 0 if there is none.
        error: why it did not succeed.
    """

    state: RunState
    text: str | None = None
    text_truncated: bool = False
    missing: bool = False
    value: bytes | None = None
    held: int = 0
    error: ErrorInfo | None = None


@compact
@dataclass(frozen=True, slots=True)
class CleanCheck:
    """What the check after a turn found left over; ``reasons`` empty means clean (PROTOCOL.md 7.6)."""

    reasons: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """True if the process may be used again."""
        return not self.reasons


@compact
@dataclass(frozen=True, slots=True)
class Row:
    """One transcript row. ``key`` (an announce key) or (sessionId, seq) makes its append idempotent.

    Attributes:
        session_id: whose transcript.
        activation: number of the activation that wrote it; rows of a lower one are refused after a newer one began.
        seq: position within that activation, from 0; -1 for rows that only have a key.
        role: ``user``, ``assistant``, ``tool``, ``system``.
        text: the content.
        at: wall-clock seconds.
        key: idempotency key, or `None`.
        meta: small JSON-ready dict, e.g. provenance.
    """

    session_id: str
    activation: int
    seq: int
    role: str
    text: str
    at: float
    key: str | None = None
    meta: dict[str, Any] | None = None


@compact
@dataclass(frozen=True, slots=True)
class Archive:
    """In line with transcript rows: rename the transcript after those of before (SPEC.md G3).

    Attributes:
        session_id: whose transcript.
        at: wall-clock seconds, for the file's name.
        files: its attachments are to be removed, too.
    """

    session_id: str
    at: float
    files: bool = False


@compact
@dataclass(frozen=True, slots=True)
class Branch:
    """In line with transcript rows: begin a transcript with a copy of what another one has so far (SPEC.md B1).

    Its place in the line is the point of the branch. The copy appears as a whole or not at all, and is made once.

    Attributes:
        session_id: whose transcript begins so; of the same agent.
        source: session id of the one that is copied.
    """

    session_id: str
    source: str
