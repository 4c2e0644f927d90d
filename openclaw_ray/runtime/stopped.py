"""What an asker is told of a stop that ended what it waited for: the whole report, not only that its own run is over.

1. The run of the question is cancelled: the registry knows under which stop (`openclaw_ray.core.protocol.reports`).
2. That stop may go on below; it is waited for, for as long as processes that do not listen have, and no longer.
3. Where no report can be had (the runtime is closing, or the agent itself gave up) it is a plain `RunCancelled`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.errors import OpenClawRayError, Stopped
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import Result, StopReport

if TYPE_CHECKING:
    from openclaw_ray.runtime.looking import RuntimeView

__all__ = ["answered"]

_BESIDE_GRACE = 3.0


def answered(view: RuntimeView, result: Result[Any]) -> Result[Any]:
    """The result of a question if it is ok.

    Raises:
        Stopped: somebody stopped it; with the report.
        RunFailed, RunTimedOut, RunCancelled, RunLost: it ended otherwise.
    """
    if result.status is ResultStatus.CANCELLED:
        report = _report(view, result.run_id)
        if report is not None:
            raise Stopped(report, result.to_json())
    return result.raise_for_status()


def _report(view: RuntimeView, run_id: str) -> StopReport | None:
    from ray.exceptions import RayError

    until = time.monotonic() + view._limits.stop_grace_seconds + _BESIDE_GRACE
    try:
        seq = view._query("last_event")
        while True:
            report, complete = view._query("stop_report", run_id)
            left = until - time.monotonic()
            if report is None or complete or left <= 0:
                found: StopReport | None = report
                return found
            try:
                for event in view._events_after(seq, min(1.0, left)):
                    seq = event.seq
            except (RayError, ValueError):  # the hub is away: the registry is asked again without it
                time.sleep(0.1)
    except (OpenClawRayError, KeyError):
        return None
