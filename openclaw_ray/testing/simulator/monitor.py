"""What must hold at every moment, seen from outside: the journal's history, the turns that run, what programs are given.

1. A run has one terminal state; it and its outcome never change once they are in the journal.
2. An activation runs at most once, on one actor; at most one turn of a session runs whose events could count.
3. The turns of a lane that run are never more than its width.
4. Nothing is granted under a stop mark, and no turn begins under one after the stop's report was given.
5. A completion is given to a program at most once per activation, and it says what the journal says.
6. A stop's report counts every run under its mark once, and all of them are terminal.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.lifecycle import DeliveryState, RunKind, RunState, result_status
from openclaw_ray.core.mapping import BACK_PRESSURE
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.messages import Completed, Spec
from openclaw_ray.core.protocol.records import Actor, Mark, Run
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.results import Receipt, Result, StopReport
from openclaw_ray.testing.simulator.audit import registry_faults

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["InvariantBroken", "Monitor", "RunView"]

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
    """A run as the journal has it."""

    values: tuple[Any, ...]
    born: int
    ended_at: int | None = None
    granted: float = 0.0
    """Wall-clock seconds of its first grant, which the start's own word comes after."""
    marks: set[int] = field(default_factory=set)

    def __getitem__(self, name: str) -> Any:
        return self.values[_RUN[name]]

    @property
    def state(self) -> RunState:
        """Its state."""
        state: RunState = self.values[_RUN["state"]]
        return state


@dataclass(slots=True)
class _Turn:
    actor: str
    epoch: int
    spec: Spec
    waits: bool = False


@dataclass(slots=True)
class _MarkView:
    seq: int
    stop: str
    key: str
    runs: tuple[str, ...]
    commit: int
    reported: bool = False


class Monitor:
    """The invariants of one schedule, checked while it runs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.commits = 0
        self.runs: dict[str, RunView] = {}
        self.children: dict[str, list[str]] = {}
        self.actors: dict[str, tuple[Any, ...]] = {}
        self.marks: dict[int, _MarkView] = {}
        self.turns: dict[str, _Turn] = {}
        self.begun: dict[str, str] = {}
        self.granted_to: dict[str, str] = {}
        self.given: set[tuple[str, str]] = set()
        self.programs = 0
        self.reports = 0
        self.forced = 0
        self.starts = 0
        self.maps = 0
        self._heard: set[tuple[str, str]] = set()
        self._used: dict[str, int] = {}
        self._klass: dict[str, Any] = {}
        self._unclean: set[str] = set()
        self._stopped_unseen: set[str] = set()

    def broken(self, rule: str, detail: str) -> None:
        """Say that an invariant does not hold."""
        raise InvariantBroken(rule, detail)

    # ------------------------------------------------------------------ the journal's history

    def committed(self, writes: Sequence[Write]) -> None:
        """A transaction is in the journal."""
        self.commits += 1
        ended: list[str] = []
        discarded: list[str] = []
        for write in writes:
            if write.table in ("runs", "roots") and write.data is not None:
                run_id = str(write.key)
                before = self.runs.get(run_id)
                was = before["delivery"] if before is not None else None
                if self._run(run_id, pickle.loads(write.data)):
                    ended.append(run_id)
                if self.runs[run_id]["delivery"] is DeliveryState.DISCARDED is not was:
                    discarded.append(run_id)
            elif write.table == "actors":
                if write.data is None:
                    self.actors.pop(str(write.key), None)
                else:
                    self.actors[str(write.key)] = pickle.loads(write.data)
            elif write.table == "marks" and write.data is not None:
                seq = int(write.key)
                if seq not in self.marks:
                    values = pickle.loads(write.data)
                    self.marks[seq] = _MarkView(
                        seq, values[_MARK["stop"]], values[_MARK["key"]], values[_MARK["runs"]], self.commits
                    )
        for run_id in ended:
            self._ended(run_id)
        for run_id in discarded:
            self._discarded(run_id)

    def _run(self, run_id: str, values: tuple[Any, ...]) -> bool:
        """Take in a run's record; True if it has ended with it."""
        view = self.runs.get(run_id)
        if view is None:
            view = self.runs[run_id] = RunView(values, self.commits)
            self.children.setdefault(view["parent"], []).append(run_id)
        old, state = view.values, values[_RUN["state"]]
        view.values = values
        if not view.granted and values[_RUN["started"]] is not None:
            view.granted = values[_RUN["started"]]
        if values[_RUN["mark"]]:
            view.marks.add(values[_RUN["mark"]])
        if view.ended_at is not None:
            if state is not old[_RUN["state"]]:
                self.broken("one terminal state", f"{run_id} went from {old[_RUN['state']]} to {state}")
            if values[_RUN["outcome"]] != old[_RUN["outcome"]]:
                self.broken("frozen outcome", f"{run_id} ended as {old[_RUN['outcome']]}, now {values[_RUN['outcome']]}")
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
            below = [child for child in self.children.get(run_id, ()) if not self.runs[child].state.terminal]
            if below:
                self.broken("a run ends after its children", f"{run_id} succeeded while {below} are open")

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
        """A completion is given up: something above it was stopped, or its client has left without having been given it."""
        stopped = any(view.state is RunState.CANCELLED for _, view in self.above(run_id))
        clients = [v["client"] for _, v in self.above(run_id) if v["route"] == "driver" and v.state.terminal]
        if not stopped and not clients:
            self.broken("each announce is delivered", f"{run_id} is discarded, nothing above it was stopped")
        for client in clients:
            if (client, run_id) in self.given and self.cluster.network.find(client) is not None and not stopped:
                self.broken("what is consumed is delivered", f"{run_id} was given to {client} and is discarded")

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
        binding: set[int] = set()
        below = 0
        for _, view in self.above(run_id):
            if view["route"] == "driver":
                binding |= {mark for mark in view.marks if below < mark}
            else:
                binding |= view.marks
            below = view["seq"]
        return binding

    def under(self, mark: int) -> list[str]:
        """All runs that a mark binds, drivers' roots left out."""
        tops = [run_id for run_id, view in self.runs.items() if mark in view.marks]
        if not tops and self.marks[mark].runs:  # two marks in one transaction: the journal has the later one only
            tops = [run_id for run_id, view in self.runs.items() if view["session"] == self.marks[mark].key]
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
        if activation in self._stopped_unseen:
            self.broken("a stop that overtakes its start holds", f"{activation} of {spec.run} begins on {actor}")
        if spec.kind == RunKind.WAKE:
            open_children = [c for c in self.children.get(spec.run, ()) if not self.runs[c].state.terminal]
            if open_children:
                self.broken("one wake when all have ended", f"{spec.run} is woken while {open_children} are open")
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

    def program_runs(self, activation: str) -> None:
        """An agent's code begins."""
        self.programs += 1

    def _counts(self, turn: _Turn) -> bool:
        """Whether what this turn says would still count: it is not fenced."""
        run = self.runs.get(turn.spec.run)
        if run is None or run.state.terminal or run["activation"] != turn.spec.activation:
            return False
        actor = self.actors.get(turn.actor)
        return actor is not None and actor[_ACTOR["epoch"]] <= turn.epoch

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

    # ------------------------------------------------------------------ what programs get

    def answered(self, run_id: str, receipt: Receipt) -> None:
        """A program was told whether its child is admitted."""
        if receipt.accepted and run_id not in self.runs:
            self.broken("accepted after recorded", f"{run_id} was accepted and is not in the journal")

    def asked_before(self, stop: str, run_id: str) -> None:
        """A run was asked for before a stop of all that its requester has, and is accepted."""
        mark = next((m for m in self.marks.values() if m.stop == stop), None)
        if mark is not None and self.runs[run_id]["seq"] > mark.seq:
            self.broken("nothing asked for before a stop is born after it", f"{run_id} and {stop}")

    def heard(self, receiver: str, run_id: str) -> None:
        """A completion has come to a turn or a client."""
        if (receiver, run_id) in self._heard:
            self.broken("each message once", f"the end of {run_id} came to {receiver} twice")
        self._heard.add((receiver, run_id))

    def used(self, run_id: str, tokens: int) -> None:
        """A turn reports usage."""
        self._used[run_id] = self._used.get(run_id, 0) + tokens

    def usage_faults(self) -> list[str]:
        """Runs whose usage is not what their turns reported."""
        found = []
        for run_id, view in self.runs.items():
            counted, reported = view["usage"].input_tokens or 0, self._used.get(run_id, 0)
            if counted > reported or (view.state is RunState.SUCCEEDED and counted < reported):
                found.append(f"{run_id} has used {reported} tokens, {counted} are counted")
        return found

    def handed(self, receiver: str, completed: Completed) -> None:
        """A completion is given to a program."""
        key = (receiver, completed.run)
        if key in self.given:
            self.broken("a completion once", f"{completed.run} was given to {receiver} twice")
        self.given.add(key)
        view = self.runs.get(completed.run)
        if view is None or not view.state.terminal:
            self.broken("a completion is of an ended run", f"{completed.run} given to {receiver}")
        elif completed.completion.result.status is not result_status(view.state):
            self.broken(
                "a completion says what the journal says",
                f"{completed.run}: {completed.completion.result.status} and {view.state}",
            )

    def value_lost(self, run_id: str, holder: str) -> None:
        """A large value is not where it was said to be."""
        process = self.cluster.network.find(holder)
        if process is not None and holder != "pool" and not self.cluster.pool_deaths:
            self.broken("a value is lost with its process only", f"{run_id}, held by {holder}, which lives")

    def mapped(self, receiver: str, items: int, results: Sequence[Result[object]]) -> None:
        """A map has handed out its results."""
        self.maps += 1
        if [r.index for r in results] != list(range(items)):
            self.broken("a map's results in order", f"{receiver}: {[r.index for r in results]} of {items}")
        full = [r.index for r in results if r.error is not None and BACK_PRESSURE in r.error.message]
        if full:
            self.broken("a full house is back-pressure", f"{receiver}: items {full} were refused")

    def stop_reported(self, stop: str, report: StopReport) -> None:
        """A stop's report was given."""
        mark = next((m for m in self.marks.values() if m.stop == stop), None)
        if mark is None:
            self.broken("a stop has a mark", f"{stop} is reported and not in the journal")
            return
        mark.reported = True
        self.reports += 1
        self.forced += report.forced
        under = self.under(mark.seq)
        views = [self.runs[run_id] for run_id in under]
        open_runs = [run_id for run_id in under if not self.runs[run_id].state.terminal]
        if open_runs:
            self.broken("a stop is complete", f"{stop} is reported while {open_runs} are open")
        ended = [v.ended_at or 0 for v in views]
        cancelled = [v.ended_at or 0 for v in views if v.state is RunState.CANCELLED]
        before = sum(1 for at in ended if at < mark.commit)
        least = sum(1 for at in cancelled if at > mark.commit)
        most = least + sum(1 for at in cancelled if at == mark.commit)  # another stop of that step may have been first
        if (
            (report.total, report.failed) != (len(under), 0)
            or report.finished < before
            or not least <= report.stopped <= most
        ):
            self.broken(
                "a stop's counts add up",
                f"{stop}: {report} where {len(under)} are under the mark, {before} had ended, {most} were stopped",
            )

    # ------------------------------------------------------------------ the registry's memory

    def transaction(self, core: Registry) -> None:
        """After each transaction: what is cheap to look at; the rest now and then."""
        s = core.s
        if s.bound > s.pool_max:
            self.broken("actors under the ceiling", f"{s.bound} bound of {s.pool_max}")
        for lane in s.lanes.statistics():
            if 0 < lane.width < lane.taken:
                self.broken("lane width", f"{lane.taken} slots taken in {lane.lane} of width {lane.width}")
        most = s.limits.max_active_sessions
        if most is not None and s.turns_running > most:
            self.broken("maxActiveSessions", f"{s.turns_running} turns of {most}")
        if self.cluster.world.random.random() < self.cluster.looks:
            self.look(core)

    def look(self, core: Registry) -> None:
        """Count everything anew, and compare with a registry made from the journal."""
        faults = registry_faults(core, self.cluster.journal, self.cluster.setup)
        if faults:
            self.broken("what is counted is what is there", "; ".join(faults))

    def rebuilt(self, core: Registry) -> None:
        """A registry was made from the journal."""
        self.look(core)
