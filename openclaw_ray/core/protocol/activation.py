"""The session process's side: which turn it runs, what it will not start, what it owes (PROTOCOL.md 3.4, 4.2, 6.4).

1. A start is accepted if its epoch is not older than the actor's own and its activation is not in the stopped set. The
   same activation again is no second turn.
2. A stop of an activation that has not been seen goes into the stopped set: the start that it overtook is refused.
3. The outcome stays in the outbox until the registry's verdict; a newer grant is such a verdict.
4. ``die_if`` names a run, so that an innocent successor is never hit.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum

from openclaw_ray.core.protocol.messages import Report, Settled, Spec

__all__ = ["Activation", "StartAnswer"]

_REMEMBER = 4096
"""Activations remembered as stopped or seen; far more than can be on their way at once."""


class StartAnswer(StrEnum):
    """What to do with a start."""

    RUN = "run"
    """Run the turn."""
    REPEAT = "repeat"
    """It was here before: nothing is to be done."""
    EPOCH = "epoch"
    """Refused: it belongs to an older grant."""
    STOPPED = "stopped"
    """Refused: a stop has overtaken it."""


class Activation:
    """What one session actor knows of its grants; pure, guarded by the actor's lock."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self.epoch = 0
        self.spec: Spec | None = None
        self.stopping: str | None = None
        self.outbox: dict[str, Settled] = {}
        self.held: dict[str, object] = {}
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._seen: OrderedDict[str, None] = OrderedDict()

    # ------------------------------------------------------------------ start

    def start(self, epoch: int, spec: Spec) -> StartAnswer:
        """Accept a start or say why not (1)."""
        if self.seen(spec.activation):
            return StartAnswer.REPEAT
        if not self.fresh(epoch):
            return StartAnswer.EPOCH
        if self.is_stopped(spec.activation):
            self._remember(self._seen, spec.activation)
            del self._stopped[spec.activation]
            return StartAnswer.STOPPED
        self._remember(self._seen, spec.activation)
        self.epoch = epoch
        self.spec = spec
        self.stopping = None
        self.outbox.clear()
        self.held.clear()
        return StartAnswer.RUN

    def has_seen(self, activation: str) -> bool:
        """Whether a start of this activation was here, whatever became of it."""
        return activation in self._seen

    def fresh(self, epoch: int) -> bool:
        """The epoch fence."""
        return epoch >= self.epoch

    def seen(self, activation: str) -> bool:
        """Whether a start of it was here before, accepted or not."""
        return activation in self._seen

    def runs(self, activation: str) -> bool:
        """Whether its turn is the one that runs here now."""
        return self.spec is not None and self.spec.activation == activation

    def is_stopped(self, activation: str) -> bool:
        """The stopped-set fence."""
        return activation in self._stopped

    # ------------------------------------------------------------------ stop

    def stop(self, activation: str, reason: str, mark: int) -> bool:
        """A stop or timeout of an activation; True if its turn runs here now and is to be cancelled (2).

        A stop without a mark's number is not one (PROTOCOL.md 6.2); a negative one is of this run alone.
        """
        if reason == "stopped" and mark == 0:
            return False
        if self.runs(activation):
            if self.stopping is None:
                self.stopping = reason
            return True
        if not self.seen(activation):
            self._remember(self._stopped, activation)
        return False

    def dies_for(self, run: str) -> bool:
        """Whether this process is to end itself for ``run`` (4)."""
        return self.spec is not None and self.spec.run == run

    # ------------------------------------------------------------------ end

    def settled(self, event: Settled) -> None:
        """The turn has ended: its outcome waits for the verdict (3)."""
        self.outbox[event.run] = event
        if self.runs(event.activation):
            self.spec = None
            self.stopping = None

    def verdict(self, run: str) -> None:
        """The registry has decided."""
        self.outbox.pop(run, None)

    def report(self) -> Report:
        """What this actor runs and still owes."""
        spec = self.spec
        return Report(
            self.actor,
            self.epoch,
            spec.activation if spec else "",
            spec.run if spec else "",
            tuple(event.activation for event in self.outbox.values()),
            tuple(self.held),
            tuple(self._stopped),
        )

    @staticmethod
    def _remember(where: OrderedDict[str, None], activation: str) -> None:
        where[activation] = None
        while len(where) > _REMEMBER:
            where.popitem(last=False)
