"""Delivery: who hears of a terminal run, how, and until when (PROTOCOL.md 4.4, 4.5).

1. In the step of the end the delivery is routed: (a) the requester has a turn in a process: the verdict names its actor
   and the child calls ``deliver``; (b) it has none: the completion waits for the session's next start, and a complete
   batch causes that start in this very step; (c) a client: the downlink; (d) gone for good: its own requester, marked
   as fallback.
2. `Got` ends the retries. If the child's process dies before, the registry says it over the downlink at once, else
   after 5, 10 and 20 s.
3. `Consumed` writes ``delivered`` and the transcript row in one transaction, idempotent by announce key.
"""

from __future__ import annotations

from abc import abstractmethod

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import Cause, DeliveryState, RunState
from openclaw_ray.core.protocol.archiving import strand
from openclaw_ray.core.protocol.completion import completion_of
from openclaw_ray.core.protocol.marks import Marks
from openclaw_ray.core.protocol.messages import DeliverTo
from openclaw_ray.core.protocol.records import Actor, Run, Session

__all__ = ["REDELIVER", "Delivery"]

REDELIVER = (5.0, 10.0, 20.0)
"""Seconds before each repeat of an announce that a live receiver has not confirmed (PROTOCOL.md 4.5)."""


class Delivery(Marks):
    """Routing, repeating, consuming."""

    @abstractmethod
    def maybe_go_on(self, run: Run) -> None:
        """What a complete batch means for a paused requester is for those to say who end and start turns."""

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
        elif cause in (Cause.PROCESS_DIED, Cause.INTERRUPTED) or target.depth == 0:
            target.pending[run.id] = None  # the session may be activated again: it is not gone for good
            strand(self.s, target)
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
