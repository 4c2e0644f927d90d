"""What benchmarks measure on: one Ray, a runtime for each benchmark, and bare actors to compare with.

1. Ray is used as the library uses it: one that is there (``RAY_ADDRESS``), else an embedded one, whose workers are
   forked. All benchmarks of a command share it; each starts the runtime that it wants.
2. Agents are made inside of a function, so that they travel by value and are loaded anew for each activation, as those
   of users are. An agent of this package would go by reference, and be cheaper than any of theirs.
3. Memory is looked at between rounds, never while something is timed.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.result import Measured, Skipped

if TYPE_CHECKING:
    from openclaw_ray.core.results import Result
    from openclaw_ray.runtime.cluster import Guest
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["Rig", "merged", "noop_agent", "uss_mb", "value_of", "wait_until"]

_LOOK = 0.01


class Rig:
    """One for a command. Use it with ``with``.

    Args:
        say: takes a line of progress.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._guest: Guest | None = None
        self._peak = 0

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        if self._guest is not None:
            self._guest.leave()
            self._guest = None

    def ray(self) -> Any:
        """Ray, started if need be (1)."""
        import ray

        if self._guest is None:
            from openclaw_ray.runtime.cluster import attach

            self._guest = attach()
        return ray

    @property
    def address(self) -> str:
        """Of the Ray."""
        self.ray()
        assert self._guest is not None
        return self._guest.address

    @contextlib.contextmanager
    def runtime(self, agents: Iterable[Any], **sections: Mapping[str, Any]) -> Iterator[Runtime]:
        """A runtime of the benchmark's own.

        Args:
            sections: of its configuration: ``subagents`` (``agents.defaults.subagents``), ``ray``, or another by name.
        """
        import openclaw_ray as oc

        self.ray()
        subagents = {"allowAgents": ["*"], **sections.pop("subagents", {})}
        ray = merged({"limits": {"unlock": True}}, sections.pop("ray", {}))
        config: dict[str, Any] = {"agents": {"defaults": {"subagents": subagents}}, "ray": ray, **sections}
        with oc.Runtime.start(config=config, agents=agents) as rt:
            yield rt

    def look(self, rt: Runtime) -> float:
        """Memory of a runtime's session processes and its registry now, in MB; counted for the peak (3)."""
        now = rt.stats().memory_bytes
        self._peak = max(self._peak, now)
        return now / 2**20

    def take_peak(self, measured: Measured) -> Measured:
        """Note the peak since the last time in a result."""
        if self._peak:
            measured.peak_memory_mb = self._peak / 2**20
        self._peak = 0
        return measured

    @contextlib.contextmanager
    def bare(self, count: int, kind: type[Any] | None = None) -> Iterator[list[Any]]:
        """That many actors of Ray's alone, which answer; ended afterwards."""
        ray = self.ray()
        actor = ray.remote(num_cpus=0)(_bare() if kind is None else kind)
        actors = [actor.remote() for _ in range(count)]
        try:
            ray.get([each.call.remote("x") for each in actors])
            yield actors
        finally:
            for each in actors:
                ray.kill(each)

    def call_seconds(self, actor: Any, times: int) -> list[float]:
        """What single calls to a warm bare actor take, one after the other."""
        ray = self.ray()
        found = []
        for number in range(-20, times):
            began = time.perf_counter()
            ray.get(actor.call.remote("x"))
            if number >= 0:
                found.append(time.perf_counter() - began)
        return found

    def grow(self, rt: Runtime, processes: int) -> None:
        """Have at least that many session processes, and wait until they are there.

        Raises:
            Skipped: they do not come.
        """
        rt._query("grow_to", processes)  # a map asks for them itself, but as it goes, while it is timed
        self.settled(rt, processes)

    def settled(self, rt: Runtime, processes: int, within: float = 120.0) -> None:
        """Wait until that many session processes are there.

        Raises:
            Skipped: they do not come.
        """
        if not wait_until(lambda: sum(rt.stats().actors.values()) >= processes and _none_grows(rt), within):
            raise Skipped(f"{processes} session processes did not come up within {within:g} s: {rt.stats().actors}")


def noop_agent() -> Any:
    """The agent whose turn does nothing: all that it costs is overhead."""
    import openclaw_ray as oc

    @oc.agent(id="noop", spawns=False)
    def noop(turn: oc.SyncTurn) -> str:
        return "ok"

    return noop


def value_of(result: Result[Any]) -> Any:
    """What a session that ended well gave back.

    Raises:
        RunError: it did not.
    """
    return result.raise_for_status().value


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """``second`` over ``first``, dicts within dicts included."""
    out = dict(first)
    for name, value in second.items():
        old = out.get(name)
        out[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out


def wait_until(is_so: Callable[[], bool], within: float, every: float = _LOOK) -> bool:
    """Look until it is so; False if that takes longer than ``within`` seconds."""
    until = time.monotonic() + within
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(every)
    return True


def uss_mb(pids: Iterable[int]) -> float:
    """Median private memory (USS) of these processes of this host, in MB.

    Raises:
        Skipped: none of them is of this host.
    """
    import psutil

    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid).memory_full_info().uss / 2**20)
    if not found:
        raise Skipped("no session process is on this host: private memory cannot be read")
    return statistics.median(found)


def _none_grows(rt: Runtime) -> bool:
    return rt.stats().actors.get("growing", 0) == 0


def _bare() -> type[Any]:
    class Bare:
        def call(self, item: Any) -> str:
            return "ok"

        def pid(self) -> int:
            import os

            return os.getpid()

    return Bare
