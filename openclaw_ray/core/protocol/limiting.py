"""Rate limits that sessions share: who is let in, in which step, and what becomes of it (``ray.limits``).

1. `LimitAsk` puts a turn in line. It is let in by the step that asks, if it can be; else by the one in which a place is
   given back, or by the clock. It hears of it by `Permit`, which rides in the answer to its own step where it can.
2. What a turn asks for or holds is in its run's record: a new incarnation has the same line and the same holders. It
   begins with an empty bucket, as it does not know what was taken last: a crash lets nobody in too early.
3. `LimitDone` gives the place back, or takes the request out of the line. A turn that is over in any way, by its end, a
   stop or the death of its process, has given back all that it held.
4. A limit whose every place is held by sessions that wait above the one that asks would never let it in: that is
   refused at once, by the step that asks or by the one in which the last of them begins to wait. So is a name that is
   not in the configuration.
5. `BackOff` from one session lets nobody in for so long. A reload changes the rules in place: who is out stays out, who
   waits keeps its place; of a limit that is gone all are let in.
"""

from __future__ import annotations

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import BackOff, LimitAsk, LimitDone, Permit
from openclaw_ray.core.protocol.permits import Asked
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.rate_limits import LimitRule, RateLimit, Wanted

__all__ = ["HELD_ABOVE", "UNKNOWN", "Limiting"]

UNKNOWN = "unknown"
"""Why a request is refused: there is no such limit."""
HELD_ABOVE = "held_above"
"""Why a request is refused: all places are held by sessions that wait above (4)."""


class Limiting:
    """The limits of one registry incarnation."""

    def __init__(self, state: State, down: Down) -> None:
        self.s = state
        self.down = down
        self._rules: tuple[LimitRule, ...] = ()
        self._limits: dict[str, RateLimit] = {}
        self._whose: dict[str, str] = {}

    # ------------------------------------------------------------------ requests

    def asked(self, event: LimitAsk) -> None:
        """A turn gets in line (1)."""
        run = self._current(event.run, event.activation)
        if run is None or any(one.ask == event.ask for one in run.permits):
            return
        self._follow_rules()
        limit = self._limits.get(event.name)
        if limit is None:
            self._tell(run, event.ask, UNKNOWN, tuple(sorted(self._limits)))
        elif self._held_above(run, limit.rule):
            self._tell(run, event.ask, HELD_ABOVE, (str(limit.rule.concurrent),))
        else:
            run.permits = (*run.permits, Asked(event.ask, event.name, event.cost))
            self.s.touch(run)
            self._whose[event.ask] = run.id
            limit.ask(Wanted(event.ask, run.root, event.cost))
            self._let_in(limit)

    def done(self, event: LimitDone) -> None:
        """A turn gives back, or wants nothing any more (3)."""
        run = self._current(event.run, event.activation)
        if run is None:
            return
        over = [one for one in run.permits if one.ask == event.ask]
        run.permits = tuple(one for one in run.permits if one.ask != event.ask)
        self._over(run, over)

    def back_off(self, event: BackOff) -> None:
        """A session was told to slow down (5)."""
        self._follow_rules()
        run = self._current(event.run, event.activation)
        limit = self._limits.get(event.name)
        if run is not None and limit is not None:
            limit.back_off(event.seconds, self.s.clock.mono())
            self.s.event("backoff", run, text=f"limit {event.name}: nobody is let in for {event.seconds:g} s")

    def paused(self, run: Run) -> None:
        """A run waits from now on; what is below it may wait for what it holds (4)."""
        for name in {one.name for one in run.permits if one.held}:
            limit = self._limits.get(name)
            for below in self._below(run) if limit is not None else ():
                asked = [one for one in below.permits if one.name == name and not one.held]
                if limit is None or not asked or not self._held_above(below, limit.rule):
                    continue
                below.permits = tuple(one for one in below.permits if one not in asked)
                self._over(below, asked)
                for one in asked:
                    self._tell(below, one.ask, HELD_ABOVE, (str(limit.rule.concurrent),))

    def _below(self, run: Run) -> list[Run]:
        found = [self.s.runs[each] for each in lineage.subtree(self.s.runs, run.id) if each in self.s.runs]
        return [below for below in found if below is not run and below.permits]

    def left(self, run: Run) -> None:
        """The run's turn is over (3)."""
        if run.permits:
            over, run.permits = run.permits, ()
            self._over(run, over)

    def _over(self, run: Run, over: list[Asked] | tuple[Asked, ...]) -> None:
        if not over:
            return
        self.s.touch(run)
        for one in over:
            self._whose.pop(one.ask, None)
            limit = self._limits.get(one.name)
            if limit is not None:
                limit.give_back(one.ask)
                self._let_in(limit)

    def _held_above(self, run: Run, rule: LimitRule) -> bool:
        if rule.concurrent is None:
            return False
        held = 0
        for above in lineage.ancestors(self.s.runs, run):
            assert isinstance(above, Run)
            if above.state is RunState.PAUSED:
                held += sum(one.held and one.name == rule.name for one in above.permits)
        return held >= rule.concurrent

    # ------------------------------------------------------------------ letting in

    def due(self) -> None:
        """What time lets in."""
        self._follow_rules()
        for limit in self._limits.values():
            if limit.waiting:
                self._let_in(limit)

    def next_at(self, now: float, latest: float) -> float:
        """When `due` is to be called next."""
        times = [at for limit in self._limits.values() if limit.waiting and (at := limit.next_at(now)) is not None]
        return min([latest, *times])

    def _let_in(self, limit: RateLimit) -> None:
        for wanted in limit.grant(self.s.clock.mono()):
            self._permit(wanted.id)

    def _permit(self, ask: str) -> None:
        run = self.s.runs[self._whose[ask]]
        run.permits = tuple(Asked(one.ask, one.name, one.cost, one.held or one.ask == ask) for one in run.permits)
        self.s.touch(run)
        self._tell(run, ask)

    def _tell(self, run: Run, ask: str, why: str = "", detail: tuple[str, ...] = ()) -> None:
        self.down.tell(run.activation, Permit(ask, why, detail))

    def _current(self, run_id: str, activation: str) -> Run | None:
        run = self.s.runs.get(run_id)
        if run is None or run.activation != activation or run.terminal or not run.actor:
            return None
        return run

    # ------------------------------------------------------------------ rules

    def restore(self) -> None:
        """The lines and holders of an older incarnation (2)."""
        now = self.s.clock.mono()
        self._rules = self.s.limits.rates
        tokens = None if self.s.incarnation == 1 else 0.0
        self._limits = {rule.name: RateLimit(rule, now, tokens) for rule in self._rules}
        for run in sorted((run for run in self.s.runs.values() if run.permits), key=lambda run: run.seq):
            for one in run.permits:
                self._whose[one.ask] = run.id
                limit = self._limits.get(one.name)
                if limit is None or one.held:
                    if limit is not None and limit.rule.concurrent is not None:
                        limit.holds(one.ask)
                    self._permit(one.ask)
                else:
                    limit.ask(Wanted(one.ask, run.root, one.cost))

    def _follow_rules(self) -> None:
        """Go by the rules in force (5)."""
        if self.s.limits.rates is self._rules:
            return
        now = self.s.clock.mono()
        self._rules = self.s.limits.rates
        before, self._limits = self._limits, {}
        for rule in self._rules:
            limit = before.pop(rule.name) if rule.name in before else RateLimit(rule, now)
            self._limits[rule.name] = limit
            limit.change(rule, now)
            self._let_in(limit)
        for name in before:
            for run in list(self.s.runs.values()):
                for one in run.permits:
                    if one.name == name and not one.held:
                        self._permit(one.ask)

    def statistics(self) -> dict[str, tuple[int, int]]:
        """For each limit, how many hold a place and how many wait."""
        self._follow_rules()
        return {name: (len(limit.out), limit.waiting) for name, limit in self._limits.items()}
