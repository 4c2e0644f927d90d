"""The turns that run, and the processes that they run in.

1. An activation runs at most once, on one actor; at most one turn of a session runs whose events could count.
2. The turns of a lane that run are never more than its width.
3. Nothing is granted under a stop mark, and no turn begins under one after the stop's report was given.
4. A process is of one re-use class, is not used again after a turn that left something behind, and is ended only for
   what runs in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.lifecycle import DeliveryState, RunKind
from openclaw_ray.core.protocol.messages import Spec
from openclaw_ray.testing.simulator.history import History

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["TurnWatch"]


@dataclass(slots=True)
class _Turn:
    actor: str
    epoch: int
    spec: Spec
    waits: bool = False


class TurnWatch(History):
    """What must hold of turns while they run."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.turns: dict[str, _Turn] = {}
        self.begun: dict[str, str] = {}
        self.granted_to: dict[str, str] = {}
        self.starts = 0
        self._klass: dict[str, Any] = {}
        self._unclean: set[str] = set()
        self._stopped_unseen: set[str] = set()
        self._woken: set[tuple[str, int]] = set()

    # ------------------------------------------------------------------ grants and turns

    def granted(self, actor: str, epoch: int, spec: Spec) -> None:
        """The registry sends a start."""
        self.starts += 1
        first = self.granted_to.setdefault(spec.activation, actor)
        if first != actor:
            self.broken("one actor per activation", f"{spec.activation} was sent to {first}, now to {actor}")
        if self.marks_on(spec.run):
            self.broken("no start under a mark", f"{spec.run} is under {self.marks_on(spec.run)} and is started")

    def turn_begins(self, actor: str, epoch: int, spec: Spec) -> None:
        """A session process begins a turn."""
        activation = spec.activation
        if activation in self.begun:
            self.broken("an activation runs once", f"{activation} ran on {self.begun[activation]}, now on {actor}")
        self.begun[activation] = actor
        self._process_fits(actor, spec)
        self.talks.turn_begins(spec)
        self.threads.turn_begins(spec)
        if activation in self._stopped_unseen:
            self.broken("a stop that overtakes its start holds", f"{activation} of {spec.run} begins on {actor}")
        if spec.kind == RunKind.WAKE:
            self._wakes(spec)
        for mark in self.marks_on(spec.run):
            process = self.cluster.network.find(actor)
            reachable = process is not None and process.killable
            if reachable and mark in self.marks and self.marks[mark].reported:
                self.broken("no turn after a stop's report", f"{activation} of {spec.run} begins under mark {mark}")
        turn = _Turn(actor, epoch, spec)
        self.turns[activation] = turn
        if self._counts(turn):
            for other, running in self.turns.items():
                if other != activation and running.spec.session_key == spec.session_key and self._counts(running):
                    self.broken("one turn at a time", f"{activation} begins while {other} runs on {running.actor}")
            self._lane(turn)

    def _wakes(self, spec: Spec) -> None:
        """A wake comes once all of its batch have ended, with all ends that no turn was given, and once for each batch
        (PROTOCOL.md 3.5, 5.4)."""
        waits = self.runs[spec.run]["waits"]
        children = self.children.get(spec.run, ())
        open_children = [c for c in waits.batch if not self.runs[c].state.terminal]
        if open_children:
            self.broken("one wake when all have ended", f"{spec.run} is woken while {open_children} are open")
        wake = (spec.run, waits.generation)
        if wake in self._woken:
            self.broken("one wake when all have ended", f"{spec.run} is woken twice for batch {waits.generation}")
        self._woken.add(wake)
        carried = {completed.run for completed in spec.completions}
        early = [c for c in waits.batch if c not in carried and self.runs[c]["delivery"] is DeliveryState.DELIVERED]
        if early:
            self.broken("one wake with every outcome", f"{spec.run} was told of {early} before its wake")
        ended = [c for c in children if c in waits.batch or self.runs[c].state.terminal]
        missing = [c for c in ended if self.runs[c]["deliver_to"] == spec.session_key and c not in carried]
        if missing:
            self.broken("a start carries what is pending", f"{spec.activation} begins without {missing}")

    def _process_fits(self, actor: str, spec: Spec) -> None:
        """One re-use class for each process, and none after a turn that left something behind (PROTOCOL.md 7.6)."""
        klass = self.runs[spec.run]["klass"]
        first = self._klass.setdefault(actor, klass)
        if first != klass:
            self.broken("one re-use class for each process", f"{actor} ran {first}, now {klass}")
        if actor in self._unclean:
            self.broken("an unclean process is not used again", f"{spec.activation} begins on {actor}")

    def left_unclean(self, actor: str) -> None:
        """A turn has left something behind in its process."""
        self._unclean.add(actor)

    def stopped_unseen(self, activation: str) -> None:
        """A session process was told to stop an activation that it has not seen."""
        self._stopped_unseen.add(activation)

    def ended_by_force(self, actor: str, run: str) -> None:
        """A session process ends itself for a run."""
        running = [t.spec.run for t in self.turns.values() if t.actor == actor]
        if running != [run]:
            self.broken("an innocent successor is never hit", f"{actor} dies for {run} and runs {running}")

    def killed(self, actor: str, why: str) -> None:
        """The pool kills a session process: nothing that counts may run there, but what was to end."""
        for turn in self.turns.values():
            if turn.actor == actor and self._counts(turn):
                run = self.runs[turn.spec.run]
                if not self.marks_on(turn.spec.run) and not run["expired"]:
                    self.broken("an innocent successor is never hit", f"{actor} with {turn.spec.run}: {why}")

    def turn_ends(self, activation: str) -> None:
        """A turn has ended, or died."""
        self.turns.pop(activation, None)

    def turn_waits(self, activation: str) -> None:
        """A turn waits for its children."""
        self.turns[activation].waits = True

    def turn_goes_on(self, activation: str) -> None:
        """A turn that waited has its slot back."""
        turn = self.turns[activation]
        turn.waits = False
        self._lane(turn)

    def _counts(self, turn: _Turn) -> bool:
        """Whether what this turn says would still count: it is not fenced."""
        run = self.runs.get(turn.spec.run)
        if run is None or run.state.terminal or run["activation"] != turn.spec.activation:
            return False
        epoch = self.epoch(turn.actor)
        return epoch is not None and epoch <= turn.epoch

    def _lane(self, turn: _Turn) -> None:
        run = self.runs[turn.spec.run]
        lane, width = run["lane"], run["lane_width"]
        if not lane or width <= 0:
            return
        running = [
            a
            for a, t in self.turns.items()
            if not t.waits and self.runs[t.spec.run]["lane"] == lane and self._counts(t)
        ]
        if len(running) > width:
            self.broken("lane width", f"{len(running)} turns run in {lane} of width {width}: {running}")
