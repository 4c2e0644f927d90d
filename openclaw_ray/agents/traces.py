"""Tracebacks as text for people: from the agent's own frames on, and of bounded size."""

from __future__ import annotations

import traceback
from types import TracebackType

from openclaw_ray.agents.text import clean

__all__ = ["TRACEBACK_LIMIT", "agent_traceback"]

TRACEBACK_LIMIT = 8_000
"""Characters; of a longer one the head and the tail are kept, the tail being where it happened."""

_HEAD = TRACEBACK_LIMIT // 4
_OURS = ("openclaw_ray.agents.", "asyncio.", "concurrent.futures.")
_AGENTS_OF_OURS = "openclaw_ray.agents.builtin"


def agent_traceback(exc: BaseException) -> str:
    """The formatted traceback of ``exc`` without the frames that lead to the agent; never raises."""
    try:
        lines = traceback.format_exception(type(exc), exc, _agent_frames(exc.__traceback__))
        text = clean("".join(lines)).rstrip("\n")
    except Exception as broken:  # noqa: BLE001 - other people's exceptions
        return f"{type(exc).__name__} (its traceback could not be formatted: {type(broken).__name__})"
    if len(text) <= TRACEBACK_LIMIT:
        return text
    mark = f"\n  … {len(text) - TRACEBACK_LIMIT} characters left out …\n"
    return text[:_HEAD] + mark + text[-(TRACEBACK_LIMIT - _HEAD - len(mark)) :]


def _agent_frames(trace: TracebackType | None) -> TracebackType | None:
    start = trace
    while start is not None and _is_ours(str(start.tb_frame.f_globals.get("__name__", ""))):
        start = start.tb_next
    return start or trace


def _is_ours(module: str) -> bool:
    return module.startswith(_OURS) and not module.startswith(_AGENTS_OF_OURS)
