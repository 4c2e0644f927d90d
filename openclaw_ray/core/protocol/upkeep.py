"""Upkeep of the ledger: records that are old enough to go, and runs that nothing can end any more (SPEC.md H2, H4).

1. Each record is looked at anew in the step that drops it: only what has left memory, is ended, and past its time goes.
   What a named map still needs stays.
2. A run that nothing can end any more is ended as ``lost`` (`orphans`): what the sweeper would do after a minute, at
   once.
3. Without ``apply`` it is only said what would be done. Done again, it finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openclaw_ray.core.ledger import LOST_KEPT, TASK_KEPT
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.orphans import Orphans
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State, table_of

__all__ = ["Done", "Upkeep"]


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done, or would be: ``drop`` a record, or ``end`` a run."""

    action: str
    run: str
    session: str
    why: str


class Upkeep:
    """Maintenance."""

    def __init__(self, state: State, orphans: Orphans) -> None:
        self.s = state
        self.orphans = orphans

    def reconcile(self, *, apply: bool) -> list[Done]:
        """End what nothing else can end (2)."""
        done = []
        for run in list(self.s.runs.values()):
            why = "" if run.terminal or run.route == "driver" else self.orphans.unfounded(run)
            if why:
                done.append(Done("end", run.id, run.session, why))
                if apply:
                    self.orphans.end(run, why)
        return done

    def drop(self, run_ids: Sequence[str], *, apply: bool) -> list[Done]:
        """Drop the records of these runs if their time is over (1)."""
        found = (None if run_id in self.s.runs else self.s.journaled_run(run_id) for run_id in run_ids)
        done = (None if run is None else self.drop_record(run, apply=apply) for run in found)
        return [each for each in done if each is not None]

    def drop_record(self, run: Run, *, apply: bool) -> Done | None:
        """Drop the record of one run if its time is over; `None` if it is not (1)."""
        s = self.s
        if run.id in s.runs or not self._over(run):
            return None
        if apply:
            s.drop(table_of(run), run.id)
            if run.mark and abs(run.mark) not in s.marks:
                s.drop("marks", abs(run.mark))
        return Done("drop", run.id, run.session, f"{run.state.value}, past its retention")

    def _over(self, run: Run) -> bool:
        if not run.terminal or run.ended is None or run.item is not None:
            return False
        kept = LOST_KEPT if run.state is RunState.LOST else TASK_KEPT
        return run.ended + kept <= self.s.clock.wall()
