"""Delivery: who hears of a terminal run, how, and until when (PROTOCOL.md 4.4, 4.5).

1. In the step of the end the delivery is routed: (a) the requester has a turn in a process: the verdict names its actor
   and the child calls ``deliver``; (b) it has none: the completion waits for the session's next start, and a complete
   batch causes that start in this very step; (c) a client: the downlink; (d) gone for good: its own requester, marked
   as fallback.
2. `Got` accepts the hand-off. If the child's process dies before, the registry says it over the downlink at once, else
   when the hand-off is due again (`openclaw_ray.core.handoff`).
3. `Consumed` writes ``delivered`` and the transcript row in one transaction, idempotent by announce key.
4. A receiver that died may have died of what it was told, and one whose agent cannot be started has answered: either is
   an attempt that failed. Its session is activated again (see `reviving`), after 5, 10 and 20 s. After the fourth the
   delivery is ``suspended``: kept for 7 days, shown, carried by no start, until it is asked for again or dismissed. A
   live receiver that does not answer is unknown, never failed.
5. What no further attempt can mend has ``failed`` at once (`openclaw_ray.core.delivery_faults`).
6. A child whose whole answer is ``ANNOUNCE_SKIP`` is not announced; one that says ``NO_REPLY`` where a completion is
   required delivered nothing (SPEC.md F3, A6 #10).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from openclaw_ray.core import lineage
from openclaw_ray.core.announce import LADDER
from openclaw_ray.core.delivery_faults import SUSPENDED_KEPT, DeliveryFault
from openclaw_ray.core.handoff import HandOff
from openclaw_ray.core.lifecycle import Cause, DeliveryState, RunState
from openclaw_ray.core.limits import Compat
from openclaw_ray.core.protocol.archiving import strand
from openclaw_ray.core.protocol.completion import completion_of
from openclaw_ray.core.protocol.marks import Marks
from openclaw_ray.core.protocol.messages import DeliverTo, ReportAsk
from openclaw_ray.core.protocol.records import Actor, Run, Session
from openclaw_ray.core.protocol.reviving import revive, takes_further_turns
from openclaw_ray.core.tokens import Token, TokenContext, silence

__all__ = ["Delivery", "unheard"]

_UNHEARD = (Cause.PROCESS_DIED, Cause.INTERRUPTED, Cause.START_FAILED)
"""Causes with which a turn ended before its program could hear, or to the end of it."""


def unheard(run: Run) -> bool:
    """Whether a run ended so that its session is still owed what its children come to."""
    error = run.outcome.error if run.outcome is not None else None
    return error is not None and error.cause in _UNHEARD


class Delivery(Marks):
    """Routing, repeating, consuming."""

    @abstractmethod
    def maybe_go_on(self, run: Run) -> None:
        """What a complete batch means for a paused requester is for those to say who end and start turns."""

    # ------------------------------------------------------------------ announce

    def route(self, run: Run, caller: Actor | None = None) -> DeliverTo | None:
        """Decide who hears of a terminal run, and how (2)."""
        s = self.s
        if run.route == "driver" or not run.deliver_to or run.delivery is DeliveryState.SUSPENDED:
            return None
        target = s.sessions.get(run.deliver_to)
        if target is None:
            self._fail(run, DeliveryFault.NOBODY)
            return None
        if target.client:  # (c)
            client = s.clients.get(target.client)
            if client is None or client.gone:
                self.forget_delivery(run)
                return None
            target.pending[run.id] = None
            self.down.tell(client.id, self.birth.completed(run, client.id))
            return None
        owner, parent = s.runs.get(target.run), self._run_above(run, target)
        if parent is not None and parent.terminal and owner is None:
            self._parent_ended(run, parent, target)
            return None
        target.pending[run.id] = None
        if owner is None:
            self.park_value(run)
            return None  # a top-level session: for whichever turn comes next
        if owner.in_turn:  # (a)
            if caller is not None:
                return self._by_child(run, owner, caller)
            self.down.tell(owner.activation, self.birth.completed(run, owner.activation))
            self._hand_off(run, HandOff.at(s.clock.mono()))
            return None
        self.park_value(run)  # (b)
        self.maybe_go_on(owner)
        return None

    def _run_above(self, run: Run, target: Session) -> Run | None:
        """The run of ``target`` that ``run`` is below."""
        above = lineage.ancestors(self.s.runs, run)
        return next((a for a in above if isinstance(a, Run) and a.session == target.key), None)

    def is_owed(self, run: Run, target: Session) -> bool:
        """Whether the run of ``target`` that ``run`` is below ended so that its session is still to hear of it (4)."""
        above = self._run_above(run, target)
        return above is not None and unheard(above)

    def _parent_ended(self, run: Run, parent: Run, target: Session) -> None:
        """The run that spawned it is over and will not ask again."""
        died = unheard(parent)
        if run.route == "map" or parent.state is RunState.CANCELLED or run.state is RunState.CANCELLED:
            self.forget_delivery(run)
        elif parent.state is RunState.SUCCEEDED:
            self.drop_value(run)
            self.mark_delivered(run)
        elif died and parent.route != "map" and takes_further_turns(self.s, target):
            self._to_the_dead(run, parent, target)
        elif target.depth == 0 or (died and parent.route == "map"):
            target.pending[run.id] = None  # the next message's turn hears of it, if there is one
            strand(self.s, target)
            self.park_value(run)
        else:  # (d)
            target.pending.pop(run.id, None)
            run.deliver_to = target.requester
            run.fallback = True
            self.s.touch(run)
            self.route(run)

    def _to_the_dead(self, run: Run, parent: Run, target: Session) -> None:
        """The session's process died, or could not start it: it is activated again, at once or after a while (4)."""
        s = self.s
        wait = LADDER.wait_after(run.failed_attempts) if run.failed_attempts else 0.0
        if wait is None:
            self._give_up(run)
            return
        target.pending[run.id] = None
        run.called_by, run.hand_off = "", None
        self.park_value(run)
        if wait:
            strand(s, target)
            run.redeliver_at = s.clock.mono() + wait
            s.at(run.redeliver_at, run)
        else:
            self._revive(run, parent, target)

    def _revive(self, run: Run, parent: Run, target: Session) -> None:
        if lineage.bound_by_mark(self.s.runs, parent):
            self.forget_delivery(run)  # what was stopped is not made to work again
        else:
            revive(self.s, target, parent)

    def died_with(self, run: Run) -> None:
        """A turn died with its process: what its start carried, and what it was told, was tried in vain (4)."""
        for child_id in self.s.sessions[run.session].pending:
            child = self.s.runs.get(child_id)
            if child is not None and child.terminal and (child_id in run.given or child.attempts):
                self._in_vain(child, DeliveryFault.DIED.text(run.session))

    def refused_with(self, run: Run, why: str) -> None:
        """A turn could not be started: that is its answer to what its start carried (4)."""
        for child_id in run.given:
            child = self.s.runs.get(child_id)
            if child is not None and child.terminal:
                self._in_vain(child, DeliveryFault.NOT_STARTED.text(run.session, why))
        run.given = ()

    def _in_vain(self, child: Run, error: str) -> None:
        child.failed_attempts += 1
        child.attempts = 0
        child.last_error = error[:500]
        self.s.touch(child)

    def _give_up(self, run: Run) -> None:
        """Every attempt has failed (4)."""
        s = self.s
        if run.delivery is not DeliveryState.PENDING:
            self.forget_delivery(run)
            return
        target = s.sessions.get(run.deliver_to)
        if target is not None:
            target.pending.pop(run.id, None)
        run.delivery, run.redeliver_at = DeliveryState.SUSPENDED, None
        run.suspended_at = s.clock.wall()
        s.touch(run)
        text = f"its announce is suspended after {run.failed_attempts} attempts: {run.last_error}"
        s.event("warning", run, text=text)

    def _fail(self, run: Run, fault: DeliveryFault) -> None:
        """No further attempt can mend it (5)."""
        s = self.s
        if run.delivery in (DeliveryState.PENDING, DeliveryState.SUSPENDED) and not self.is_silent(run):
            run.delivery, run.suspended_at = DeliveryState.FAILED, None
            run.last_error = fault.text(run.deliver_to)
            s.event("warning", run, text=f"its announce has failed: {run.last_error}")
        self.forget_delivery(run)

    def fail_pending(self, session: Session, fault: DeliveryFault) -> None:
        """Nobody will take what is pending for this session (5)."""
        for run_id in list(session.pending):
            run = self.s.runs.get(run_id)
            if run is not None and run.terminal:
                self._fail(run, fault)

    def expire_suspended(self, run: Run) -> bool:
        """Whether a suspended delivery has been kept for long enough, and so has failed (4)."""
        if run.delivery is not DeliveryState.SUSPENDED:
            return False
        if run.suspended_at is None:  # it was suspended by an older version
            run.suspended_at = self.s.clock.wall()
            self.s.touch(run)
        if self.s.clock.wall() < run.suspended_at + SUSPENDED_KEPT:
            return False
        self._fail(run, DeliveryFault.EXPIRED)
        return True

    def silenced(self, run: Run) -> None:
        """A spawned run has ended well: what it says may be that it has nothing to say (6)."""
        outcome = run.outcome
        if outcome is None or run.route != "spawn" or run.state is not RunState.SUCCEEDED or not run.expects:
            return
        token = silence(outcome.text, TokenContext.ANNOUNCE).token
        if token is None:
            return
        run.outcome = replace(outcome, text=None, missing=True)
        if token is Token.ANNOUNCE_SKIP or self.s.limits.compat is Compat.V2026_7:
            run.delivery = DeliveryState.NOT_REQUIRED

    def _by_child(self, run: Run, owner: Run, caller: Actor) -> DeliverTo:
        """(a): the child calls its parent's actor itself; the registry repeats only if that is not confirmed (3)."""
        s = self.s
        self._hand_off(run, HandOff.at(s.clock.mono()))
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

    def _hand_off(self, run: Run, hand_off: HandOff) -> None:
        run.hand_off = hand_off
        run.redeliver_at = hand_off.look_at(self.s.limits.announce_timeout_ms / 1000)
        self.s.at(run.redeliver_at, run)

    def again(self, run: Run) -> None:
        """What was handed off is not confirmed, or the wait after a failed attempt is over (2, 4)."""
        s = self.s
        target = s.sessions.get(run.deliver_to)
        receiver = self.birth.receiver_of(run.deliver_to)
        run.redeliver_at = None
        if target is None or run.id not in target.pending:
            return
        if not receiver:
            parent = self._run_above(run, target)
            if parent is not None and not target.run and takes_further_turns(s, target):
                self._revive(run, parent, target)
            return
        now, hand_off = s.clock.mono(), run.hand_off
        if hand_off is not None and hand_off.over(now, s.limits.announce_timeout_ms / 1000):
            self._unanswered(run, target)
            hand_off = hand_off.anew(now)
        if hand_off is None or hand_off.is_said_again:
            run.attempts += 1
            self.down.tell(receiver, self.birth.completed(run, receiver))
            hand_off = HandOff.at(now) if hand_off is None else hand_off.again(now)
        self._hand_off(run, hand_off)

    def _unanswered(self, run: Run, target: Session) -> None:
        """A live receiver has not said in time that it has it: is its process still there for us? (2)"""
        s = self.s
        text = f"{target.key} did not take it within {s.limits.announce_timeout_ms} ms (announceTimeoutMs), and lives"
        if run.last_error != text:
            run.last_error = text
            s.touch(run)
            s.event("warning", run, text=f"its announce is not accepted yet: {text}")
        owner = s.runs.get(target.run)
        if owner is not None and owner.in_turn:
            s.effect(ReportAsk(owner.actor))

    def got(self, runs: tuple[str, ...]) -> None:
        """The receiver has these announces: from here on they may wait there for any time (2)."""
        for run_id in runs:
            run = self.s.runs.get(run_id)
            if run is not None:
                run.redeliver_at = run.hand_off = None

    def consumed(self, receiver: str, runs: tuple[str, ...]) -> None:
        """Completions were given to a program (4); fenced by who it is that says so."""
        for run_id in runs:
            run = self.s.runs.get(run_id)
            if run is not None and run.terminal and self.birth.receiver_of(run.deliver_to) == receiver:
                self.mark_delivered(run)

    def consumed_in_turn(self, run: Run, *, over: bool) -> None:
        """Completions that went into the turn's start have been given to it; one whose large value is still on its way
        only once the turn is ``over``."""
        if run.talk is not None:
            self.birth.talks.given(run, self.s.sessions[run.session])
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
        run.redeliver_at = run.hand_off = None
        s.touch(run)
        self.retire_if_done(run)

    def is_silent(self, run: Run) -> bool:
        """A stopped run does not announce (DESIGN.md 8), nor one of whom no completion is expected, or that says so."""
        return run.state is RunState.CANCELLED or (run.route == "spawn" and run.delivery is DeliveryState.NOT_REQUIRED)

    def forget_delivery(self, run: Run) -> None:
        """Nobody is left to tell, or nobody is to be told: a killed run does not announce."""
        target = self.s.sessions.get(run.deliver_to)
        if target is not None:
            target.pending.pop(run.id, None)
        if run.delivery is DeliveryState.PENDING:
            silent = run.state is RunState.CANCELLED
            run.delivery = DeliveryState.NOT_REQUIRED if silent else DeliveryState.DISCARDED
        run.deliver_to = ""
        run.redeliver_at = run.hand_off = None
        self.drop_value(run)
        self.s.touch(run)
        self.retire_if_done(run)
