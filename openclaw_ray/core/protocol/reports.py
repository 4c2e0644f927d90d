"""What a stop did, for those who did not ask for it but waited for what it has ended (PROTOCOL.md 6.7).

1. A run that was asked for by a message notes the mark that it ended under.
2. A mark with such a run below it stays in the journal after its asker has the report.
3. Until the stop is complete the report says so; what is still open counts as failed in it.
"""

from __future__ import annotations

from dataclasses import replace

from openclaw_ray.core import lineage
from openclaw_ray.core.protocol.marks import Marks
from openclaw_ray.core.protocol.records import Mark, thaw
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import StopReport, StopRow

__all__ = ["report_of"]


def report_of(s: State, marks: Marks, run_id: str) -> tuple[StopReport | None, bool]:
    """The report of the stop that ended a run, and whether that stop is complete; `None` if no stop did.

    Raises:
        KeyError: there is no such run.
    """
    run = s.journaled_run(run_id)
    if run is None:
        raise KeyError(run_id)
    seq = abs(run.mark or lineage.bound_by_mark(s.runs, run))
    mark = s.marks.get(seq)
    if mark is None:
        data = s.journal.get("marks", seq) if seq else None
        return (None, True) if data is None else (marks.report(thaw(Mark, data)), True)
    report = marks.report(mark)
    rows = tuple(StopRow(s.runs[run].session, run, "failed") for run in sorted(mark.open) if run in s.runs)
    return replace(report, failed=report.failed + len(rows), rows=(*report.rows, *rows)), mark.done
