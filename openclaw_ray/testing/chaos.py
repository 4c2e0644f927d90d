"""Chaos: end a running runtime's own processes at random, the same at each run of a seed.

    with chaos(rt, seed=7, rate=0.5, kinds={"session", "registry", "hub"}, ways={"SIGKILL", "exit"}) as killer:
        results = rt.map("count", items, retries=20)
    for blow in killer.blows:
        print(f"{blow.at:.1f} {blow.victim} {blow.pid} {blow.way}")
    assert [result.index for result in results] == list(range(len(items)))
    assert all(result.ok for result in results)
    assert_at_rest(rt)

1. Times between blows are exponential (a Poisson process); victims and ways are drawn from the same seeded source.
2. Whom to end is asked of the runtime before each blow: the processes that registry, hub and pool report themselves.
   Nothing is ever found by its name or command line, and only Ray workers of this host are ended.
3. A blow that finds nobody (the registry is being started again, no session process is there) is not made up for.
4. Left, it deals no further blow and its thread has ended; what it ended comes back by the runtime's own means.

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
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_ray.actors.names import find_actor
from openclaw_ray.actors.raylets import raylet_of

if TYPE_CHECKING:
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["Blow", "Killer", "Victim", "Way", "chaos", "kill", "processes"]

EXIT_CODE = 86
"""Of a process that is had to end itself."""
_ANSWER_WITHIN = 5.0
_GONE_WITHIN = 2.0


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


class Way(StrEnum):
    """How a process is ended."""

    SIGKILL = "SIGKILL"
    """As the kernel's out-of-memory killer does it: at once, nothing of its own runs."""
    SIGSEGV = "SIGSEGV"
    """As a fault in native code does it: Ray's and Python's handlers report, then it is over."""
    SIGTERM = "SIGTERM"
    """As an operator does it."""
    EXIT = "exit"
    """By its own `os._exit`, with code 86; one that hears nothing lives on, and the blow does not count."""


@dataclass(frozen=True, slots=True)
class Blow:
    """One process that was ended: of which kind, how, and when (seconds since the epoch)."""

    victim: Victim
    pid: int
    way: Way
    at: float


def chaos(
    runtime: Runtime,
    *,
    seed: int = 0,
    rate: float = 1.0,
    kinds: Iterable[Victim | str] = (Victim.SESSION,),
    ways: Iterable[Way | str] = (Way.SIGKILL,),
    most: int | None = None,
) -> Killer:
    """A killer over a running runtime, at work while it is entered; see the module's text.

    Args:
        runtime: whose processes.
        seed: of all chances.
        rate: blows a second, on average.
        kinds: of processes, words of `Victim`; each is as likely as the others, in a set or as often as it is named.
        ways: words of `Way`.
        most: blows after which it rests; `None` is no end.

    Raises:
        ValueError: an unknown word, none at all, or a rate that is not above 0.
    """
    return Killer(runtime, kinds, rate=rate, seed=seed, ways=ways, most=most)


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
    """A thread that ends processes until it is left; made by `chaos`."""

    def __init__(
        self,
        runtime: Runtime,
        victims: Iterable[Victim | str] = (Victim.SESSION,),
        *,
        rate: float = 1.0,
        seed: int = 0,
        ways: Iterable[Way | str] = (Way.SIGKILL,),
        most: int | None = None,
    ) -> None:
        if not rate > 0:
            raise ValueError(f"rate is a number of blows a second above 0, not {rate!r}")
        self._runtime = runtime
        self._victims = _words(Victim, "kinds", victims)
        self._ways = _words(Way, "ways", ways)
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
        due = time.monotonic()
        while True:
            due += self._chance.expovariate(self._rate)
            if self._rest.wait(max(0.0, due - time.monotonic())):
                return
            # always three draws, so that a blow that finds nobody does not change those after it
            victim, way = self._chance.choice(self._victims), self._chance.choice(self._ways)
            place = self._chance.random()
            pids = processes(self._runtime, victim)
            if not pids:
                continue
            pid = pids[int(place * len(pids))]
            if self._end(victim, pid, way):
                self._blows.append(Blow(victim, pid, way, time.time()))
            if self._most is not None and len(self._blows) >= self._most:
                return

    def _end(self, victim: Victim, pid: int, way: Way) -> bool:
        if way is not Way.EXIT:
            return _send(pid, signal.Signals[way.value])
        with contextlib.suppress(Exception):  # it, or whoever knows its name, may be dead just now
            find_actor(self._runtime.name, _part(self._runtime, victim, pid)).__ray_call__.remote(_leave)
            return _gone(pid, _GONE_WITHIN)
        return False


def _ask(runtime: Runtime, part: str, method: str) -> Any:
    import ray

    return ray.get(getattr(find_actor(runtime.name, part), method).remote(), timeout=_ANSWER_WITHIN)


def _is_worker_here(pid: int) -> bool:
    """A Ray worker of this host. Pids of other nodes mostly are not."""
    return raylet_of(pid) != 0


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _leave(part: object) -> None:
    os._exit(EXIT_CODE)


def _part(runtime: Runtime, victim: Victim, pid: int) -> str:
    """The actor of this process, as it is named in the runtime."""
    if victim not in (Victim.SESSION, Victim.BUSY):
        return victim.value
    crew = _ask(runtime, "registry", "info")["counts"]["crew"]
    return str(next(actor for actor, (_, of_it, _) in crew.items() if of_it == pid))


def _gone(pid: int, timeout: float) -> bool:
    """Wait for the end of a process."""
    import psutil

    try:
        psutil.Process(pid).wait(timeout)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


W = TypeVar("W", bound=StrEnum)


def _words(kind: type[W], what: str, given: Iterable[W | str]) -> list[W]:
    """In an order of their own, as that of a set of strings differs from process to process."""
    if isinstance(given, str):
        given = (given,)
    known = ", ".join(kind)
    try:
        words = sorted(kind(word) for word in given)
    except ValueError as error:
        raise ValueError(f"{what}: {error}; known are {known}") from None
    if not words:
        raise ValueError(f"{what}: none is given; known are {known}")
    return words
