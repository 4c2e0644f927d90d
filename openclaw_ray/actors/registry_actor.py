"""The registry's process: the pure `Registry` behind one lock, and threads for all that waits (PROTOCOL.md 1.7).

Groups: ``step`` (1 thread) for couriers; ``query`` (2) for lists and code; ``notice`` (1) for what the pool reports;
``wait`` (1) for a starter that waits for the first session process; ``auth`` (4) for credentials, which are in files or
with programs.

1. Every entry takes the lock, changes the core, commits, and gives effects; they are performed after the lock is free.
2. A change that fails leaves memory ahead of the journal: the core is thrown away, and nothing more is done before a
   new incarnation could be built from the journal. Until then steps are answered "unavailable" with the store's reason.
3. Threads: the clock, the hub's pusher, the pool's line, death notices, reports. None of them is waited for by a step.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import ray

from openclaw_ray.actors.auth_desk import AuthDesk
from openclaw_ray.actors.auth_entries import AuthEntries
from openclaw_ray.actors.cluster_watch import ClusterWatch
from openclaw_ray.actors.crew_watch import CrewWatch
from openclaw_ray.actors.hub_push import HubPush
from openclaw_ray.actors.lifetime import LastLease, hold_state
from openclaw_ray.actors.metrics import MetricsLine
from openclaw_ray.actors.neighbours import Neighbours
from openclaw_ray.actors.pool_line import PoolLine
from openclaw_ray.actors.raylet_watch import end_with_raylet
from openclaw_ray.actors.registry_entries import OperatorEntries
from openclaw_ray.actors.registry_views import Views
from openclaw_ray.actors.settings import RegistrySettings
from openclaw_ray.actors.wire import pack, pack_spec, unpack
from openclaw_ray.core.clock import SystemClock
from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.metrics import Tally
from openclaw_ray.core.protocol.authing import auth_of
from openclaw_ray.core.protocol.journal import Journal, JournalFault, MemoryJournal
from openclaw_ray.core.protocol.messages import (
    Answer,
    Completed,
    DieIf,
    DropValue,
    Effect,
    Exit,
    Grow,
    Hello,
    HoldValue,
    Join,
    Kill,
    Notify,
    Report,
    ReportAsk,
    Start,
    Step,
    Stop,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.reloading import kept_limits
from openclaw_ray.core.protocol.reports import report_of
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.session_asks import Asker
from openclaw_ray.store.pruning import prune_archives
from openclaw_ray.store.sqlite_journal import SqliteJournal

__all__ = ["RegistryActor"]

_PRUNE_EVERY = 3600.0
"""Seconds between two looks for archived transcripts that are past their time."""
_LOOK_EVERY = 0.2
"""Seconds between two looks at the processes of clients."""
_MEND_EVERY = 0.2
"""Seconds between two tries to begin anew from a journal that refuses."""
T = TypeVar("T")


class RegistryActor(OperatorEntries, AuthEntries):
    """One per runtime."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        end_with_raylet()
        self.clock = SystemClock()
        self.lock = threading.RLock()
        self.wake = threading.Event()
        self.arrival = threading.Event()
        with warnings.catch_warnings():  # Ray's own code for this uses what Ray itself has deprecated
            warnings.simplefilter("ignore")
            self._again = bool(ray.get_runtime_context().was_current_actor_reconstructed)
        self.state_lock = hold_state(settings)
        self.last_lease = LastLease(settings)
        self.ready = self._again
        self.journal = self._open()
        self._code: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self._broken = False
        self.auth_desk = AuthDesk(self, os.environ)
        self.core = self._first_core()
        self.auth_desk.look({one.id: rules for one in self.core.s.agents.values() if (rules := auth_of(one))})
        self.pool = PoolLine(self)
        self.crew = CrewWatch(self)
        self.hub = HubPush(self)
        self.neighbours = Neighbours()
        self.tally: Tally | None = None
        self.metrics = MetricsLine(self)
        self.cluster = ClusterWatch(self, again=self._again)
        self.views = Views(self.journal, ray.get_runtime_context().get_node_id())
        self._faults = 0
        self._step_times: deque[float] = deque(maxlen=4096)
        if not self._broken:
            first = (*self.core.open_boot(settings.boot, settings.recover), *self.core.prewarm(settings.prewarm))
            self.crew.find_again(list(self.core.s.actors.values()))
            self.perform(first)
        threads = {
            "clock": self._clock,
            "cluster": self.cluster.run,
            "hub": self.hub.run,
            "pool": self.pool.stand,
            "leases": self._leases,
            "checkpoints": self._checkpoints,
            "pruning": self._prune,
            "metrics": self.metrics.run,
        }
        for name, target in threads.items():
            threading.Thread(target=target, name=f"openclaw-{name}", daemon=True).start()

    def _open(self) -> SqliteJournal:
        """Open the journal; a registry that is started again must not end for good because its disk is full now."""
        s = self.settings
        while True:
            try:
                return SqliteJournal(os.path.join(s.state_dir, "registry.sqlite"), sync=s.limits.journal_sync.value)
            except JournalError:
                if not self._again:
                    raise
                time.sleep(_MEND_EVERY)

    def _first_core(self) -> Registry:
        try:
            return self._build(self.journal)
        except JournalFault:
            if not self._again:
                raise
            self._broken = True
            return self._build(MemoryJournal())  # stands in, unchanged, until it can be mended

    def _build(self, journal: Journal) -> Registry:
        s = self.settings
        s = self.settings = replace(s, limits=kept_limits(journal, s.boot, s.limits))
        core = Registry(journal, s.limits, self.clock, pool_max=s.pool_max, cpus=s.cpus)
        core.s.auth_scopes = self.auth_desk.scopes
        return core

    # ------------------------------------------------------------------ entries

    def step(self, packed: Any) -> bytes:
        """One step of one courier; gives its packed `Answer`."""
        began = time.thread_time()
        step: Step = unpack(packed)
        try:
            answer = self._change(lambda core: core.step(step))
        except JournalFault as fault:
            return pack(
                Answer(self.core.s.incarnation, step.seq, "unavailable", detail=f"the journal refuses: {fault}")
            )
        self._step_times.append(time.thread_time() - began)
        for event in step.events:
            if isinstance(event, Hello):
                self.crew.met(event.actor)
                self.arrival.set()
            elif isinstance(event, Join) and event.leased:
                self.neighbours.met(event.client, event.host, event.pid)
        return pack(answer)

    def enter(self, change: Callable[[Registry], tuple[Effect, ...]]) -> bool:
        """An entry of another kind, from a thread of its own; False if the journal refused, and nothing was changed."""
        try:
            self._change(lambda core: (None, change(core)))
        except JournalFault:
            return False
        self.wake.set()
        return True

    def _change(self, change: Callable[[Registry], tuple[T, tuple[Effect, ...]]]) -> T:
        """Everything that changes the core goes through here (1, 2).

        Raises:
            JournalFault: nothing was changed.
        """
        with self.lock:
            effects = self._mend()
            try:
                out, more = change(self.core)
            except BaseException:
                self._broken = True
                self._faults += 1
                raise
        self.perform((*effects, *more))
        self.hub.nudge()
        return out

    def _mend(self) -> tuple[Effect, ...]:
        """Start anew from the journal, as after a crash, if memory is ahead of it (2).

        Raises:
            JournalFault: it still refuses.
        """
        if not self._broken:
            return ()
        handles = {a.id: a.handle for a in self.core.s.actors.values()}
        anew = self._build(self.journal)
        for actor in anew.s.actors.values():
            actor.handle = handles.get(actor.id)
        effects = (*anew.open_boot(self.settings.boot, self.settings.recover), *anew.tick())
        self.core, self._broken = anew, False
        self.crew.find_again(list(anew.s.actors.values()))
        return effects

    def growth_failed(self, actor_id: str, why: str, has: dict[str, float] | None) -> None:
        """The pool could not create an actor."""
        self.enter(lambda core: core.growth_failed(actor_id, why, has=has))

    def growth_waits(self, actor_id: str, total: dict[str, float]) -> None:
        """An actor that asks for something is still not placed."""
        self.enter(lambda core: core.growth_waits(actor_id, total))

    def hub_is_new(self, incarnation: str) -> None:
        """A hub has begun; if it is not the first, what no client has confirmed goes again."""
        self.hub.hub_is_new(incarnation)

    def value_held(self, run: str, actor_id: str) -> None:
        """The pool has taken a value."""
        self.enter(lambda core: core.value_held(run, actor_id))

    def grow_to(self, count: int) -> None:
        """Have at least ``count`` actors."""
        self.enter(lambda core: core.prewarm(count))

    def lend(self, who: str, timeout: float) -> tuple[str, Any] | None:
        """A free session process to try code on, waited for: its id and handle; `None` if none came in time.

        Asked again by the same ``who``, it is the same one.

        Raises:
            JournalFault: the journal refuses.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self.arrival.clear()
            lent = self._change(lambda core: core.lend(who))
            if lent is not None:
                return lent.id, lent.handle
            self.arrival.wait(0.1)
        return None

    def give_back(self, actor_id: str, why: str) -> None:
        """It has been tried; ``why`` it is not to be used again, if so."""
        self.enter(lambda core: core.give_back(actor_id, why))

    def view(
        self, what: str, filters: dict[str, Any], limit: int, offset: int, asker: Asker | None = None
    ) -> Any:
        """Lists of runs, sessions and events for people and programs, from the journal and memory; for a turn, those
        that it may see.

        Raises:
            SessionForbidden: it is not the turn that runs now, or asks for more than that.
        """
        with self.lock:
            return self.views.rows(self.core, what, filters, limit, offset, asker)

    def session(self, key: str, asker: Asker | None = None) -> dict[str, Any] | None:
        """One session's row.

        Raises:
            SessionForbidden: the turn that asks may not see it.
        """
        with self.lock:
            return self.views.session(self.core, key, asker)

    def ended(self, run_id: str, asker: Asker | None = None) -> Completed | None:
        """The end of a run, heard of before or not; `None` while it goes on.

        Raises:
            KeyError: there is no such run.
            SessionForbidden: the turn that asks may not hear of it.
        """
        with self.lock:
            effects = self._mend()
            try:
                self.views.check_run(self.core, run_id, asker)
                return self.core.ended(run_id)
            finally:
                self.perform(effects)

    def stop_report(self, run_id: str) -> tuple[StopReport | None, bool]:
        """The report of the stop that ended a run, see `openclaw_ray.core.protocol.reports`.

        Raises:
            KeyError: there is no such run.
        """
        with self.lock:
            return report_of(self.core.s, self.core.ending, run_id)

    def last_event(self) -> int:
        """The journal's newest number."""
        return self.core.s.seq

    def info(self) -> dict[str, Any]:
        """What a connecting process needs to know, and the counts."""
        with self.lock:
            return {
                "settings": self.settings,
                "ready": self.ready,
                "pid": os.getpid(),
                "incarnation": self.core.s.incarnation,
                "counts": self.views.counts(self.core),
                "waiting": self.views.waiting(self.core),
                "cpus_asked": self.cluster.asked,
                "retired": dict(self.core.s.retired_actors),
                "faults": self._faults,
                "step": _step_figures(list(self._step_times)),
            }

    # ------------------------------------------------------------------ effects

    def perform(self, effects: tuple[Effect, ...]) -> None:
        """Do what the core wants done, after the commit. Every call is one-way."""
        for effect in effects:
            match effect:
                case Start():
                    self._call(effect.actor, "start", effect.epoch, pack_spec(effect.spec))
                case Notify():
                    self._call(effect.actor, "notify", effect.activation, effect.incarnation, pack(effect.messages))
                case Stop():
                    self._call(effect.actor, "stop", effect.run, effect.activation, effect.reason, effect.mark)
                case DieIf():
                    self._call(effect.actor, "die_if", effect.run)
                case ReportAsk():
                    self.crew.ask(effect.actor)
                case Kill():
                    self.pool.call("kill", effect.actor, self._pid_here(effect.actor))
                case Exit():
                    self.pool.call("kill", effect.actor)
                case Grow():
                    self.pool.call("grow", effect.actors, effect.resources)
                case HoldValue():
                    handle = self.crew.handle(effect.actor)
                    if handle is not None:
                        self.pool.call("hold", effect.run, effect.actor, handle)
                case DropValue():
                    self.pool.call("drop", effect.run)

    def _pid_here(self, actor_id: str) -> int:
        """The pid of an actor on this node, where the pool is, too; 0 for others."""
        with self.lock:
            actor = self.core.s.actors.get(actor_id)
        return actor.pid if actor is not None and actor.node == self.views.node else 0

    def _call(self, actor: str, method: str, *args: Any) -> None:
        handle = self.crew.handle(actor)
        if handle is not None:
            getattr(handle, method).remote(*args)

    # ------------------------------------------------------------------ threads

    def _clock(self) -> None:
        while True:
            with self.lock:
                due = self.core.next_due()
            if self._broken:
                time.sleep(_MEND_EVERY)
            else:
                self.wake.wait(min(1.0, max(0.001, due - time.monotonic())))
            self.wake.clear()
            with contextlib.suppress(JournalFault):
                self._change(lambda core: (None, core.tick()))

    def _checkpoints(self) -> None:
        """Move the journal's log into its file once a second, on a connection of its own, so that no commit has to."""
        while True:
            time.sleep(1.0)
            with contextlib.suppress(JournalFault):
                self.journal.checkpoint()

    def _prune(self) -> None:
        """Remove the files of transcripts that were archived long ago, beside everything else."""
        while True:
            time.sleep(_PRUNE_EVERY)
            before = time.time() - self.core.s.limits.prune_after
            while prune_archives(self.settings.state_dir, before):
                time.sleep(1.0)

    def _leases(self) -> None:
        """Which clients have been silent for their lease, or ended before our eyes (PROTOCOL.md 2.5)."""
        lease = self.settings.limits.client_lease_seconds
        hub_at = 0.0
        while True:
            time.sleep(min(_LOOK_EVERY, lease / 3))
            with self.lock:
                leased = [c for c in self.core.s.clients.values() if c.root and c.leased and not c.gone]
                ids, places = [c.id for c in leased], [(c.id, c.host, c.pid) for c in leased]
            gone = self.neighbours.ended(places)
            if ids and time.monotonic() >= hub_at:
                gone |= set(self.hub.silent(ids, lease))
                hub_at = time.monotonic() + min(1.0, lease / 3)
            for client in gone:
                self.enter(lambda core, c=client: core.client_silent(c))  # type: ignore[misc]
            self.last_lease.look(bool(set(ids) - gone))

    def report_came(self, report: Report) -> None:
        """An actor said what it runs."""
        self.enter(lambda core: core.reported(report))


def _step_figures(seconds: list[float]) -> dict[str, float]:
    """CPU time of the newest steps, in milliseconds."""
    if not seconds:
        return {"steps": 0, "cpu_p50_ms": 0.0, "cpu_p99_ms": 0.0}
    ordered = sorted(seconds)
    return {
        "steps": len(ordered),
        "cpu_p50_ms": round(ordered[len(ordered) // 2] * 1000, 3),
        "cpu_p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 3),
    }
