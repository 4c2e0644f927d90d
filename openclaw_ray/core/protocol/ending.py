"""End: a turn settles, its run ends or goes on, and everything it held is given back (PROTOCOL.md 4.1, 4.2, 5.2, 5.3).

1. `Settled` is fenced by its activation. First terminal state wins; under a stop mark the verdict is ``cancelled``,
   past the deadline ``timed_out``, whatever the child did.
2. A run whose children have not settled is paused; it goes on, or ends, in the step in which the last of them does. So
   is one that has yielded: it goes on when its batch is complete, or with a message (`yielding`).
3. With the terminal state: slot and actor free, counts above, leftovers, the session's next run, marks, delivery.
"""

from __future__ import annotations

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import Cause, PauseReason, RunKind, RunState
from openclaw_ray.core.protocol import yielding
from openclaw_ray.core.protocol.archiving import plan_forgetting
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.delivery import Delivery, unheard
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.limiting import Limiting
from openclaw_ray.core.protocol.messages import (
    DeliverTo,
    Outcome,
    Settled,
    Verdict,
    Warn,
)
from openclaw_ray.core.protocol.records import Actor, Run, Session
from openclaw_ray.core.protocol.restart import is_replaced
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.telling import take_line
from openclaw_ray.core.results import ErrorInfo

__all__ = ["Ending"]

_TERMINAL_TEXT = {
    RunState.CANCELLED: (Cause.STOPPED, "stopped"),
    RunState.TIMED_OUT: (Cause.TIMEOUT, "timed out"),
}

_FEW = 8
"""Open children up to which a run looks at each of them to know whether it may end."""


class Ending(Delivery):
    """Settling and finishing, over delivery, marks and what is kept."""

    def __init__(self, state: State, down: Down, birth: Birth, limiting: Limiting) -> None:
        super().__init__(state, down, birth)
        self.limiting = limiting

    # ------------------------------------------------------------------ settle

    def settle(self, event: Settled) -> Verdict:
        """A turn has ended (1)."""
        s = self.s
        run = s.runs.get(event.run)
        if run is None or not self.is_current(run, event.activation):
            return self.stale(event.run)
        session = s.sessions[run.session]
        for row in event.rows:
            s.row(run.agent, row)
        if event.state is not None:
            session.state_json = event.state
        error = event.outcome.error
        if error is not None and error.cause == Cause.START_FAILED:
            self.refused_with(run, error.message)
        else:
            self.consumed_in_turn(run, over=True)
        self.drop_value(run)
        if not event.clean.clean:
            self._unclean(run, event.clean.reasons)
        actor = s.actors.get(run.actor)
        state, outcome = self._verdict(run, event.outcome)
        run.outcome = outcome
        if outcome.held:
            run.held_by = run.actor
        run.follow_up = event.follow_up
        self._keep_values(run, actor, event.keeps)
        self.leave_actor(run, actor, keep=not event.clean.reasons)
        s.queue.remove(run.id)
        run.resuming = False
        s.touch(session)
        if state is RunState.SUCCEEDED:
            again = self._goes_on(run, session, event)
            if again is not None:
                return again
        caller = actor if outcome is event.outcome else None
        return Verdict(event.run, "settled", state, deliver=self.finish(run, state, caller))

    def _keep_values(self, run: Run, actor: Actor | None, children: tuple[str, ...]) -> None:
        """Large values that the turn took for nobody are in its process, until taken again (PROTOCOL.md 4.3)."""
        if actor is None:
            return
        for child_id in children:
            child = self.s.runs.get(child_id)
            if child is not None and child.terminal and child.deliver_to == run.session and not child.held_by:
                child.held_by = run.actor
                actor.keeps = True
                self.s.touch(child)

    def _verdict(self, run: Run, outcome: Outcome) -> tuple[RunState, Outcome]:
        """The state that counts (1): a mark and a deadline come before what the child did."""
        if lineage.bound_by_mark(self.s.runs, run):
            return RunState.CANCELLED, self.ended_by(run, RunState.CANCELLED)
        late = run.deadline is not None and self.s.clock.mono() >= run.deadline
        if run.expired or late:
            return RunState.TIMED_OUT, self.ended_by(run, RunState.TIMED_OUT)
        return outcome.state, outcome

    def ended_by(self, run: Run, state: RunState) -> Outcome:
        """The outcome that the runtime itself gives to a stopped or timed out run."""
        cause, word = _TERMINAL_TEXT[state]
        if state is RunState.TIMED_OUT:
            word = f"timed out after {run.timeout:g} s (runTimeoutSeconds)"
        elif run.restart is not None and run.restart.replaced_by:
            word = f"interrupted: it was steered, and run {run.restart.replaced_by} goes on in its place"
        elif run.mark_reason == "client_gone" or self._mark_reason(run) == "client_gone":
            cause, word = Cause.CLIENT_GONE, "stopped: its client is gone"
        if run.forced:
            word += "; its process did not end by itself and was ended"
        return Outcome(state, error=ErrorInfo(cause.value, word, cause=cause.value))

    def _mark_reason(self, run: Run) -> str:
        mark = self.s.marks.get(abs(lineage.bound_by_mark(self.s.runs, run)))
        return mark.reason if mark is not None else ""

    def _unclean(self, run: Run, reasons: tuple[str, ...]) -> None:
        """Tell the watchers each time, the clients once per agent, who left what behind (PROTOCOL.md 7.6)."""
        s = self.s
        text = f"agent {run.agent!r} left its process unclean, which is not used again: {'; '.join(reasons)}"
        s.event("warning", run, text=text)
        if run.agent not in s.warned:
            s.warned.add(run.agent)
            for client in [c.id for c in s.clients.values() if c.root]:
                self.down.tell(client, Warn(text))

    def _goes_on(self, run: Run, session: Session, event: Settled) -> Verdict | None:
        """Whether a further turn, unsettled children or a message to come keep the run open (PROTOCOL.md 5.2-5.4)."""
        s = self.s
        if event.yielded or run.waits is not None:
            yielding.freeze(s, run, session, yielded=event.yielded, waits_for=event.waits_for)
            if yielding.awaits_message(run) and session.waiting:
                for message_run in take_line(s, run, session):
                    self.finish(message_run, RunState.SUCCEEDED)
        yielded = event.yielded or yielding.armed(run)
        wants = yielded or event.follow_up
        message = run.waits is not None and run.waits.message
        if not message and self.all_settled(run) and not (wants and self.heard(session, yielded)):
            return None
        run.yielded = yielded
        self.release_slot(run)
        run.state = RunState.PAUSED
        run.pause = _pause(yielded, message)
        self.park_value(run)
        for child_id in session.pending:
            self.park_value(s.runs[child_id])
        s.touch(run)
        s.event("run", run, reason=run.pause.value, text=event.acknowledgment or None)
        self.maybe_go_on(run)
        return Verdict(event.run, "paused", run.state)

    def heard(self, session: Session, all_ends: bool) -> bool:
        """True if there is something to tell the session's program; stopped children alone are silent."""
        for child_id in session.pending:
            child = self.s.runs.get(child_id)
            if child is not None and (all_ends or not self.is_silent(child)):
                return True
        return False

    def maybe_go_on(self, run: Run) -> None:
        """A paused run without a turn: start its next turn if what that waits for is there, or end the run if nothing
        is waited for any more."""
        s = self.s
        session = s.sessions[run.session]
        if run.state is not RunState.PAUSED or run.actor or run.interrupted or run.id in s.queue:
            return
        kind = self._next_turn(run, session)
        if kind is not None:
            run.kind = kind
            run.state = RunState.QUEUED
            run.pause = None
            run.yielded = False
            s.touch(run)
            s.event("run", run)
            s.enqueue(run)
        elif self.all_settled(run) and not yielding.awaits_message(run):
            self.finish(run, RunState.SUCCEEDED)

    def _next_turn(self, run: Run, session: Session) -> RunKind | None:
        """What the run's next turn is to be started for, now; `None` if there is nothing (yet)."""
        if run.waits is not None and run.waits.told:
            return RunKind.MESSAGE
        if yielding.armed(run):
            return RunKind.WAKE if self.batch_complete(run) and self.heard(session, True) else None
        top_level = session.depth == 0 and run.follow_up and not run.yielded
        if not self.all_settled(run) and not (top_level and self.heard(session, False)):
            return None
        if self.asks_again(run) and self.heard(session, run.yielded):
            return RunKind.WAKE if run.yielded else RunKind.COMPLETION
        return None

    def all_settled(self, run: Run) -> bool:
        """Whether no child is open, so that the run may end (PROTOCOL.md 5.2). One that talks with users holds nobody
        up who is not told of its end (`threads`)."""
        if run.unsettled == 0:
            return True
        if not self.s.threads and run.unsettled > _FEW:
            return False  # nobody talks with users now: not worth a look at each of many children
        children = (self.s.runs[child] for child in run.children)
        return all(c.terminal or _holds_nobody_up(c) for c in children)

    def batch_complete(self, run: Run) -> bool:
        """Whether the wake that is owed is due (PROTOCOL.md 5.4)."""
        return yielding.complete(self.s, run)

    def asks_again(self, run: Run) -> bool:
        """Whether its program wants a further turn; a plain function that returned does not (PROTOCOL.md 5.3)."""
        return run.yielded or run.follow_up

    # ------------------------------------------------------------------ fences

    def is_current(self, run: Run, activation: str) -> bool:
        """The fence of PROTOCOL.md 1.4: only the run's present activation may speak of it, and only until its end."""
        return run.activation == activation and not run.terminal and bool(run.actor)

    def stale(self, run: str) -> Verdict:
        """Nothing was changed."""
        found = self.s.runs.get(run)
        return Verdict(run, "refused", found.state if found else None)

    # ------------------------------------------------------------------ leaving

    def release_slot(self, run: Run) -> None:
        """Give the lane slot of the run's present generation back; harmless if it has none."""
        self.s.lanes.release(run.lane, run.id, run.slot)
        run.slot = -1

    def leave_actor(self, run: Run, actor: Actor | None, *, keep: bool) -> None:
        """The session leaves its actor: free for its class, or on its way to its end, once it holds no value."""
        s = self.s
        self.limiting.left(run)
        self.down.close(run.activation)
        session = s.sessions[run.session]
        session.state = "passive"
        if s.exchanges:
            self.birth.talks.left(run.activation)
        run.actor = ""
        run.resend_at = run.grace_at = run.kill_at = None
        s.count_load(run.root, -1)
        if actor is None or actor.run != run.id:
            return
        actor.run = ""
        if not keep:
            actor.kill_why = "not clean after a turn"
        if actor.keeps or self.holds(run):
            actor.state = "releasing"
        else:
            self.free(actor)
        s.touch(actor)

    # ------------------------------------------------------------------ finish

    def finish(self, run: Run, state: RunState, caller: Actor | None = None) -> DeliverTo | None:
        """Write a terminal state, the first and only one; free, count, and route the completion (2).

        ``caller`` is the child's own actor, if it is there to call ``deliver`` itself; then what it is to deliver is
        returned.
        """
        s = self.s
        if run.terminal:
            return None
        s.queue.remove(run.id)
        self.release_slot(run)
        run.state = state
        run.pause = None
        run.ended = s.clock.wall()
        run.deadline = None
        run.input = None
        if run.outcome is None:
            run.outcome = Outcome(state)
        if not run.outcome.held:
            self.drop_value(run)  # of an earlier turn
        self.silenced(run)
        s.item_ended(run)
        lineage.ended(s.runs, run)
        self._count_above(run)
        s.event("run", run, reason=run.outcome.error.message[:500] if run.outcome.error else None)
        s.touch(run)
        self._next_of_session(run)
        if run.outcome is not None and run.outcome.error is not None and run.outcome.error.cause == Cause.PROCESS_DIED:
            self.died_with(run)
        self._own_leftovers(run)
        self._in_marks(run)
        self._talk_goes_on(run)
        if run.post:
            self.birth.threads.ended(run)
        deliver = self.route(run, caller)
        if state is RunState.LOST and run.route != "driver":
            plan_forgetting(s, run)
        if not run.deliver_to:
            self.drop_value(run)  # nobody is to hear of the end: nobody will take it, and it would keep its actor
        self.retire_if_done(run)
        return deliver

    def _talk_goes_on(self, run: Run) -> None:
        """What follows from the end of a message's run, and of any for a session that has news to hear."""
        s, talks = self.s, self.birth.talks
        if run.talk is not None:
            talks.turn_ended(run)
        above = s.runs.get(run.parent) if run.route in ("ask", "send") or _holds_nobody_up(run) else None
        if above is not None:  # it may have waited for nothing else
            self.maybe_go_on(above)
        if run.session in s.news and run.state is RunState.SUCCEEDED:
            talks.wake(s.sessions[run.session])

    def _count_above(self, run: Run) -> None:
        s = self.s
        usage = run.usage.with_below(run.below_usage)
        if run.live_below == 0:
            self._no_longer_active(run)
        for i, above in enumerate(list(lineage.ancestors(s.runs, run))):
            assert isinstance(above, Run)
            above.ended_below += 1
            if i == 0:
                above.below_usage = above.below_usage.with_part(usage)
            if above.terminal and above.live_below == 0:
                self._no_longer_active(above)
                self.retire_if_done(above)
            if above.id in s.runs:
                s.touch(above)

    def _no_longer_active(self, run: Run) -> None:
        requester = self.s.sessions.get(run.requester)
        if requester is not None and requester.active > 0:
            requester.active -= 1

    def _own_leftovers(self, run: Run) -> None:
        """Completions that the ended run's program was never given: rows, pending, or handed up."""
        s = self.s
        session = s.sessions[run.session]
        for child_id in list(session.pending):
            child = s.runs.get(child_id)
            if child is None:
                continue
            mine = any(above is run for above in lineage.ancestors(s.runs, child))
            if mine or session.depth > 0 or (child.failed_attempts and unheard(run) and self.is_owed(child, session)):
                self.route(child)
            else:  # of an earlier run of a top-level session, for whichever turn comes next
                self.park_value(child)

    def _next_of_session(self, run: Run) -> None:
        """The serial lane: the session's next run may start."""
        s = self.s
        session = s.sessions[run.session]
        if session.run == run.id:
            session.run = session.waiting.pop(0) if session.waiting else ""
            if session.run:
                s.enqueue(s.runs[session.run])
            elif session.depth > 0:
                session.state = "ended"
                session.ended = run.ended
            session.aborted = _aborted(run)
            s.touch(session)
        elif run.id in session.waiting:
            session.waiting.remove(run.id)


def _holds_nobody_up(child: Run) -> bool:
    """Whether it is of a session that talks with users, whose end its requester is not told of (`threads`)."""
    return bool(child.post) and not child.expects


def _pause(yielded: bool, message: bool) -> PauseReason:
    if message:
        return PauseReason.MESSAGE
    return PauseReason.YIELDED if yielded else PauseReason.CHILDREN


def _aborted(run: Run) -> bool:
    """Whether it was stopped, or the runtime went down in it; one that was steered goes on (SPEC.md G1, H5)."""
    error = run.outcome.error if run.outcome is not None else None
    interrupted = error is not None and error.cause == Cause.INTERRUPTED
    return (run.state is RunState.CANCELLED and not is_replaced(run)) or interrupted
