"""Stop marks on their way to completion: one run after the other, then the report (PROTOCOL.md 6.7).

1. A mark is open for the runs that were un-ended under it; each that ends is noted with how it ended.
2. With the last the stop is complete: the report counts from the journal and is said until it is got.
"""

from __future__ import annotations

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.keeping import Keeping
from openclaw_ray.core.protocol.messages import Stopped
from openclaw_ray.core.protocol.records import Mark, Run
from openclaw_ray.core.results import StopReport, StopRow

__all__ = ["Marks"]


class Marks(Keeping):
    """The books of the stops."""

    def _in_marks(self, run: Run) -> None:
        for mark in list(self.s.marks.values()):
            if run.id in mark.open:
                self.mark_progress(mark, run)

    def mark_progress(self, mark: Mark, run: Run) -> None:
        """One run under a mark has ended; the stop is complete with the last (PROTOCOL.md 6.7)."""
        s = self.s
        mark.open.discard(run.id)
        if run.route == "ask" and not run.mark:
            run.mark = -mark.seq if mark.alone else mark.seq
        word = "forced" if run.forced else "stopped"
        if run.state is RunState.LOST:
            word = "failed"  # nobody can say that it has ended
        elif run.state is not RunState.CANCELLED:
            word = "finished"
        mark.rows = (*mark.rows, (run.session, run.id, word))
        s.touch(mark)
        if not mark.open:
            self.complete(mark)

    def complete(self, mark: Mark) -> None:
        """Say the report; it stays in the journal until it is got."""
        s = self.s
        mark.done = True
        s.touch(mark)
        asker = self.asker_of(mark)
        if asker:
            self.down.tell(asker, Stopped(mark.stop, self.report(mark)))
        else:
            s.forget_mark(mark.seq)

    def asker_of(self, mark: Mark) -> str:
        """Who asked for the stop: a client, or the running turn of a session process."""
        found = self.s.receivers.get(mark.client)
        if found is not None:
            return found.id
        return next((r.id for r in self.s.receivers.values() if r.client == mark.client), "")

    def report(self, mark: Mark) -> StopReport:
        """The counts, from the journal alone."""
        words = [word for _, _, word in mark.rows]
        rows = tuple(StopRow(session, run, word) for session, run, word in mark.rows)
        return StopReport(
            mark.key,
            words.count("stopped") + words.count("forced"),
            words.count("forced"),
            mark.finished + words.count("finished"),
            words.count("failed"),
            rows,
        )
