"""The pool: it creates, and so owns, every session process, and ends them; it runs no user code (PROTOCOL.md 7.1).

1. ``grow`` creates actors one after the other, each on the node that is chosen for it (`placing`), and never waits for
   one; readiness is watched by one thread.
2. A creation that fails is reported with its cause; what no node can ever hold is said within ten seconds, what is
   still not placed then again and again: the registry knows whether that can last. One that dies after that, before the
   registry has met it, is reported as well: the pool stands on each actor itself.
3. ``hold`` takes large values whose requester has no process; the pool never reads them. A take that did not get
   through is made again; only a value that is gone with its process, or not there, is given up. One that is here is
   not taken again when it is asked for again: its actor let go of it as soon as it heard that it is here.
4. When this process dies, Ray ends all that it owns, and the next pool begins with nothing. Group ``life`` (1 thread)
   stands for that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError

from openclaw_ray.actors.asking import Line, later
from openclaw_ray.actors.carried import keep_carried
from openclaw_ray.actors.doors import SessionActor, remote
from openclaw_ray.actors.names import NAMESPACE, actor_name
from openclaw_ray.actors.placing import Places
from openclaw_ray.actors.raylet_watch import end_with_raylet
from openclaw_ray.actors.raylets import own_raylet, raylet_of
from openclaw_ray.actors.settings import SessionSettings
from openclaw_ray.core.placement import Asks

__all__ = ["Pool"]

_SAID_EVERY = 2.0
"""Seconds between two words about a process that is not placed yet."""


@dataclass(slots=True, eq=False)
class Growth:
    """A process that is on its way; ``look_at``: when it is time to say that it is still not placed (monotonic)."""

    actor: str
    asked: Asks
    since: float
    look_at: float


@dataclass(frozen=True, slots=True, eq=False)
class Taking:
    """A large value that is being taken from an actor, of which the pool reads only whether it came."""

    run: str
    actor: str
    handle: Any


class Pool:
    """The owner of the session processes of one runtime."""

    def __init__(self, settings: SessionSettings) -> None:
        self.settings = settings
        end_with_raylet()
        keep_carried(settings.runtime_env)
        self._actors: dict[str, Any] = {}
        self._places = Places(settings.scheduling)
        self._growing: dict[Any, Growth] = {}
        self._taking: dict[Any, Taking] = {}
        self._registry = Line(settings.runtime, "registry")
        self._values: dict[str, Any] = {}
        self._came: dict[str, Any] = {}
        self._here: dict[str, str] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._forever = threading.Event()
        threading.Thread(target=self._watch, name="openclaw-readiness", daemon=True).start()

    def grow(self, ids: tuple[str, ...], asked: Asks) -> None:
        """Create session actors (1)."""
        env = {"runtime_env": self.settings.runtime_env} if self.settings.runtime_env else {}
        cls = remote(SessionActor)
        for actor_id in ids:
            if actor_id in self._actors:
                continue
            try:
                handle = cls.options(
                    name=actor_name(self.settings.runtime, actor_id),
                    namespace=NAMESPACE,
                    max_restarts=0,
                    max_task_retries=0,
                    **env,
                    **self._places.options(actor_id, asked),
                ).remote(self.settings, actor_id)
            except (RayError, ValueError) as error:  # of that name there is one that is only just dying
                self._failed(actor_id, str(error))
                continue
            now = time.monotonic()
            with self._lock:
                self._actors[actor_id] = handle
                self._growing[handle.where.remote()] = Growth(actor_id, asked, now, now + self.settings.place_within)
            self._stand_on(actor_id, handle)
            self._work.set()

    def kill(self, actor_id: str, pid: int = 0) -> None:
        """End a session process at once; one of this host also by its ``pid``.

        Ray asks a process to end, waits five seconds for one that is frozen, and says meanwhile that it is dead.
        """
        with self._lock:
            handle = self._actors.pop(actor_id, None)
        self._places.gone(actor_id)
        if pid and raylet_of(pid) == own_raylet():  # a worker of our own raylet
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if handle is not None:
            ray.kill(handle)

    def hold(self, run: str, actor_id: str, handle: Any) -> None:
        """Take the large value of ``run`` from an actor (3)."""
        taking = Taking(run, actor_id, handle)
        with self._lock:
            here = self._here.get(run) == actor_id
            under_way = self._taking.get(self._came.get(run))
        if here:  # the answer to the first call, or the word that it is here, was lost
            self._registry.call("value_held", run, actor_id)
        elif under_way is None or under_way.actor != actor_id:  # else it was asked for again
            self._take(taking)

    def value(self, run: str) -> list[Any]:
        """The reference of a held value, for its requester; in a list, so that nothing is read here.

        Raises:
            KeyError: it is not here.
        """
        with self._lock:
            return [self._values[run]]

    def drop(self, run: str) -> None:
        """Let go of a held value."""
        with self._lock:
            self._forget(run)

    def owned(self) -> list[str]:
        """Ids of the session actors that it owns: created, and not ended by it."""
        with self._lock:
            return sorted(self._actors)

    def holds(self) -> list[str]:
        """Runs whose large values are here."""
        with self._lock:
            return sorted(self._values)

    def stand(self) -> None:
        """Never returns: its failure is the death notice."""
        self._forever.wait()

    def ping(self) -> dict[str, int]:
        """Sign of life: how many actors it owns."""
        return {"actors": len(self._actors), "pid": os.getpid()}

    # ------------------------------------------------------------------ readiness

    def _watch(self) -> None:
        while True:
            self._work.wait()
            with self._lock:
                refs = [*self._growing, *self._taking]
                if not refs:
                    self._work.clear()
                    continue
            done, pending = ray.wait(refs, num_returns=1, timeout=1.0)
            for ref in done:
                with self._lock:
                    taken = self._taking.get(ref)
                    grown = self._growing.pop(ref, None)
                if taken is not None:
                    self._taken(ref, taken)
                elif grown is not None:
                    self._grown(ref, grown)
            for ref in pending:
                self._look(ref)

    def _take(self, taking: Taking) -> None:
        came, value = taking.handle.park.remote(taking.run)
        with self._lock:
            self._values[taking.run] = value
            self._taking[came] = taking
            self._came[taking.run] = came
        self._work.set()

    def _taken(self, came: Any, taking: Taking) -> None:
        """Say that it is here, or lost with its process, of which the registry hears by itself; a call that only fell
        says nothing of the value, and is made again (3)."""
        error: RayError | None = None
        try:
            ray.get(came)
        except RayError as fell:
            error = fell
        again = isinstance(error, ActorUnavailableError)
        with self._lock:  # at no moment it is neither under way nor here: whoever asks again then would take it again
            self._taking.pop(came, None)
            if self._came.get(taking.run) is not came:
                return  # dropped, or taken from somebody else, meanwhile
            if error is None:
                self._here[taking.run] = taking.actor
            elif not again:
                self._forget(taking.run)
        if again:
            later(self._take_again, came, taking)
        else:
            self._registry.call("value_held", taking.run, taking.actor)

    def _forget(self, run: str) -> None:
        for kept in (self._values, self._came, self._here):
            kept.pop(run, None)

    def _take_again(self, came: Any, taking: Taking) -> None:
        with self._lock:
            wanted = self._came.get(taking.run) is came
        if wanted:
            self._take(taking)

    def _stand_on(self, actor_id: str, handle: Any) -> None:
        """Hear of its end until the registry has met it, and after (2); a word that comes twice is harmless."""

        def fell(call: Future[Any]) -> None:
            error = call.exception()
            if isinstance(error, ActorUnavailableError):
                later(self._stand_on, actor_id, handle)
            elif actor_id in self._actors:  # else it was ended from here; not on a callback thread of Ray's
                later(self._lost, actor_id, handle, error)

        handle.stand.remote().future().add_done_callback(fell)

    def _lost(self, actor_id: str, handle: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._actors.get(actor_id) is not handle:
                return
        why = _cause(error) if isinstance(error, RayError) else "its process ended"
        self._failed(actor_id, why)

    def _grown(self, ref: Any, growth: Growth) -> None:
        try:
            node, free = ray.get(ref)
            if growth.actor in self._actors:  # else it was ended meanwhile
                self._places.came(growth.actor, node, free)
        except ActorUnavailableError:  # nothing is known of it yet
            with self._lock:
                handle = self._actors.get(growth.actor)
                if handle is not None:
                    self._growing[handle.where.remote()] = growth
        except RayError as error:
            self._failed(growth.actor, _cause(error))

    def _look(self, ref: Any) -> None:
        """Whether what is pending can ever be placed, and what the registry makes of it if it can (2)."""
        with self._lock:
            growth = self._growing.get(ref)
        if growth is None or not self._places.asks(growth.asked) or time.monotonic() < growth.look_at:
            return
        growth.look_at = time.monotonic() + _SAID_EVERY
        has = self._places.never(growth.asked)
        if has is None:
            self._registry.call("growth_waits", growth.actor, self._places.total(growth.asked))
            return
        with self._lock:
            self._growing.pop(ref, None)
        self.kill(growth.actor)
        self._failed(growth.actor, "no node can hold it", has)

    def _failed(self, actor_id: str, why: str, has: dict[str, float] | None = None) -> None:
        """``has``: the most that a node has of what this one needs, if that is not enough."""
        with self._lock:
            self._actors.pop(actor_id, None)
        self._places.failed(actor_id)
        self._registry.call("growth_failed", actor_id, why, has)


def _cause(error: RayError) -> str:
    if isinstance(error, RayActorError) and error.__cause__ is not None:
        return str(error.__cause__)
    return str(error)
