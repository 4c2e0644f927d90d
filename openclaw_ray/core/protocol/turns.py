"""Turns while they run: started, waiting, resumed, progress; and the registry's clock over them (PROTOCOL.md 5).

1. `Paused` gives the slot back and keeps the process; `Resume` queues for a slot ahead of new starts.
2. The deadline is first start + timeout, pauses included, queue time before the first start excluded. The registry
   alone tells the time; others report durations.
3. At the deadline the turn is cancelled by a control call; after a grace its process is asked to end itself if it still
   runs it, and 250 ms later the pool kills it. Children are not stopped.
"""

from __future__ import annotations

from openclaw_ray.core.lifecycle import PauseReason, RunState
from openclaw_ray.core.metrics import BLOCKED
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import (
    Blocked,
    Cancel,
    DieIf,
    Kill,
    MapDone,
    Paused,
    Progress,
    ReportAsk,
    Resume,
    Rows,
    Started,
    Stop,
    UsageAdded,
)
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State

__all__ = ["DIE_IF_ANSWER", "TIMEOUT_GRACE", "Turns"]

TIMEOUT_GRACE = 1.0
"""Most seconds that a timed out turn gets to end by itself; less if ``stopGraceSeconds`` is less."""
DIE_IF_ANSWER = 0.25
"""Seconds that an actor has to end itself before the pool kills it (PROTOCOL.md 6.6)."""


class Turns:
    """What running turns report, and what time does to them."""

    def __init__(self, state: State, down: Down, ending: Ending) -> None:
        self.s = state
        self.down = down
        self.ending = ending

    # ------------------------------------------------------------------ reports

    def started(self, event: Started) -> None:
        """The turn runs: count its deadline from when it really began (2)."""
        run = self._current(event.run, event.activation)
        if run is None:
            return
        run.confirmed = True
        run.resend_at = None
        if run.turns == 1 and run.timeout > 0:
            run.deadline = self.s.clock.mono() - event.elapsed + run.timeout
            self.s.at(run.deadline, run)
            run.started = self.s.clock.wall() - event.elapsed
        if event.heard:
            self.ending.consumed_in_turn(run, over=False)
        self.ending.birth.tell_bound(run)
        self.s.touch(run)

    def paused(self, event: Paused) -> None:
        """The turn waits for children (1)."""
        run = self._current(event.run, event.activation)
        if run is None or run.state is not RunState.RUNNING:
            return
        run.confirmed = True
        run.resend_at = None
        self.ending.release_slot(run)
        run.state = RunState.PAUSED
        run.pause = PauseReason.WAITING
        self.ending.limiting.paused(run)
        self.s.touch(run)
        self.s.event("run", run, reason="waiting")

    def resume(self, event: Resume) -> None:
        """The wait is over: queue for a slot, ahead of new starts (1)."""
        run = self._current(event.run, event.activation)
        if run is not None and run.state is RunState.PAUSED:
            run.resuming, run.wait = True, event.wait
            self.s.touch(run)
            self.s.enqueue(run, resume=True)

    def rows(self, event: Rows) -> None:
        """Rows flushed while the turn runs."""
        run = self._current(event.run, event.activation)
        if run is not None:
            for row in event.rows:
                self.s.row(run.agent, row)

    def progress(self, event: Progress) -> None:
        """The newest progress; kept for the completion of a run that does not end by itself."""
        run = self._current(event.run, event.activation)
        if run is not None:
            run.progress = (event.text, event.done, event.total)
            self.s.touch(run)
            self.s.event("progress", run, text=event.text, done=event.done, total=event.total)

    def usage(self, event: UsageAdded) -> None:
        """Add to the run's usage."""
        run = self._current(event.run, event.activation)
        if run is not None:
            run.usage = run.usage.plus(event.usage)
            self.s.touch(run)

    def blocked(self, event: Blocked) -> None:
        """Count a call that was denied, while somebody collects."""
        run = self._current(event.run, event.activation)
        if run is not None and self.s.tally is not None:
            self.s.tally.count(BLOCKED, event.tool, event.rule)

    def map_done(self, event: MapDone) -> None:
        """One summary row for a map (PROTOCOL.md 4.6), idempotent by its id, and by the try's if it has a name."""
        if event.claim:
            self.s.release_claims(claim=event.claim)
        if not event.summary:
            return
        session_key = next(
            (x.key for x in self.s.sessions.values() if self.ending.birth.receiver_of(x.key) == event.receiver), ""
        )
        if session_key:
            session = self.s.sessions[session_key]
            key = f"map:v1:{event.map_id}" + (f":{event.claim}" if event.claim else "")
            self.s.host_row(session, "system", event.summary, key=key)

    def _current(self, run_id: str, activation: str) -> Run | None:
        run = self.s.runs.get(run_id)
        return run if run is not None and self.ending.is_current(run, activation) else None

    # ------------------------------------------------------------------ time

    def due(self, now: float) -> None:
        """All that time does to runs: deadlines, graces, repeats of starts and announces (2, 3)."""
        for run in self.s.due_runs(now):
            if run.deadline is not None and run.deadline <= now and not run.expired:
                self._expire(run, now)
            if run.grace_at is not None and run.grace_at <= now:
                run.grace_at = None
                self._ask_to_die(run, now)
            elif run.kill_at is not None and run.kill_at <= now:
                run.kill_at = None
                self._fence_and_kill(run)
            if run.resend_at is not None and run.resend_at <= now:
                run.resend_at = None
                self._ask(run)
            if run.redeliver_at is not None and run.redeliver_at <= now:
                self.ending.again(run)

    def _ask(self, run: Run) -> None:
        """Nothing was heard of it since its grant: does its actor know it? (PROTOCOL.md 3.4)"""
        self.s.effect(ReportAsk(run.actor))

    def _expire(self, run: Run, now: float) -> None:
        run.expired = True
        self.s.touch(run)
        if not run.in_turn:
            run.outcome = self.ending.ended_by(run, RunState.TIMED_OUT)
            self.ending.finish(run, RunState.TIMED_OUT)
            return
        self.down.tell(run.activation, Cancel(run.id, run.activation, "timeout"))
        self.s.effect(Stop(run.actor, run.id, run.activation, "timeout", 0))
        if run.grace_at is None and run.kill_at is None:
            run.grace_at = now + min(TIMEOUT_GRACE, self.s.limits.stop_grace_seconds)
            self.s.at(run.grace_at, run)

    def _ask_to_die(self, run: Run, now: float) -> None:
        run.forced = True
        run.kill_at = now + DIE_IF_ANSWER
        self.s.at(run.kill_at, run)
        self.s.touch(run)
        self.s.effect(DieIf(run.actor, run.id))

    def _fence_and_kill(self, run: Run) -> None:
        """The actor did not end itself: raise its epoch, so that nothing from it counts, and have it killed."""
        actor = self.s.actors.get(run.actor)
        if actor is not None:
            actor.epoch += 1
            actor.kill_why = actor.kill_why or "did not end within its grace"
            self.s.touch(actor)
            self.s.effect(Kill(actor.id, "did not end within its grace"))
