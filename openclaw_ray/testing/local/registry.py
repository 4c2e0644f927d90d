"""The registry of a local runtime: the real one over a journal in memory, behind one lock, with its duties around it.

1. Every entry takes the lock, changes the core and commits; effects follow when the lock is free, as calls in the
   thread that made the change.
2. It is its own hub: transcript rows and events are kept here, messages for clients are handed over at once.
3. It is its own pool: an actor that it asks for is a `LocalSession`, which is two threads.
4. Time is told by a thread, or, with a clock that stands still, by whoever moves it.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_ray.actors.auth_desk import AuthDesk
from openclaw_ray.actors.registry_views import Views
from openclaw_ray.actors.wire import pack
from openclaw_ray.core.branching import branched
from openclaw_ray.core.clock import Clock, SystemClock
from openclaw_ray.core.events import Event
from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.core.named_map import ClaimAnswer
from openclaw_ray.core.protocol.hubstate import HubBatch
from openclaw_ray.core.protocol.journal import MemoryJournal
from openclaw_ray.core.protocol.messages import (
    Answer,
    Branch,
    Completed,
    DieIf,
    Effect,
    Exit,
    Grow,
    Kill,
    Notify,
    ReportAsk,
    Row,
    Start,
    Step,
    Stop,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.reports import report_of
from openclaw_ray.core.protocol.retention import Cursor
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.core.protocol.thread_rows import thread_rows
from openclaw_ray.core.protocol.upkeep import Done
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.session_asks import Asker, SessionAnswer
from openclaw_ray.core.transcript_pages import TranscriptPage, cut_page
from openclaw_ray.testing.local.session import LocalHandle, LocalSession

if TYPE_CHECKING:
    from openclaw_ray.agents.bundle import Bundle
    from openclaw_ray.testing.local.client import LocalClient

__all__ = ["LocalRegistry"]

_NODE = "here"
_LOOK_EVERY = 0.02
T = TypeVar("T")


class LocalRegistry:
    """One per local runtime.

    Args:
        clock: the machine's if not given. One with ``watch``, as `FakeClock` has, tells when it is moved.
        auth: a credential store of the test's, shared by all agents.
    """

    def __init__(
        self,
        name: str,
        limits: RuntimeLimits,
        pool_max: int,
        clock: Clock | None,
        auth: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.limits = limits
        self.pool_max = pool_max
        self.lock = threading.RLock()
        self.core = Registry(
            MemoryJournal(), limits, clock or SystemClock(), pool_max=pool_max, cpus=os.cpu_count() or 1
        )
        self.auth_desk = AuthDesk(self, os.environ, auth)
        self.core.s.auth_scopes = self.auth_desk.scopes
        self.sessions: dict[str, LocalSession] = {}
        self.left: list[LocalSession] = []
        self.client: LocalClient | None = None
        self._views = Views(self.core.s.journal, _NODE)
        self._rows: dict[str, list[Row]] = {}
        self._events: list[Event] = []
        self._news = threading.Condition(self.lock)
        self._closed = False
        self._wake = threading.Event()
        self._planned = 0.0
        self._longest = 1.0 if clock is None else _LOOK_EVERY
        watch: Callable[[Callable[[], None]], Callable[[], None]] | None = getattr(clock, "watch", None)
        self.stands_still = watch is not None
        self._unwatch = watch(self.tick) if watch is not None else None
        self._thread = threading.Thread(target=self._tell_time, name="openclaw-clock", daemon=True)
        self.enter(lambda core: core.open_boot(name))
        if watch is None:
            self._thread.start()

    # ------------------------------------------------------------------ entries

    def step(self, step: Step) -> Answer:
        """A courier's step."""
        return self._change(lambda core: core.step(step))

    def enter(self, change: Callable[[Registry], tuple[Effect, ...]]) -> None:
        """An entry of another kind."""
        self._change(lambda core: (None, change(core)))

    def tick(self) -> None:
        """What time does."""
        if not self._closed:
            self._change(lambda core: (None, core.tick()), ticks=True)

    def register(self, entries: list[AgentEntry], bundle: Bundle) -> None:
        """Agents that the runtime knows from now on."""
        self.auth_desk.look({entry.id: entry.limits.auth for entry in entries})
        self.enter(lambda core: core.register(entries, bundle.id, bundle.data, bundle.paths))

    def _change(self, change: Callable[[Registry], tuple[T, tuple[Effect, ...]]], *, ticks: bool = False) -> T:
        with self.lock:
            out, effects = change(self.core)
            batch = self.core.take_batch()
            if batch is not None:
                self._keep(batch)
            now, due = self.core.s.clock.mono(), self.core.next_due()
            if due < self._planned:
                self._wake.set()
        self.perform(effects)
        client = self.client
        if batch is not None and client is not None:
            for receiver, numbered in batch.messages.items():
                client.courier.arrived(receiver, self.core.s.incarnation, numbered)
        if self.stands_still and due <= now and not ticks:
            self.tick()  # the clock had moved before this was known, and nobody may move it again
        return out

    def _keep(self, batch: HubBatch) -> None:
        """Rows and events (2)."""
        for number, _, packed in batch.rows:
            row: Any = pickle.loads(packed)
            if isinstance(row, Row):
                self._rows.setdefault(row.session_id, []).append(row)
            elif isinstance(row, Branch):
                source = self._rows.get(row.source, ())
                self._rows.setdefault(row.session_id, list(branched(source, row.session_id, row.source)))
            else:  # there are no files here: an archived transcript is just not shown any more
                self._rows.pop(row.session_id, None)
            self.core.s.journal.delete_upto("rows", number)
        if batch.events:
            self._events += [pickle.loads(event) for _, event in batch.events]
            self._news.notify_all()

    # ------------------------------------------------------------------ effects

    def perform(self, effects: tuple[Effect, ...]) -> None:
        """Do what the core wants done (1)."""
        for effect in effects:
            if isinstance(effect, Grow):
                self._grow(effect)
                continue
            session = self.sessions.get(getattr(effect, "actor", ""))
            if session is None:
                continue
            match effect:
                case Start():
                    session.granted(effect.epoch, effect.spec)
                case Notify():
                    session.courier.arrived(effect.activation, effect.incarnation, effect.messages)
                case Stop():
                    session.stop(effect.run, effect.activation, effect.reason, effect.mark)
                case DieIf():
                    session.die_if(effect.run)
                case ReportAsk():
                    report = session.report()
                    self.enter(lambda core, report=report: core.reported(report))  # type: ignore[misc]
                case Kill() | Exit():
                    session.end(effect.why)

    def _grow(self, effect: Grow) -> None:
        """Actors (3); what they would ask of Ray does not matter here."""
        for actor in effect.actors:
            with self.lock:
                if self._closed:
                    return
                session = self.sessions[actor] = LocalSession(self, actor)
            session.begin()

    def handle(self, actor: str) -> LocalHandle:
        """The handle of an actor.

        Raises:
            ValueError: it has ended.
        """
        session = self.sessions.get(actor)
        if session is None:
            raise ValueError(f"{actor} has ended")
        return session.handle

    def ended_session(self, session: LocalSession, why: str) -> None:
        """An actor has ended; its thread may go on for a while, and nothing from it counts."""
        with self.lock:
            if self.sessions.pop(session.actor_id, None) is None:
                return
            self.left = [*(each for each in self.left if each.alive), session]
        self.enter(lambda core: core.died(session.actor_id, why))

    def crash(self, key: str, *, noticed: bool) -> None:
        """The session's stand-in process is gone, with or without a notice of it.

        Raises:
            ValueError: it has no turn in one.
        """
        with self.lock:
            session = self.core.s.sessions.get(key)
            run = self.core.s.runs.get(session.run) if session is not None else None
            process = self.sessions.get(run.actor) if run is not None else None
            if process is None:
                raise ValueError(f"session {key} has no turn that could crash")
            if not noticed:
                del self.core.s.actors[process.actor_id]
                self.core.s.drop("actors", process.actor_id)
        process.end("it was crashed")

    # ------------------------------------------------------------------ questions

    def since_grant(self, run_id: str) -> float:
        """Seconds since a run was granted its actor, by the registry's clock."""
        with self.lock:
            run = self.core.s.runs.get(run_id)
            return 0.0 if run is None else self.core.s.clock.mono() - run.granted_at

    def bundle(self, bundle: str) -> tuple[bytes, tuple[str, ...]]:
        """Agents' code."""
        with self.lock:
            return self.core.bundle(bundle)

    def agents(self) -> dict[str, AgentEntry]:
        """The agents that the runtime knows."""
        with self.lock:
            return dict(self.core.s.agents)

    def view(
        self, what: str, filters: dict[str, Any], limit: int, offset: int, asker: Asker | None = None
    ) -> list[Any]:
        """Rows of runs or sessions."""
        with self.lock:
            return self._views.rows(self.core, what, filters, limit, offset, asker)

    def session(self, key: str, asker: Asker | None = None) -> dict[str, Any] | None:
        """One session's row."""
        with self.lock:
            return self._views.session(self.core, key, asker)

    def auth_view(self, target: str) -> dict[str, Any]:
        """What an agent, or a session's, has in reach of credentials."""
        return self.auth_desk.view(target)

    def ended(self, run_id: str, asker: Asker | None = None) -> Completed | None:
        """The end of a run; `None` while it goes on.

        Raises:
            KeyError: there is no such run.
        """
        with self.lock:
            self._views.check_run(self.core, run_id, asker)
            return self.core.ended(run_id)

    def maintain(self, runs: list[str], apply: bool) -> list[Done]:
        """Upkeep of the ledger."""
        return self._change(lambda core: core.maintain(runs, apply=apply))

    def retain(self, cursor: Cursor, apply: bool) -> tuple[list[Done], Cursor | None]:
        """One look of a round of retention."""
        return self._change(lambda core: core.retain(cursor, apply=apply))

    def stop_report(self, run_id: str) -> tuple[StopReport | None, bool]:
        """The report of the stop that ended a run.

        Raises:
            KeyError: there is no such run.
        """
        with self.lock:
            return report_of(self.core.s, self.core.ending, run_id)

    def delete(self, key: str, session_id: str, revision: int, asker: Asker | None = None) -> str:
        """Delete a session that was seen so; gives a word of `CleanupWord`."""
        return self._change(lambda core: core.delete(key, session_id, revision, asker)).value

    def reset(self, key: str, session_id: str, revision: int, new_id: str, asker: Asker | None = None) -> str:
        """Begin a session that was seen so anew under ``new_id``; gives a word of `CleanupWord`."""
        return self._change(lambda core: core.reset(key, session_id, revision, new_id, asker)).value

    def patch(
        self, asker: Asker | None, key: str, label: str, session_id: str | None = None, revision: int | None = None
    ) -> SessionAnswer:
        """Change a session's label."""
        return self._change(lambda core: core.patch(asker, key, label, session_id, revision))

    def asked(self, asker: Asker | None, what: str, given: Mapping[str, Any]) -> SessionAnswer:
        """What a turn, or the operator, is told of sessions."""
        with self.lock:
            return self.core.views.answer(asker, what, given)

    def unbind(self, key: str) -> int:
        """Drop the conversations of a session; gives how many."""
        return self._change(lambda core: core.unbind(key))

    def conversations(self) -> list[dict[str, Any]]:
        """What is bound."""
        with self.lock:
            return thread_rows(self.core.s)

    def redeliver(self, run_id: str) -> str:
        """Begin a delivery anew; gives a word of `DeliveryWord`."""
        return self._change(lambda core: core.redeliver(run_id)).value

    def dismiss(self, run_id: str) -> str:
        """Give a delivery up; gives a word of `DeliveryWord`."""
        return self._change(lambda core: core.dismiss(run_id)).value

    def claim_map(self, map_id: str, claim: str, client: str, receiver: str) -> ClaimAnswer:
        """A client wants the map of this name for itself."""
        return self._change(lambda core: core.claim_map(map_id, claim, client, receiver))

    def map_page(self, map_id: str, page: int) -> bytes:
        """What earlier tries of a map left for one page of positions."""
        with self.lock:
            return pack(self.core.maps.page(map_id, page))

    def last_event(self) -> int:
        """The journal's newest number."""
        with self.lock:
            return self.core.s.seq

    def events_after(self, seq: int, wait: float) -> list[Event]:
        """Events above ``seq``, waited for up to so many seconds of real time."""
        with self.lock:
            if not (self._events and self._events[-1].seq > seq) and not self._closed:
                self._news.wait(wait)
            return [event for event in self._events if event.seq > seq]

    def rows(self, session_id: str, limit: int, offset: int) -> list[Row]:
        """A page of a transcript, newest last."""
        with self.lock:
            rows = self._rows.get(session_id, [])
            return rows[max(0, len(rows) - offset - limit) : max(0, len(rows) - offset)]

    def transcript(self, session_id: str, limit: int, offset: int, anchor: str = "") -> TranscriptPage:
        """A page of a transcript with the number of all rows."""
        with self.lock:
            return cut_page(self._rows.get(session_id, []), limit, offset, anchor)

    def all_rows(self, session_id: str) -> list[Row]:
        """A whole transcript."""
        with self.lock:
            return list(self._rows.get(session_id, ()))

    def info(self) -> dict[str, Any]:
        """The counts."""
        with self.lock:
            return {
                "pid": os.getpid(),
                "incarnation": self.core.s.incarnation,
                "counts": self._views.counts(self.core),
                "waiting": self._views.waiting(self.core),
                "retired": dict(self.core.s.retired_actors),
            }

    # ------------------------------------------------------------------ time and end

    def _tell_time(self) -> None:
        clock = self.core.s.clock
        while not self._closed:
            with self.lock:
                self._planned = self.core.next_due()
                wait = self._planned - clock.mono()
            self._wake.wait(min(self._longest, max(0.001, wait)))
            self._wake.clear()
            self.tick()

    def still_running(self) -> list[LocalSession]:
        """Sessions that were ended while their turn went on, and whose turn still does."""
        with self.lock:
            return [session for session in self.left if session.in_turn]

    def close(self, grace: float) -> None:
        """End everything; turns get ``grace`` seconds of real time to end by themselves."""
        with self.lock:
            self._closed = True
            sessions = list(self.sessions.values())
            self.sessions.clear()
            self._news.notify_all()
        if self._unwatch is not None:
            self._unwatch()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(grace)
        for session in sessions:
            session.end("the runtime was closed")
        self.left += sessions
        until = time.monotonic() + grace
        for session in self.left:
            session.join(max(0.0, until - time.monotonic()))
