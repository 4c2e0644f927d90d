"""Whether a runtime is at rest, and whether a program has left processes behind (STYLE.md 11).

    @pytest.fixture(autouse=True)
    def nothing_leaks(rt):
        yield
        assert_at_rest(rt)

A runtime is at rest if

1. each session actor that is alive in Ray is owned by the pool, and known to the registry;
2. no session process is bound, releasing or about to be ended;
3. no run is un-ended, none is queued, no lane slot is taken;
4. no child is reserved, no session process owes an outcome that has no verdict (its outbox), the pool holds no large
   value that nobody will take;
5. below the session processes there is no process.

All of it is asked of registry, pool and session processes themselves and of Ray's list of names, which has no end; not
of Ray's State API, whose lists stop at 100 rows.

What a test is to leave nothing of can also be marked: `ProcessMark` gives the program an environment variable
that all its descendants inherit, however they detach themselves, and later says which of them are alive.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.names import NAMESPACE, actor_name, find_actor
from openclaw_ray.actors.raylets import raylet_of
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    import psutil

    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["ProcessMark", "assert_at_rest", "assert_gone", "find_leaks", "session_actors_alive", "unheard_runs"]

_UNENDED = ("queued", "running", "paused")
_ANSWER_WITHIN = 10.0
_RAY_WORDS = ("ray::", "/raylet/raylet", "/gcs/gcs_server", "/ray/_private/", "/ray/dashboard/", "/ray/autoscaler/")
_OUR_WORDS = ("/openclaw_ray/runtime/", "/openclaw_ray/forking/")


def assert_at_rest(runtime: Runtime, timeout: float = 10.0, *, unheard: Collection[str] | None = None) -> None:
    """Wait until nothing of a runtime is left over.

    Args:
        timeout: seconds; what ends by itself in that time is no leak.
        unheard: runs that may have ended without their requester's having been told, e.g. `unheard_runs` of
            before; not looked at if not given, as a program may ask for a result as late as it likes.

    Raises:
        AssertionError: with one line per leak.
    """

    def nothing() -> None:
        leaks = _leaks_or_silence(runtime, unheard)
        assert not leaks, "\n".join([f"runtime {runtime.name} is not at rest:", *(f"  {x}" for x in leaks)])

    eventually(nothing, timeout, every=0.05, what="at rest")


def _leaks_or_silence(runtime: Runtime, unheard: Collection[str] | None) -> list[str]:
    """The leaks; while a part of the runtime is being started again, that."""
    try:
        return find_leaks(runtime, unheard=unheard)
    except Exception as error:
        if type(error).__module__ != "ray.exceptions":
            raise
        return [f"a part of it does not answer: {str(error).splitlines()[0]}"]


def assert_gone(name: str, timeout: float = 5.0) -> None:
    """Wait until no actor of the runtime ``name`` is alive in the Ray that this process is connected to.

    Raises:
        AssertionError: naming those that are.
    """
    import ray

    def none() -> None:
        alive = [
            actor["name"]
            for actor in ray.util.list_named_actors(all_namespaces=True)
            if actor["namespace"] == NAMESPACE and actor["name"].startswith(f"{name}/")
        ]
        assert not alive, f"actors of the closed runtime {name} are alive: {', '.join(sorted(alive))}"

    eventually(none, timeout, every=0.05, what="gone")


def find_leaks(runtime: Runtime, *, unheard: Collection[str] | None = None) -> list[str]:
    """What is left over in a runtime now, one readable line each; see `assert_at_rest`."""
    local = getattr(runtime, "_find_leaks", None)  # a local runtime has no processes to look at
    if local is not None:
        return [*local(), *_unheard(runtime._query("info")["counts"], unheard)]
    import ray

    info = ray.get(find_actor(runtime.name, "registry").info.remote(), timeout=_ANSWER_WITHIN)
    pool = find_actor(runtime.name, "pool")
    owned, holds = ray.get([pool.owned.remote(), pool.holds.remote()], timeout=_ANSWER_WITHIN)
    counts = info["counts"]
    crew: dict[str, tuple[str, int, str]] = counts["crew"]
    leaks = [
        f"session actor {actor}: alive, but the pool does not own it"
        for actor in sorted(set(session_actors_alive(runtime.name)) - set(owned))
    ]
    leaks += [
        f"session actor {actor}: the pool owns it, the registry has forgotten it"
        for actor in sorted(set(owned) - set(crew))
    ]
    leaks += [
        f"session process {pid} ({actor}): {state}{f', run {run}' if run else ''}"
        for actor, (state, pid, run) in sorted(crew.items())
        if state not in ("idle", "growing")
    ]
    for row in runtime.runs(limit=1_000, state=list(_UNENDED)):
        if row["route"] != "driver":
            waits = f", waiting for {row['waitingFor']}" if "waitingFor" in row else ""
            leaks.append(f"run {row['runId']} of {row['sessionKey']}: {row['state']}{waits}")
    leaks += [f"session {key}: {active} children reserved" for key, active in counts["reserved"]]
    leaks += [f"session process of {actor}: owes the outcome of {run}" for actor, run in _owed(runtime.name, crew)]
    wanted = {run for run, _ in counts["unheard"]}
    leaks += [f"the pool holds the value of {run}, which nobody will take" for run in holds if run not in wanted]
    if counts["queued"]:
        leaks.append(f"{counts['queued']} runs in the queue")
    leaks += [f"lane {lane}: {taken} of {width} slots taken" for lane, width, taken in counts["lanes"]]
    return [*leaks, *_below(crew), *_unheard(counts, unheard)]


def unheard_runs(runtime: Runtime) -> list[str]:
    """Ids of ended runs whose requesters have not been given the end: kept in memory until then."""
    return [run for run, _ in runtime._query("info")["counts"]["unheard"]]


def session_actors_alive(name: str) -> list[str]:
    """Ids of the session actors of the runtime ``name`` that Ray knows as alive."""
    import ray

    prefix = actor_name(name, "session-")
    return sorted(
        actor["name"].split("/", 1)[1]
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if actor["namespace"] == NAMESPACE and actor["name"].startswith(prefix)
    )


class ProcessMark:
    """A mark in the environment of a program and of everything that it starts.

    Attributes:
        name, value: of the environment variable.
    """

    name = "OPENCLAW_RAY_TEST_MARK"

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """``base`` (this process's environment by default) with the mark."""
        return {**(os.environ if base is None else base), self.name: self.value}

    def alive(self, *, tools_only: bool = False) -> list[str]:
        """Marked processes that have not ended, as ``pid: command line``.

        Args:
            tools_only: leave out Ray's own processes and its workers; what remains was started by agents.
        """
        return [_line(each) for each in self._marked() if not (tools_only and _is_rays(each))]

    def assert_none(self, timeout: float = 5.0, *, tools_only: bool = False) -> None:
        """Wait until no marked process is alive.

        Raises:
            AssertionError: naming those that are.
        """

        def none() -> None:
            alive = self.alive(tools_only=tools_only)
            assert not alive, "\n".join(["processes left behind:", *(f"  {each}" for each in alive)])

        eventually(none, timeout, every=0.1, what="no process left")

    def _marked(self) -> Iterator[psutil.Process]:
        import psutil

        wanted = f"{self.name}={self.value}".encode()
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                with open(f"/proc/{each.pid}/environ", "rb") as environ:
                    if wanted not in environ.read().split(b"\0"):
                        continue
                if each.pid != os.getpid() and each.status() not in ("zombie", "dead"):
                    yield each


def _unheard(counts: Mapping[str, Any], known: Collection[str] | None) -> list[str]:
    return [
        f"run {run} of {session}: ended, and its requester has not heard of it"
        for run, session in counts["unheard"]
        if known is not None and run not in known
    ]


def _owed(name: str, crew: Mapping[str, tuple[str, int, str]]) -> list[tuple[str, str]]:
    """Activations in the outboxes of session processes that do nothing else."""
    import ray

    asked: dict[str, Any] = {}
    for actor, (state, _, _) in sorted(crew.items()):
        with contextlib.suppress(ValueError):  # it has just died
            if state == "idle":
                asked[actor] = find_actor(name, actor).report.remote()
    owed = []
    for actor, call in asked.items():
        try:
            owed += [(actor, str(activation)) for activation in ray.get(call, timeout=_ANSWER_WITHIN).outbox]
        except ray.exceptions.RayActorError:  # found dead: of no idle process is anything lost
            continue
    return owed


def _below(crew: Mapping[str, tuple[str, int, str]]) -> list[str]:
    """Processes below session processes of this host."""
    import psutil

    found = []
    for actor, (_, pid, _) in sorted(crew.items()):
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(pid).children(recursive=True):
                if child.status() not in ("zombie", "dead"):
                    found.append(f"process {_line(child)}: below session process {pid} ({actor})")
    return found


def _line(process: psutil.Process) -> str:
    import psutil

    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:120] or process.name()}"
    except psutil.Error:
        return f"{process.pid}: ?"


def _is_rays(process: psutil.Process) -> bool:
    """One of Ray's own, or a worker that the raylet started; a fork of a worker only looks like one."""
    import psutil

    try:
        command = " ".join(process.cmdline()[:5])
        if "ray::" in command:
            return raylet_of(process.pid) != 0
        return any(word in command for word in (*_RAY_WORDS, *_OUR_WORDS))
    except psutil.Error:
        return True  # it has just ended
