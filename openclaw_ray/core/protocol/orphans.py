"""Orphans: un-ended runs that nothing can end any more (SPEC.md H3, H4).

1. A run without an executor (`executors`) is an orphan. No rule here makes one; a record that was lost, or a fault of
   ours, would. After 60 seconds without one it is ended ``lost``, cause ``orphaned``; whoever waits for it hears so.
2. One that a start has not decided on is ended in the same way once it is stale: that start is not coming.
3. A suspended delivery whose time is over is found on the same way (`delivery`).
4. The sweeper looks at some runs a second, in their order, so that no step waits for all of them.
"""

from __future__ import annotations

from openclaw_ray.core.lifecycle import Cause, RunState
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.executors import Executor, executor_of, is_old
from openclaw_ray.core.protocol.messages import Outcome
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import ErrorInfo

__all__ = ["LOOK_AT", "MISSING_FOR", "Orphans"]

MISSING_FOR = 60.0
"""Seconds without an executor after which a run is ended (1)."""
LOOK_AT = 256
"""Runs that one look of the sweeper takes (4)."""


class Orphans:
    """The sweeper of what is left over."""

    def __init__(self, state: State, ending: Ending) -> None:
        self.s = state
        self.ending = ending
        self._missing: dict[str, float] = {}
        self._to_look_at: list[str] = []

    def sweep(self) -> None:
        """Look at the next runs, and end those whose time is over (1-3)."""
        s = self.s
        if s.recovering:
            return
        if not self._to_look_at:
            self._to_look_at = list(s.runs)
            self._missing = {run: since for run, since in self._missing.items() if run in s.runs}
        now = s.clock.mono()
        look, self._to_look_at = self._to_look_at[:LOOK_AT], self._to_look_at[LOOK_AT:]
        for run_id in look:
            run = s.runs.get(run_id)
            if run is None or run.route == "driver":
                continue
            if run.terminal:
                self.ending.expire_suspended(run)
                continue
            why = self.why_over(run, now)
            if why:
                self.end(run, why)

    def why_over(self, run: Run, now: float) -> str:
        """Why an un-ended run is to be ended now; empty if it is not."""
        executor = executor_of(self.s, run)
        if executor is Executor.HELD:
            return "a start that was to recover it never did" if is_old(self.s, run) else ""
        if executor is not Executor.NONE:
            self._missing.pop(run.id, None)
            return ""
        since = self._missing.setdefault(run.id, now)
        return self.unfounded(run) if now - since >= MISSING_FOR else ""

    def unfounded(self, run: Run) -> str:
        """What is missing of a run that has no executor; empty if it has one."""
        if executor_of(self.s, run) is not Executor.NONE:
            return ""
        if run.session not in self.s.sessions:
            return f"its session {run.session} is not known"
        if run.actor:
            return f"its process {run.actor} is not known"
        return "it waits for nothing that is known"

    def end(self, run: Run, why: str) -> None:
        """End it; nobody knows what has become of it."""
        s = self.s
        self._missing.pop(run.id, None)
        text = f"nobody knows its outcome: {why}"
        run.outcome = Outcome(RunState.LOST, error=ErrorInfo("Orphaned", text, cause=Cause.ORPHANED.value))
        run.interrupted = ""
        if run.session not in s.sessions:
            self._end_alone(run)
            return
        if run.actor:
            self.ending.leave_actor(run, None, keep=False)
        self.ending.finish(run, RunState.LOST)

    def _end_alone(self, run: Run) -> None:
        """Its session's record is gone: one that stands in for it is needed to end it as any other."""
        s = self.s
        stand_in = Session(
            run.session, run.session_id, run.agent, run.depth, run.requester, run.root, "leaf", run.created
        )
        stand_in.run = run.id
        s.sessions[run.session] = stand_in
        if run.actor:
            self.ending.leave_actor(run, s.actors.get(run.actor), keep=False)
        self.ending.finish(run, RunState.LOST)
