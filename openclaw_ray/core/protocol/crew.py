"""The session actors as the registry sees them: hello, death, adoption, retirement (PROTOCOL.md 3.4, 7.1, 7.2, 7.5).

1. An actor is granted only after its own `Hello`, repeated until a registry answers; one that nobody wants is told to
   exit.
2. A death notice ends what the actor ran: cancelled under a mark, timed out past its deadline, else failed. An announce
   that it was to call and that was not confirmed is said over the downlink at once.
3. After a registry crash every actor is asked for a report, beside the steps; until all have answered, died, or been
   silent for `ADOPT_WITHIN`, admission answers "recovering". A report unanswered is unknown, not dead.
4. A run that its actor does not know is sent to that same actor again. An actor that does not answer is not granted
   again.
5. An actor that holds resources is never kept for later, and one that is still to be placed is withdrawn as soon as no
   run waits for it: others may want what it asks for, and an autoscaler would bring nodes for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from openclaw_ray.core import lineage
from openclaw_ray.core.death import Death, tell
from openclaw_ray.core.errors import CannotPlace
from openclaw_ray.core.lifecycle import Cause, RunState
from openclaw_ray.core.placement import amounts
from openclaw_ray.core.protocol.birth import ASK_AFTER, Birth
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.locked_out import locked_out
from openclaw_ray.core.protocol.messages import (
    DropValue,
    Exit,
    Grow,
    Hello,
    Outcome,
    Refused,
    Report,
    ReportAsk,
    Start,
    Stop,
)
from openclaw_ray.core.protocol.records import Actor, Run
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import ErrorInfo

__all__ = ["ADOPT_WITHIN", "Crew"]

ADOPT_WITHIN = 2.0
"""Seconds that a new registry waits for reports before it serves; the silent stay unknown."""
STOPPED_AGAIN = 0.2
"""Seconds after which an actor is asked once more whether it knows of a stop."""
GROW_WITHIN = 90.0
"""Seconds after which an actor that never said Hello is given up."""
LENT_FOR = 120.0
"""Seconds after which an actor that was lent and not given back is ended."""


class Crew:
    """Actors coming, going and found again."""

    def __init__(self, state: State, down: Down, birth: Birth, ending: Ending) -> None:
        self.s = state
        self.down = down
        self.birth = birth
        self.ending = ending
        self.awaited: set[str] = set()
        self.adopt_until = 0.0

    # ------------------------------------------------------------------ coming

    def hello(self, event: Hello) -> bool:
        """An actor is there (1); False if nobody wants it."""
        s = self.s
        actor = s.actors.get(event.actor)
        if actor is None:
            s.effect(Exit(event.actor, "nobody wants it"))
            return False
        actor.handle = event.handle if event.handle is not None else actor.handle
        actor.known = True
        if actor.state == "growing":
            actor.state = "idle"
            actor.node, actor.pid = event.node, event.pid
            actor.idle_at = s.clock.mono()
            s.touch(actor)
            s.event("pool", state="actor ready", node=event.node, pid=event.pid)
        return True

    def growth_failed(self, actor_id: str, why: str, *, has: Mapping[str, float] | None = None) -> None:
        """An actor could not be created. ``has``: what nodes have of what it needs, if none can ever hold it: the runs
        that wait for such a one are refused."""
        s = self.s
        actor = s.actors.get(actor_id)
        if actor is None or actor.state != "growing":
            return  # it has said Hello since: a word about an earlier try
        del s.actors[actor_id]
        s.drop("actors", actor_id)
        s.event("warning", text=f"session process not created: {why}"[:1000])
        if has is not None:
            queued = [s.runs[each.run] for each in s.queue.waiting() if not each.resume]
            self._cannot_place([run for run in queued if run.klass[3] == actor.resources], has)

    def growth_waits(self, actor_id: str, total: Mapping[str, float]) -> None:
        """An actor is still not placed; runs that would wait for that for ever end (`locked_out`)."""
        actor = self.s.actors.get(actor_id)
        if actor is not None and actor.state == "growing":
            runs, held = locked_out(self.s, actor.resources, total)
            self._cannot_place(runs, total, held)

    def _cannot_place(self, runs: list[Run], has: Mapping[str, float], held: Mapping[str, float] | None = None) -> None:
        """These runs never get a process that holds what they need."""
        for run in runs:
            needs = {**has, **amounts(run.klass[3])}  # the name of a node is no amount of the agent's
            path = f"agents.entries.{run.agent}.ray" if run.klass[3] else "ray.pool.scheduling"
            error = CannotPlace(needs, has, path, dict(held or {}))
            run.outcome = failed(Cause.CANNOT_PLACE, "CannotPlace", str(error))
            self.ending.finish(run, RunState.FAILED)

    def withdraw(self) -> None:
        """End the actors that hold something, or are to, and that nobody waits for any more (5)."""
        s = self.s
        holding = [a for a in s.actors.values() if a.state in ("growing", "idle") and amounts(a.resources)]
        if not holding:
            return
        wanted = Counter(s.runs[each.run].klass[3] for each in s.queue.waiting() if not each.resume)
        for actor in sorted(holding, key=lambda a: a.state == "growing"):  # one that is there is kept before another
            if wanted[actor.resources] > 0:
                wanted[actor.resources] -= 1
            elif actor.state == "idle":
                self.birth.retire_actor(actor, "nobody waits for what it holds")
            else:
                del s.actors[actor.id]
                s.drop("actors", actor.id)
                s.effect(Exit(actor.id, "nobody waits for what it is to hold"))

    # ------------------------------------------------------------------ going

    def died(self, actor_id: str, detail: str | Death) -> None:
        """The death notice of an actor (2)."""
        death = detail if isinstance(detail, Death) else tell(detail)
        s = self.s
        actor = s.actors.pop(actor_id, None)
        self.awaited.discard(actor_id)
        if actor is not None:
            s.drop("actors", actor_id)
            s.forget_client(actor_id)
            self.down.close(actor_id)
            run = s.runs.get(actor.run)
            if run is not None and run.in_turn and run.actor == actor_id:
                self._end_of(run, actor, death)
        for other in list(s.runs.values()):
            if other.held_by == actor_id:
                other.held_by = ""
                s.touch(other)
                self.ending.retire_if_done(other)
        self._say_for(actor_id)

    def _say_for(self, actor_id: str) -> None:
        """What a dead process was to announce, and may not have, is said at once (2)."""
        for run in list(self.s.runs.values()):
            if run.called_by == actor_id and run.redeliver_at is not None:
                self.ending.again(run)

    def _end_of(self, run: Run, actor: Actor, death: Death) -> None:
        """The run that died with its process."""
        s = self.s
        if lineage.bound_by_mark(s.runs, run):
            state = RunState.CANCELLED
            run.outcome = self.ending.ended_by(run, state)
        elif run.expired:
            state = RunState.TIMED_OUT
            run.outcome = self.ending.ended_by(run, state)
        else:
            state = RunState.FAILED
            where = f"session process {actor.pid or actor.id}" + (f" on node {actor.node[:8]}" if actor.node else "")
            text = f"{where} died in the middle of its turn: {death.text}"
            run.outcome = failed(Cause.PROCESS_DIED, "ProcessDied", text, death)
        self.ending.leave_actor(run, None, keep=False)
        self.ending.finish(run, state)

    def due(self, now: float) -> None:
        """Idle actors end after ``pool.idleSeconds``; a growth that never arrives is given up."""
        s = self.s
        keep = s.limits.pool_prewarm if s.limits.pool_prewarm is not None else 2 * s.cpus
        idle = sorted((a for a in s.actors.values() if a.state == "idle"), key=lambda a: a.idle_at)
        for actor in idle[: max(0, len(idle) - keep)]:
            if now - actor.idle_at >= s.limits.pool_idle_seconds:
                self.birth.retire_actor(actor, "idle")
        for actor in [a for a in s.actors.values() if a.state == "lent" and now - a.idle_at >= LENT_FOR]:
            self.give_back(actor.id, "lent and not given back")
        self.withdraw()
        for actor in [a for a in s.actors.values() if a.state == "growing"]:
            # one that is to hold something may wait for long for others to give it back
            if now - actor.born_at >= GROW_WITHIN and not amounts(actor.resources):
                s.effect(Exit(actor.id, "it never said hello"))
                self.growth_failed(actor.id, f"no sign of it within {GROW_WITHIN:g} s")

    # ------------------------------------------------------------------ lending

    def lend(self, who: str) -> Actor | None:
        """An idle actor to try code on; it is granted to nobody until it is given back. `None` if none is idle.

        The same ``who`` gets the same one: the answer may have been lost on its way.
        """
        for actor in self.s.actors.values():
            if actor.state == "lent" and actor.lent_to == who:
                return actor
        idle = [a for a in self.s.actors.values() if a.state == "idle" and a.handle is not None]
        if not idle:
            return None
        actor = min(idle, key=lambda a: a.klass is not None)
        actor.state, actor.lent_to = "lent", who
        actor.idle_at = self.s.clock.mono()
        return actor

    def give_back(self, actor_id: str, why: str) -> None:
        """The end of that; with a reason why it is not to be used again, the actor is ended."""
        actor = self.s.actors.get(actor_id)
        if actor is None or actor.state != "lent":
            return
        actor.state = "idle"
        actor.idle_at = self.s.clock.mono()
        if why:
            self.birth.retire_actor(actor, why)

    # ------------------------------------------------------------------ asking

    def refused(self, event: Refused) -> None:
        """The actor did not accept a start: under a mark it is over, else the run fails with the reason."""
        s = self.s
        run = s.runs.get(event.run)
        if run is None or not self.ending.is_current(run, event.activation):
            return
        if not self._over_unstarted(run):
            run.outcome = failed(
                Cause.START_FAILED, "StartRefused", f"the session process refused the start: {event.why}"
            )
            self.ending.refused_with(run, event.why)
            self.ending.leave_actor(run, s.actors.get(run.actor), keep=False)
            self.ending.finish(run, RunState.FAILED)

    def _over_unstarted(self, run: Run) -> bool:
        """End a run whose turn has not begun and never will, if a stop or its deadline has reached it."""
        if lineage.bound_by_mark(self.s.runs, run):
            state = RunState.CANCELLED
        elif run.expired:
            state = RunState.TIMED_OUT
        else:
            return False
        run.outcome = self.ending.ended_by(run, state)
        self.ending.leave_actor(run, self.s.actors.get(run.actor), keep=True)
        self.ending.finish(run, state)
        return True

    def begin_adoption(self) -> None:
        """Ask every actor what it runs (3)."""
        s = self.s
        now = s.clock.mono()
        self.awaited = {a.id for a in s.actors.values() if a.state not in ("growing", "dying")}
        self.adopt_until = now + ADOPT_WITHIN
        # also without an actor to hear of: what follows from the records is to be said again
        s.recovering = bool(self.awaited or s.runs or s.marks)
        for actor in s.actors.values():
            actor.born_at = actor.idle_at = now
            if actor.state == "dying":
                s.effect(Exit(actor.id, "on its way to be ended"))
            elif actor.state != "growing":
                s.effect(ReportAsk(actor.id))

    def pool_met(self, owned: Iterable[str], values: Iterable[str] = ()) -> None:
        """What a pool owns, told when this registry or that pool is new: end what nobody knows, ask again for what was
        to grow, drop the values that nobody will take (a call to either may have been lost with its caller or callee).

        ``values``: runs whose large values the pool holds.
        """
        s = self.s
        there = set(owned)
        for actor_id in sorted(there - s.actors.keys()):
            s.effect(Exit(actor_id, "nobody wants it"))
        for actor in s.actors.values():
            if actor.state == "growing" and actor.id not in there:
                actor.born_at = s.clock.mono()
                s.effect(Grow((actor.id,), actor.resources))
        for run_id in values:
            run = s.runs.get(run_id)
            if run is None or not run.held_by:
                s.effect(DropValue(run_id))

    def reported(self, report: Report) -> None:
        """What an actor says of itself (3, 4)."""
        s = self.s
        actor = s.actors.get(report.actor)
        self.awaited.discard(report.actor)
        if actor is None:
            s.effect(Exit(report.actor, "nobody wants it"))
            return
        actor.known = True
        run = s.runs.get(actor.run)
        if report.epoch > actor.epoch:
            # it was granted by a step whose commit was lost: what it runs was never promised to anyone
            self._retire_unknown(actor, run)
            return
        if run is None or not run.in_turn:
            return
        if run.activation == report.activation or run.activation in report.outbox:
            run.confirmed = True
            return
        if run.activation in report.stopped and self._over_unstarted(run):
            return
        if lineage.bound_by_mark(s.runs, run) or run.expired:
            # its start may still be on the way: it is over only when the actor is known to refuse it
            self._stop_again(run)
            self._look_again(run, STOPPED_AGAIN)
            return
        self._look_again(run, ASK_AFTER)
        s.effect(Start(actor.id, actor.epoch, self.birth.spec(run, s.sessions[run.session])))

    def _look_again(self, run: Run, after: float) -> None:
        """Ask its actor once more, unless it speaks before."""
        run.resend_at = self.s.clock.mono() + after
        self.s.at(run.resend_at, run)

    def _retire_unknown(self, actor: Actor, run: Run | None) -> None:
        actor.kill_why = "it ran what was never journaled"
        if run is not None and run.in_turn:
            run.outcome = failed(Cause.PROCESS_DIED, "ProcessDied", actor.kill_why)
            self.ending.leave_actor(run, None, keep=False)
            self.ending.finish(run, RunState.FAILED)
        self.birth.retire_actor(actor, actor.kill_why)

    def silent(self, actor_id: str) -> None:
        """A report was not answered: unknown, not dead; the actor is not granted again once it is free (4)."""
        actor = self.s.actors.get(actor_id)
        self.awaited.discard(actor_id)
        if actor is None:
            return
        actor.kill_why = actor.kill_why or "it did not answer"
        self.s.touch(actor)
        run = self.s.runs.get(actor.run)
        if run is not None and run.in_turn and not run.confirmed:
            self._look_again(run, ASK_AFTER)
        if actor.state == "idle":
            self.birth.retire_actor(actor, actor.kill_why)

    def adopted(self, now: float) -> bool:
        """True once the registry may serve: ends adoption, says again what follows from state (PROTOCOL.md 2.3)."""
        s = self.s
        if not s.recovering or (self.awaited and now < self.adopt_until):
            return False
        for actor_id in list(self.awaited):
            self.silent(actor_id)
        s.recovering = False
        self.say_again()
        return True

    def say_again(self) -> None:
        """Tell this incarnation's receivers what follows from state: bound children, completions, finished stops."""
        s = self.s
        for run in list(s.runs.values()):
            if run.in_turn and run.confirmed:
                self.birth.tell_bound(run)
            if run.in_turn and run.state is RunState.RUNNING and run.wait >= 0:
                self.birth.tell_resumed(run)
            if run.in_turn:
                self._stop_again(run)
            elif not run.terminal:
                self.ending.park_value(run)  # of its last turn: the pool may never have been asked
            if run.terminal and run.deliver_to:
                self.ending.route(run)
            elif run.state is RunState.PAUSED:
                self.ending.maybe_go_on(run)
        for mark in list(s.marks.values()):
            if mark.done:
                self.ending.complete(mark)


    def _stop_again(self, run: Run) -> None:
        """A turn that is to end may have been told by nobody: the stop is sent after the commit of its mark."""
        mark = lineage.bound_by_mark(self.s.runs, run)
        if mark:
            self.s.effect(Stop(run.actor, run.id, run.activation, "stopped", mark))
        elif run.expired:
            self.s.effect(Stop(run.actor, run.id, run.activation, "timeout", 0))


def failed(cause: Cause, kind: str, text: str, death: Death | None = None) -> Outcome:
    """The outcome of a run that the runtime saw fail."""
    return Outcome(RunState.FAILED, error=ErrorInfo(kind, text, cause=cause.value, death=death))
