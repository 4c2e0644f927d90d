"""The journal's history, as somebody outside of the registry sees it (DESIGN.md 3).

1. A run has one terminal state; it and its outcome never change once they are in the journal.
2. Only a stop cancels, and a stop wins over what a turn did. A run succeeds after its children have ended.
3. A run is timed out after its timeout, counted from its first start.
4. A completion is given up only if something above it was stopped, reset or archived, or if its client has left
   without it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.lifecycle import DeliveryState, RunState
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.records import Actor, Mark, Run
from openclaw_ray.testing.simulator.archive_watch import ArchiveWatch
from openclaw_ray.testing.simulator.talk_watch import TalkWatch
from openclaw_ray.testing.simulator.thread_watch import ThreadWatch

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["History", "InvariantBroken", "MarkView", "RunView"]

_LATE = 2.0
"""Seconds after its deadline by which a run is over in calm weather: grace, `die_if`, kill, notice."""
_RUN = {name: i for i, name in enumerate(Run.FIELDS)}
_ACTOR = {name: i for i, name in enumerate(Actor.FIELDS)}
_MARK = {name: i for i, name in enumerate(Mark.FIELDS)}


class InvariantBroken(AssertionError):
    """Something happened that must never happen; ``rule`` names which."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail


@dataclass(slots=True)
class RunView:
    """A run as the journal has it; its fields by name.

    Attributes:
        ended_at: the commit that ended it.
        granted: wall-clock seconds of its first grant, which the start's own word comes after.
        marks: the stop marks that were put on it. ``alone``: those that bind nothing below it.
    """

    values: tuple[Any, ...]
    ended_at: int | None = None
    granted: float = 0.0
    marks: set[int] = field(default_factory=set)
    alone: set[int] = field(default_factory=set)

    def __getitem__(self, name: str) -> Any:
        return self.values[_RUN[name]]

    @property
    def state(self) -> RunState:
        """Its state."""
        state: RunState = self.values[_RUN["state"]]
        return state


@dataclass(slots=True)
class MarkView:
    """A stop as it was journaled first, and whether its report was given."""

    seq: int
    stop: str
    key: str
    runs: tuple[str, ...]
    commit: int
    reported: bool = False


class History:
    """Runs, actors and marks as they were committed."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.commits = 0
        self.runs: dict[str, RunView] = {}
        self.children: dict[str, list[str]] = {}
        self.actors: dict[str, tuple[Any, ...]] = {}
        self.marks: dict[int, MarkView] = {}
        self.given: set[tuple[str, str]] = set()
        self.archives = ArchiveWatch(self)
        self.talks = TalkWatch(self)
        self.threads = ThreadWatch(self)

    def broken(self, rule: str, detail: str) -> None:
        """Say that an invariant does not hold."""
        raise InvariantBroken(rule, detail)

    def epoch(self, actor: str) -> int | None:
        """The journaled epoch of an actor, `None` if there is no such actor."""
        values = self.actors.get(actor)
        return None if values is None else values[_ACTOR["epoch"]]

    # ------------------------------------------------------------------ commits

    def committed(self, writes: Sequence[Write]) -> None:
        """A transaction is in the journal."""
        self.commits += 1
        ended: list[str] = []
        discarded: list[str] = []
        failed: list[str] = []
        for write in writes:
            if write.table in ("runs", "roots") and write.data is not None:
                run_id = str(write.key)
                before = self.runs.get(run_id)
                was = before["delivery"] if before is not None else None
                if self._run(run_id, pickle.loads(write.data)):
                    ended.append(run_id)
                if self.runs[run_id]["delivery"] is DeliveryState.DISCARDED is not was:
                    discarded.append(run_id)
                if self.runs[run_id]["delivery"] is DeliveryState.FAILED is not was:
                    failed.append(run_id)
            elif write.table == "actors":
                if write.data is None:
                    self.actors.pop(str(write.key), None)
                else:
                    self.actors[str(write.key)] = pickle.loads(write.data)
            elif write.table == "marks" and write.data is not None:
                seq = int(write.key)
                if seq not in self.marks:
                    values = pickle.loads(write.data)
                    self.marks[seq] = MarkView(
                        seq, values[_MARK["stop"]], values[_MARK["key"]], values[_MARK["runs"]], self.commits
                    )
        self.archives.committed(writes)
        self.threads.committed(writes, ended)
        for run_id in ended:
            self._ended(run_id)
        for run_id in discarded:
            self._discarded(run_id)
        for run_id in failed:
            self._failed(run_id)

    def _run(self, run_id: str, values: tuple[Any, ...]) -> bool:
        """Take in a run's record; True if it has ended with it."""
        view = self.runs.get(run_id)
        if view is None:
            view = self.runs[run_id] = RunView(values)
            self.children.setdefault(view["parent"], []).append(run_id)
        old, state = view.values, values[_RUN["state"]]
        if values[_RUN["parent"]] != view["parent"]:  # the run above was steered
            self.children[view["parent"]].remove(run_id)
            self.children.setdefault(values[_RUN["parent"]], []).append(run_id)
        view.values = values
        if not view.granted and values[_RUN["started"]] is not None:
            view.granted = values[_RUN["started"]]
        if mark := values[_RUN["mark"]]:
            (view.marks if mark > 0 else view.alone).add(abs(mark))
        if view.ended_at is not None:
            if state is not old[_RUN["state"]]:
                self.broken("one terminal state", f"{run_id} went from {old[_RUN['state']]} to {state}")
            if values[_RUN["outcome"]] != old[_RUN["outcome"]]:
                self.broken("frozen outcome", f"{run_id}: {old[_RUN['outcome']]}, then {values[_RUN['outcome']]}")
        elif state.terminal:
            view.ended_at = self.commits
            return True
        return False

    def _ended(self, run_id: str) -> None:
        """What must hold of a run that ends, once all of its transaction is known."""
        view = self.runs[run_id]
        self._in_time(run_id, view)
        if view["route"] == "driver":
            return
        if view.state is RunState.CANCELLED and not self.marks_on(run_id):
            self.broken("only a stop cancels", f"{run_id} is cancelled and under no mark")
        marks = [self.marks[m] for m in self.marks_on(run_id) if m in self.marks]
        if view.state is not RunState.CANCELLED and any(run_id in m.runs for m in marks):
            self.broken("a stop wins over what a turn did", f"{run_id} is {view.state} and was stopped before")
        if view.state is RunState.SUCCEEDED:
            below = [child for child in self.children.get(run_id, ()) if self._holds_up(self.runs[child])]
            if below:
                self.broken("a run ends after its children", f"{run_id} succeeded while {below} are open")

    def _holds_up(self, child: RunView) -> bool:
        """Whether the run above may not end yet: not for a child that only users hear of (`core.protocol.threads`)."""
        return not child.state.terminal and not (child["post"] and not child["expects"])

    def _in_time(self, run_id: str, view: RunView) -> None:
        """A run times out after its timeout counted from its first start, neither before nor much later."""
        timeout, started, ended = view["timeout"], view["started"], view["ended"]
        if started is None or not timeout:
            return
        lasted = ended - started
        granted = ended - view.granted
        if view.state is RunState.TIMED_OUT and granted < timeout - 1e-3:
            self.broken("no timeout too early", f"{run_id} was timed out after {granted:.3f} s of {timeout:g}")
        if self.cluster.schedule.weather == "calm" and lasted > timeout + _LATE:
            self.broken("timeouts hold", f"{run_id} lasted {lasted:.3f} s, its timeout is {timeout:g}")

    def _discarded(self, run_id: str) -> None:
        """Why a completion is given up: a stop above it, or a client that has left without having been given it."""
        born = self.runs[run_id]["seq"]
        above = [view for _, view in self.above(run_id)]
        marked = any(v["mark"] > 0 and (v["route"] != "driver" or born < v["mark"]) for v in above)
        stopped = any(v.state is RunState.CANCELLED for v in above)
        clients = [v["client"] for _, v in self.above(run_id) if v["route"] == "driver" and v.state.terminal]
        cleared = any(view["session"] in self.archives.cleared for _, view in self.above(run_id))
        if not stopped and not marked and not clients and not cleared:
            self.broken("each announce is delivered", f"{run_id} is discarded, and nothing above it was cleared")
        for client in clients:
            if (client, run_id) in self.given and not stopped and self.cluster.said_bye(client):
                self.broken("what is consumed is delivered", f"{run_id} was given to {client} and is discarded")

    def _failed(self, run_id: str) -> None:
        """A delivery fails for good only if its requester was archived first: nothing else here is permanent."""
        if not any(view["session"] in self.archives.cleared for _, view in self.above(run_id)):
            self.broken("each announce is delivered", f"{run_id} has failed, and nothing above it was archived")

    # ------------------------------------------------------------------ lineage and marks

    def above(self, run_id: str) -> Iterator[tuple[str, RunView]]:
        """A run and those above it."""
        view = self.runs.get(run_id)
        while view is not None:
            yield run_id, view
            run_id = view["parent"]
            view = self.runs.get(run_id)

    def marks_on(self, run_id: str) -> set[int]:
        """Marks that bind a run."""
        binding = set(self.runs[run_id].alone)
        below = 0
        for _, view in self.above(run_id):
            if view["route"] == "driver":
                binding |= {mark for mark in view.marks if below < mark}
            else:
                binding |= view.marks
            below = view["seq"]
        return binding

    def _with_another(self, own: MarkView) -> bool:
        return any(m.commit == own.commit and m.key == own.key and m is not own for m in self.marks.values())

    def maybe_under(self, mark: int) -> set[str]:
        """Runs that `under` names and that may have left memory before the mark, in the transaction of both."""
        own = self.marks[mark]
        if own.runs or not self._with_another(own) or any(mark in view.marks for view in self.runs.values()):
            return set()
        return {run for run in self.under(mark) if self.runs[run].state.terminal and not self.runs[run]["deliver_to"]}

    def under(self, mark: int) -> list[str]:
        """All runs that a mark binds, drivers' roots left out."""
        if alone := [run_id for run_id, view in self.runs.items() if mark in view.alone]:
            return alone
        tops = [run_id for run_id, view in self.runs.items() if mark in view.marks]
        own = self.marks[mark]
        if not tops and self._with_another(own):
            # two marks on one run in one transaction: of these the journal has the later one only
            tops = [run_id for run_id, view in self.runs.items() if view["session"] == own.key]
        found: dict[str, None] = {}
        level = list(tops)
        while level:
            deeper = []
            for run_id in level:
                view = self.runs[run_id]
                if view["route"] != "driver":
                    found[run_id] = None
                for child in self.children.get(run_id, ()):
                    if view["route"] != "driver" or self.runs[child]["seq"] < mark:
                        deeper.append(child)
            level = deeper
        return list(found)
