"""What ``openclaw-ray map`` writes: a row for each item, and a line about what it took over from earlier tries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openclaw_ray.core.lifecycle import Cause, ResultStatus

if TYPE_CHECKING:
    from openclaw_ray.core.results import Result

__all__ = ["TakenOver", "result_row"]


class TakenOver:
    """What a named map took over from earlier tries, and what it ran itself, in items."""

    def __init__(self) -> None:
        self._reused = self._ran = self._stopped = self._untried = 0

    def count(self, result: Result[Any]) -> None:
        """One more result."""
        if result.reused:
            self._reused += 1
        elif result.error is not None and result.error.cause == Cause.NOT_TRIED:
            self._untried += 1
        elif result.status is ResultStatus.CANCELLED:
            self._stopped += 1
        else:
            self._ran += 1

    def line(self) -> str:
        """All of it, for people."""
        parts = [f"reused {self._reused:,}", f"ran {self._ran:,}"]
        if self._stopped:
            parts.append(f"stopped {self._stopped:,}")
        if self._untried:
            parts.append(f"left out {self._untried:,} never tried (run them without --failed-only)")
        return ", ".join(parts)


def result_row(index: int, item: str, result: Result[Any], *, tracebacks: bool = True) -> dict[str, object]:
    """The row of one item; ``textTruncated`` is in it only if the text was cut, ``reused`` only for an earlier try's.

    Args:
        index: position of the item, from 0.
        item: the item itself.
        result: its outcome.
        tracebacks: whether an error keeps the traceback of the agent's code.
    """
    error = result.error.to_json() if result.error else None
    if error is not None and not tracebacks:
        error.pop("traceback", None)
    row: dict[str, object] = {
        "index": index,
        "input": item,
        "status": result.status.value,
        "text": result.text,
        "error": error,
        "runId": result.run_id or None,
        "sessionKey": result.session_key or None,
        "runtimeMs": result.runtime_ms,
    }
    if result.text_truncated:
        row["textTruncated"] = True
    if result.reused:
        row["reused"] = True
    return row
