"""The row that a tool call leaves in the transcript: what was called, how it ended, bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from openclaw_ray.agents.text import bounded, clean, describe, short_repr
from openclaw_ray.agents.tools.tool import Caller

__all__ = ["note_call"]

_VALUE = 200
_TEXT = 2_000


def note_call(caller: Caller, tool: str, given: Mapping[str, Any], status: str, said: Any) -> None:
    """Add the row of a call; nothing where there is no transcript.

    Args:
        given: its parameters; each is cut to 200 characters.
        status: of its result, ``error`` for what it raised, ``cancelled`` if the turn ended first.
        said: a text, or the result's fields; cut to 2,000 characters.
    """
    if not caller.keeps_transcript:
        return
    params = {str(name): _short(value) for name, value in given.items()}
    if isinstance(said, Mapping) and set(said) == {"text"}:
        said = said["text"]
    text = bounded(said, _TEXT) if isinstance(said, str) else describe(said, 0, _TEXT)
    row = {"tool": tool, "params": params, "status": status, "text": text}
    caller.port.append("tool", clean(json.dumps(row, ensure_ascii=False)))


def _short(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return bounded(value, _VALUE) if isinstance(value, str) else short_repr(value, _VALUE)
