"""Chaos: kill a runtime's own processes at random, the same at each run of a seed.

    with Killer(rt, [Victim.SESSION, Victim.REGISTRY], rate=1.0, seed=7) as killer:
        results = rt.map("worker", items)
    print(killer.blows)

1. Times between blows are exponential (a Poisson process), victims and signals are drawn from the same seeded source.
2. Whom to kill is asked of the runtime before each blow: the processes that registry, hub and pool report themselves.
   Nothing is ever found by its name or command line, and only Ray workers of this host are killed.
3. A blow that finds nobody (the registry is being started again, no session process is there) is not made up for.

`processes` and `kill` do one blow without chance.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.names import find_actor

if TYPE_CHECKING:
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["Blow", "Killer", "Victim", "kill", "processes"]

_ANSWER_WITHIN = 5.0


class Victim(StrEnum):
    """Which processes of a runtime."""

    SESSION = "session"
    """Session actors, idle ones included."""
    BUSY = "busy"
    """Session actors that have a session now."""
    REGISTRY = "registry"
    """The registry; Ray starts it again."""
    HUB = "hub"
    """The hub; Ray starts it again."""
    POOL = "pool"
    """The pool; all session actors go with it, and Ray starts it again."""


@dataclass(frozen=True, slots=True)
class Blow:
    """One signal that was sent: whom, which, and when (seconds since the epoch)."""

    victim: Victim
    pid: int
    signal: signal.Signals
    at: float


def processes(runtime: Runtime, victim: Victim) -> list[int]:
    """Process ids of this kind, rising; empty if there are none now, or nobody answers.

    Only processes of this host: workers of the raylet that this process is connected to.
    """
    found: list[int] = []
    with contextlib.suppress(Exception):  # whoever is asked may be dead just now
        if victim in (Victim.SESSION, Victim.BUSY):
            crew = _ask(runtime, "registry", "info")["counts"]["crew"].values()
            found = [pid for state, pid, _ in crew if pid and (victim is Victim.SESSION or state == "bound")]
        elif victim is Victim.REGISTRY:
            found = [_ask(runtime, "registry", "info")["pid"]]
        else:
            found = [_ask(runtime, victim.value, "ping")["pid"]]
    return sorted(pid for pid in found if _is_worker_here(pid))


def kill(runtime: Runtime, victim: Victim, number: signal.Signals = signal.SIGKILL) -> list[int]:
    """Send a signal to every process of this kind; gives their ids."""
    pids = processes(runtime, victim)
    return [pid for pid in pids if _send(pid, number)]


class Killer:
    """A thread that kills until it is left; see the module's text.

    Args:
        runtime: whose processes.
        victims: kinds to choose from, each as likely as it is often named.
        rate: blows a second, on average.
        seed: of the chances.
        signals: to choose from.
        most: blows after which it rests; `None` is no end.
    """

    def __init__(
        self,
        runtime: Runtime,
        victims: Iterable[Victim] = (Victim.SESSION,),
        *,
        rate: float = 1.0,
        seed: int = 0,
        signals: Iterable[signal.Signals] = (signal.SIGKILL,),
        most: int | None = None,
    ) -> None:
        if not rate > 0:
            raise ValueError(f"rate is a number of blows a second above 0, not {rate!r}")
        self._runtime = runtime
        self._victims = list(victims)
        self._signals = list(signals)
        self._rate = rate
        self._chance = random.Random(seed)
        self._most = most
        self._rest = threading.Event()
        self._blows: list[Blow] = []
        self._thread = threading.Thread(target=self._run, name="openclaw_ray-chaos", daemon=True)

    @property
    def blows(self) -> tuple[Blow, ...]:
        """What was done so far, in order."""
        return tuple(self._blows)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rest.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._rest.wait(self._chance.expovariate(self._rate)):
            # always three draws, so that a blow that finds nobody does not change those after it
            victim, number = self._chance.choice(self._victims), self._chance.choice(self._signals)
            place = self._chance.random()
            pids = processes(self._runtime, victim)
            if not pids:
                continue
            pid = pids[int(place * len(pids))]
            if _send(pid, number):
                self._blows.append(Blow(victim, pid, number, time.time()))
            if self._most is not None and len(self._blows) >= self._most:
                return


def _ask(runtime: Runtime, part: str, method: str) -> Any:
    import ray

    return ray.get(getattr(find_actor(runtime.name, part), method).remote(), timeout=_ANSWER_WITHIN)


def _is_worker_here(pid: int) -> bool:
    """A Ray worker of this host: its parent is a raylet. Pids of other nodes mostly are not."""
    import psutil

    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid).parent()
        return parent is not None and "raylet" in parent.name()
    return False


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
