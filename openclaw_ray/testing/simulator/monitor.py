"""What must hold at every moment, seen from outside: besides history and turns, what programs are given.

1. A completion reaches a turn or a client once, is given to a program at most once, and says what the journal says.
2. A stop's report counts every run under its mark once, and all of them are terminal.
3. A map gives one result for each item, in order; a full house is no result.
4. An item of a named map has one run at a time, and none after it has succeeded.
5. What a registry counts is what its records say, and what a registry made from the journal has.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING

from openclaw_ray.core.lifecycle import RunState, result_status
from openclaw_ray.core.mapping import BACK_PRESSURE
from openclaw_ray.core.named_map import item_key
from openclaw_ray.core.protocol.messages import Completed
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.results import Receipt, Result, StopReport
from openclaw_ray.testing.simulator.audit import registry_faults
from openclaw_ray.testing.simulator.turn_watch import TurnWatch

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["Monitor"]


class Monitor(TurnWatch):
    """The invariants of one schedule, checked while it runs."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.reports = 0
        self.forced = 0
        self.maps = 0
        self.refused_maps = 0
        self._named = False
        self._items: set[str] = set()
        self._heard: set[tuple[str, str]] = set()
        self._used: dict[str, int] = {}

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
        maybe = len(self.maybe_under(mark.seq))
        if (
            not len(under) - maybe <= report.total <= len(under)
            or report.failed
            or report.finished < before - maybe
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
        if self._named or core.s.claims:
            self._named = True
            self._named_maps(core)
        if self.cluster.world.random.random() < self.cluster.looks:
            self.look(core)

    def _named_maps(self, core: Registry) -> None:
        """An item has one run at a time, and none after it has succeeded."""
        at_work: dict[str, str] = {}
        for run in core.s.runs.values():
            if run.item is None or run.terminal or run.index is None:
                continue
            key = item_key(run.item.map_id, run.index, run.item.digest)
            other = at_work.setdefault(key, run.id)
            if other != run.id:
                self.broken("one run of an item at a time", f"{run.id} and {other} are of item {key!r}")
            if run.id not in self._items:
                self._items.add(run.id)
                row = self.cluster.journal.get("items", key)
                if row is not None and pickle.loads(row)[3] == RunState.SUCCEEDED:
                    self.broken("nothing that has succeeded runs again", f"{run.id} is of item {key!r}")

    def look(self, core: Registry) -> None:
        """Count everything anew, and compare with a registry made from the journal."""
        faults = registry_faults(core, self.cluster.journal, self.cluster.setup)
        if faults:
            self.broken("what is counted is what is there", "; ".join(faults))

    def rebuilt(self, core: Registry) -> None:
        """A registry was made from the journal."""
        self.look(core)
