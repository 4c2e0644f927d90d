"""End: settle, announce, deliver, consume (PROTOCOL.md 4).

1. `Settled` is fenced by its activation. First terminal state wins; under a stop mark the verdict is ``cancelled``, past
   the deadline ``timed_out``, whatever the child did.
2. In that step the delivery becomes pending and is routed: (a) the requester has a turn in a process: the verdict names
   its actor and the child calls ``deliver``; (b) it has none: the completion waits for the session's next start, and a
   complete batch causes that start in this very step; (c) a client: the downlink; (d) gone for good: its own requester,
   marked as fallback.
3. `Got` ends the retries. If the child's process dies before, the registry says it over the downlink at once, else
   after 5, 10 and 20 s.
4. `Consumed` writes ``delivered`` and the transcript row in one transaction, idempotent by announce key.
5. A run leaves memory when it is terminal, nothing lives below it, and nobody is to hear of it any more.
"""

from __future__ import annotations

from openclaw_ray.core import lineage
from openclaw_ray.core.announce import idempotency_key
from openclaw_ray.core.announce_text import announce_status, stats_line, status_label
from openclaw_ray.core.lifecycle import Cause, DeliveryState, PauseReason, RunKind, RunState, result_status
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import (
    DeliverTo,
    DropValue,
    HoldValue,
    Outcome,
    Settled,
    Stopped,
    Verdict,
    Warn,
)
from openclaw_ray.core.protocol.records import Actor, Mark, Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import Completion, ErrorInfo, Result, StopReport, StopRow

__all__ = ["Ending", "completion_of"]

REDELIVER = (5.0, 10.0, 20.0)
"""Seconds before each repeat of an announce that a live receiver has not confirmed (PROTOCOL.md 4.5)."""

_TERMINAL_TEXT = {
    RunState.CANCELLED: (Cause.STOPPED, "stopped"),
    RunState.TIMED_OUT: (Cause.TIMEOUT, "timed out"),
}


def completion_of(s: State, run: Run) -> Completion:
    """The completion of a terminal run, the same for each repeat."""
    outcome = run.outcome or Outcome(run.state)
    status = result_status(run.state)
    ended = run.ended if run.ended is not None else s.clock.wall()
    runtime_ms = 0 if run.started is None else max(0, round((ended - run.started) * 1000))
    usage = run.usage.with_below(run.below_usage)
    partial = None
    if run.state not in (RunState.SUCCEEDED, RunState.FAILED) and run.progress is not None:
        partial = run.progress[0]
    result: Result[object] = Result(
        status,
        outcome.text if run.state is RunState.SUCCEEDED else None,
        None,
        outcome.error,
        usage,
        outcome.missing,
        outcome.text_truncated,
        partial,
        run.id,
        run.session,
        runtime_ms,
        run.index,
    )
    return Completion(
        idempotency_key(run.session, run.id),
        result,
        run.session,
        run.session_id,
        run.id,
        run.agent,
        run.label,
        status_label(announce_status(status), outcome.error.message if outcome.error else None),
        stats_line(runtime_ms or None, usage.input_tokens, usage.output_tokens),
        run.fallback,
        run.created,
    )


class Ending:
    """Settling, delivering and forgetting."""

    def __init__(self, state: State, down: Down, birth: Birth) -> None:
        self.s = state
        self.down = down
        self.birth = birth

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
        """Large values that the turn took for nobody are in its process now, until they are taken again (PROTOCOL.md 4.3)."""
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
        elif run.mark_reason == "client_gone" or self._mark_reason(run) == "client_gone":
            cause, word = Cause.CLIENT_GONE, "stopped: its client is gone"
        if run.forced:
            word += "; its process did not end by itself and was ended"
        return Outcome(state, error=ErrorInfo(cause.value, word, cause=cause.value))

    def _mark_reason(self, run: Run) -> str:
        mark = self.s.marks.get(lineage.bound_by_mark(self.s.runs, run))
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
        """Whether a further turn or unsettled children keep the run open (PROTOCOL.md 5.2, 5.3)."""
        s = self.s
        wants = event.yielded or event.follow_up
        if self.all_settled(run) and not (wants and self.heard(session, event.yielded)):
            return None
        run.yielded = event.yielded
        self.release_slot(run)
        run.state = RunState.PAUSED
        run.pause = PauseReason.YIELDED if event.yielded else PauseReason.CHILDREN
        self.park_value(run)
        for child_id in session.pending:
            self.park_value(s.runs[child_id])
        s.touch(run)
        s.event("run", run, reason=run.pause.value)
        self.maybe_go_on(run)
        return Verdict(event.run, "paused", run.state)

    def heard(self, session: Session, all_ends: bool) -> bool:
        """True if there is something to tell the session's program; stopped children alone are silent."""
        for child_id in session.pending:
            child = self.s.runs.get(child_id)
            if child is not None and (all_ends or child.state is not RunState.CANCELLED):
                return True
        return False

    def maybe_go_on(self, run: Run) -> None:
        """A paused run without a turn: end it, or start its follow-up turn, once its children have settled."""
        s = self.s
        session = s.sessions[run.session]
        if run.state is not RunState.PAUSED or run.actor or run.id in s.queue:
            return
        top_level = session.depth == 0 and run.follow_up and not run.yielded
        if not self.all_settled(run) and not (top_level and self.heard(session, False)):
            return
        if self.asks_again(run) and self.heard(session, run.yielded):
            run.kind = RunKind.WAKE if run.yielded else RunKind.COMPLETION
            run.state = RunState.QUEUED
            run.pause = None
            run.yielded = False
            s.touch(run)
            s.event("run", run)
            s.enqueue(run)
            return
        if self.all_settled(run):
            self.finish(run, RunState.SUCCEEDED)

    def all_settled(self, run: Run) -> bool:
        """Whether the batch is complete: no child is open (PROTOCOL.md 5.2, 5.4)."""
        return run.unsettled == 0

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
        """The session leaves its actor: free for its class, or on its way to be ended, once it holds no value any more."""
        s = self.s
        self.down.close(run.activation)
        session = s.sessions[run.session]
        session.state = "passive"
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

    def holds(self, run: Run) -> bool:
        """Whether its large value is still in the process of its newest turn: that one is not free (PROTOCOL.md 4.3)."""
        return bool(run.held_by) and run.held_by == run.ran_on

    def free(self, actor: Actor) -> None:
        """An actor that holds nothing any more: idle, or ended if it must not be used again."""
        s = self.s
        if actor.state == "dying":
            return
        if actor.kill_why or actor.resources or s.limits.pool_reuse == "never":
            self.birth.retire_actor(actor, actor.kill_why or "used once")
            return
        actor.state = "idle"
        actor.idle_at = s.clock.mono()
        actor.activation = ""

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
        lineage.ended(s.runs, run)
        self._count_above(run)
        s.event("run", run, reason=run.outcome.error.message[:500] if run.outcome.error else None)
        s.touch(run)
        self._next_of_session(run)
        self._own_leftovers(run)
        self._in_marks(run)
        deliver = self.route(run, caller)
        self.retire_if_done(run)
        return deliver

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
            if child is not None and any(above is run for above in lineage.ancestors(s.runs, child)):
                self.route(child)

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
            s.touch(session)
        elif run.id in session.waiting:
            session.waiting.remove(run.id)

    def _in_marks(self, run: Run) -> None:
        for mark in list(self.s.marks.values()):
            if run.id in mark.open:
                self.mark_progress(mark, run)

    def mark_progress(self, mark: Mark, run: Run) -> None:
        """One run under a mark has ended; the stop is complete with the last (PROTOCOL.md 6.7)."""
        s = self.s
        mark.open.discard(run.id)
        word = "forced" if run.forced else "stopped"
        if run.state is not RunState.CANCELLED:
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

    # ------------------------------------------------------------------ announce

    def route(self, run: Run, caller: Actor | None = None) -> DeliverTo | None:
        """Decide who hears of a terminal run, and how (2)."""
        s = self.s
        if run.route == "driver" or not run.deliver_to:
            return None
        target = s.sessions.get(run.deliver_to)
        if target is None:
            self._discard(run)
            return None
        if target.client:  # (c)
            client = s.clients.get(target.client)
            if client is None or client.gone:
                self._discard(run)
                return None
            target.pending[run.id] = None
            self.down.tell(client.id, self.birth.completed(run, client.id))
            return None
        owner, parent = s.runs.get(target.run), self._run_above(run, target)
        if parent is not None and parent.terminal and (owner is None or target.depth > 0):
            self._parent_ended(run, parent, target)
            return None
        target.pending[run.id] = None
        if owner is None:
            self.park_value(run)
            return None  # a session that died: its completions stay pending for it
        if owner.in_turn:  # (a)
            if caller is not None:
                return self._by_child(run, owner, caller)
            run.redeliver_at = None
            self.down.tell(owner.activation, self.birth.completed(run, owner.activation))
            return None
        self.park_value(run)  # (b)
        self.maybe_go_on(owner)
        return None

    def _run_above(self, run: Run, target: Session) -> Run | None:
        """The run of ``target`` that ``run`` is below."""
        above = lineage.ancestors(self.s.runs, run)
        return next((a for a in above if isinstance(a, Run) and a.session == target.key), None)

    def _parent_ended(self, run: Run, parent: Run, target: Session) -> None:
        """The run that spawned it is over and will not ask again."""
        died = parent.outcome is not None and parent.outcome.error is not None
        cause = parent.outcome.error.cause if died and parent.outcome and parent.outcome.error else ""
        if run.route == "map" or parent.state is RunState.CANCELLED or run.state is RunState.CANCELLED:
            self._discard(run)
        elif parent.state is RunState.SUCCEEDED:
            self.drop_value(run)
            self.mark_delivered(run)
        elif cause == Cause.PROCESS_DIED or target.depth == 0:
            target.pending[run.id] = None  # the session may be activated again: it is not gone for good
            self.park_value(run)
        else:  # (d)
            target.pending.pop(run.id, None)
            run.deliver_to = target.requester
            run.fallback = True
            self.s.touch(run)
            self.route(run)

    def _by_child(self, run: Run, owner: Run, caller: Actor) -> DeliverTo:
        """(a): the child calls its parent's actor itself; the registry repeats only if that is not confirmed (3)."""
        s = self.s
        run.redeliver_at = s.clock.mono() + REDELIVER[0]
        s.at(run.redeliver_at, run)
        run.attempts = 1
        run.called_by = caller.id
        outcome = run.outcome
        parent_actor = s.actors.get(owner.actor)
        return DeliverTo(
            owner.actor,
            owner.activation,
            completion_of(s, run),
            outcome.value if outcome is not None else None,
            outcome.held if outcome is not None else 0,
            self.birth.handle_for(caller.id, parent_actor) if parent_actor is not None else None,
        )

    def again(self, run: Run) -> None:
        """The child's own call was not confirmed: say it over the downlink (3)."""
        s = self.s
        target = s.sessions.get(run.deliver_to)
        receiver = self.birth.receiver_of(run.deliver_to)
        run.redeliver_at = None
        if target is None or run.id not in target.pending or not receiver:
            return
        run.attempts += 1
        if run.attempts <= len(REDELIVER):
            run.redeliver_at = s.clock.mono() + REDELIVER[run.attempts - 1]
            s.at(run.redeliver_at, run)
        self.down.tell(receiver, self.birth.completed(run, receiver))

    def got(self, runs: tuple[str, ...]) -> None:
        """The receiver has these announces (3)."""
        for run_id in runs:
            run = self.s.runs.get(run_id)
            if run is not None:
                run.redeliver_at = None

    def consumed(self, receiver: str, runs: tuple[str, ...]) -> None:
        """Completions were given to a program (4); fenced by who it is that says so."""
        for run_id in runs:
            run = self.s.runs.get(run_id)
            if run is not None and run.terminal and self.birth.receiver_of(run.deliver_to) == receiver:
                self.mark_delivered(run)

    def consumed_in_turn(self, run: Run, *, over: bool) -> None:
        """Completions that went into the turn's start have been given to it; one whose large value is still on its way
        only once the turn is ``over``."""
        on_the_way = []
        for child_id in run.given:
            child = self.s.runs.get(child_id)
            if child is None or not child.terminal:
                continue
            if child.held_by and not over:
                on_the_way.append(child_id)
                continue
            self.drop_value(child)
            self.mark_delivered(child)
        run.given = tuple(on_the_way)

    def mark_delivered(self, run: Run) -> None:
        """Write ``delivered`` and the row in one transaction; a second time changes nothing."""
        s = self.s
        target = s.sessions.get(run.deliver_to)
        if target is not None:
            target.pending.pop(run.id, None)
            if run.delivery is DeliveryState.PENDING and not self.is_silent(run):
                done = completion_of(s, run)
                s.host_row(target, "user", done.text, key=done.key, meta=done.to_json())
        if run.delivery is DeliveryState.PENDING:
            run.delivery = DeliveryState.NOT_REQUIRED if self.is_silent(run) else DeliveryState.DELIVERED
        run.deliver_to = ""
        run.redeliver_at = None
        s.touch(run)
        self.retire_if_done(run)

    def is_silent(self, run: Run) -> bool:
        """A stopped run does not announce (DESIGN.md 8)."""
        return run.state is RunState.CANCELLED

    def _discard(self, run: Run) -> None:
        """Nobody is left to tell, or nobody is to be told: a killed run does not announce."""
        target = self.s.sessions.get(run.deliver_to)
        if target is not None:
            target.pending.pop(run.id, None)
        if run.delivery is DeliveryState.PENDING:
            silent = run.state is RunState.CANCELLED
            run.delivery = DeliveryState.NOT_REQUIRED if silent else DeliveryState.DISCARDED
        run.deliver_to = ""
        self.drop_value(run)
        self.s.touch(run)
        self.retire_if_done(run)

    # ------------------------------------------------------------------ values

    def took(self, run_id: str) -> None:
        """The requester has the large value: the actor that held it is free (PROTOCOL.md 4.3)."""
        run = self.s.runs.get(run_id)
        if run is not None:
            self.drop_value(run)
            self.s.touch(run)
            self.retire_if_done(run)

    def value_held(self, run_id: str, taken_from: str = "") -> None:
        """The pool has taken it from the actor ``taken_from``; a value of an earlier turn is not the one that counts."""
        run = self.s.runs.get(run_id)
        if run is None or not run.held_by:
            self.s.effect(DropValue(run_id))
            return
        if run.parking != run.held_by or taken_from not in ("", run.held_by):
            return
        actor = self.s.actors.get(run.held_by)
        run.held_by = "pool"
        self.s.touch(run)
        self._free_if_empty(actor)

    def park_value(self, run: Run) -> None:
        """Nobody is there to take it now: the pool does, so that it does not keep an actor from the runs that wait."""
        if run.held_by and run.held_by != "pool":
            run.parking = run.held_by
            self.s.effect(HoldValue(run.held_by, run.id))

    def drop_value(self, run: Run) -> None:
        """Nobody will ask for it any more."""
        if not run.held_by:
            return
        # the pool may have it without a word of that having come here
        self.s.effect(DropValue(run.id))
        actor = self.s.actors.get(run.held_by)
        run.held_by = ""
        self._free_if_empty(actor)

    def _free_if_empty(self, actor: Actor | None) -> None:
        """The last value has left the process of a turn that is over."""
        if actor is None or actor.state != "releasing":
            return
        if not any(run.held_by == actor.id for run in self.s.runs.values()):
            actor.keeps = False
            self.free(actor)
            self.s.touch(actor)

    # ------------------------------------------------------------------ forgetting

    def retire_if_done(self, run: Run) -> None:
        """Let a run leave memory (5), and its session with it if that was all it was for."""
        s = self.s
        if (
            run.id not in s.runs
            or not run.terminal
            or run.live_below
            or run.deliver_to
            or run.held_by
            or run.children  # what is below may still be handed up past this run
            or any(run.id in m.open for m in s.marks.values())
        ):
            return
        parent = s.runs.get(run.parent)
        if parent is not None:
            parent.children.pop(run.id, None)
        s.retire(run)
        session = s.sessions.get(run.session)
        one_task = session is not None and (session.depth > 0 or bool(session.client))
        if session is not None and one_task and not session.run and not session.pending:
            s.retire(session)
        if parent is not None and parent.terminal:
            self.retire_if_done(parent)
