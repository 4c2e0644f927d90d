"""Deliveries by hand: asking once more for one that was given up, and giving one up (SPEC.md F6; DESIGN.md 8).

1. **redeliver** begins the attempts of a suspended delivery anew, or of one that failed, if somebody is there to be
   told. One that is under way is left as it is: asked again, either is as the first time.
2. **dismiss** gives one up that is pending, suspended or failed: nobody is told any more.
3. Of a run that has not ended, or whose end needs no delivery, or was delivered, neither changes anything.
4. A run whose delivery failed has left memory: for a new attempt it comes back, and leaves with it.
"""

from __future__ import annotations

from enum import StrEnum

from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State

__all__ = ["DeliveryWord", "Redelivering"]


class DeliveryWord(StrEnum):
    """The registry's word on a delivery that an operator wants changed."""

    DONE = "done"
    """Done, now or before."""
    UNKNOWN = "unknown"
    """There is no such run."""
    OPEN = "open"
    """The run has not ended: there is nothing to deliver yet."""
    NOT_REQUIRED = "not_required"
    """Its end is announced to nobody."""
    DELIVERED = "delivered"
    """It was delivered."""
    DISCARDED = "discarded"
    """It was dismissed, or its requester was stopped."""
    NOBODY = "nobody"
    """Nobody is there to be told."""


class Redelivering:
    """What operators do to deliveries."""

    def __init__(self, state: State, ending: Ending) -> None:
        self.s = state
        self.ending = ending

    def redeliver(self, run_id: str) -> DeliveryWord:
        """Begin the attempts anew (1)."""
        run = self.s.journaled_run(run_id)
        if run is None:
            return DeliveryWord.UNKNOWN
        if not run.terminal:
            return DeliveryWord.OPEN
        match run.delivery:
            case DeliveryState.PENDING:
                return DeliveryWord.DONE
            case DeliveryState.SUSPENDED:
                self._begin(run)
                return DeliveryWord.DONE
            case DeliveryState.FAILED:
                return self._bring_back(run)
            case other:
                return DeliveryWord(other.value)

    def dismiss(self, run_id: str) -> DeliveryWord:
        """Give it up (2)."""
        s = self.s
        run = s.journaled_run(run_id)
        if run is None:
            return DeliveryWord.UNKNOWN
        if not run.terminal:
            return DeliveryWord.OPEN
        if run.delivery in (DeliveryState.NOT_REQUIRED, DeliveryState.DELIVERED):
            return DeliveryWord(run.delivery.value)
        if run.delivery is not DeliveryState.DISCARDED:
            run.delivery, run.suspended_at = DeliveryState.DISCARDED, None
            if run.id in s.runs:
                self.ending.forget_delivery(run)
            else:
                s.retire(run)
        return DeliveryWord.DONE

    def _begin(self, run: Run) -> None:
        run.delivery, run.suspended_at = DeliveryState.PENDING, None
        run.failed_attempts = run.attempts = 0
        self.s.touch(run)
        self.ending.route(run)

    def _bring_back(self, run: Run) -> DeliveryWord:
        s = self.s
        target = s.sessions.get(run.requester)
        if target is None or not self._hears(target):
            return DeliveryWord.NOBODY
        if run.id not in s.runs:
            s.runs[run.id] = run
            parent = s.runs.get(run.parent)
            if parent is not None:
                parent.children[run.id] = None
        run.deliver_to, run.fallback = target.key, False
        self._begin(run)
        return DeliveryWord.DONE

    def _hears(self, target: Session) -> bool:
        """Whether a session can come to have a turn, or is a client that is there."""
        if target.client:
            client = self.s.clients.get(target.client)
            return client is not None and not client.gone
        return target.state in ("passive", "active") and target.agent in self.s.agents
