"""A runtime that lives on its own: taking it down, and looking at those there are (DESIGN.md 5).

1. What is at work is stopped first, tree by tree and side by side, within the grace; what then still runs is ended with
   its process. With ``keep`` nothing is stopped: what had not ended is decided by the next start with ``recover``.
2. Pool, hub and registry are killed, in this order; with the pool its session processes end. Their names are waited
   for, so that the next start of this name does not meet them.
3. A runtime that a process owns ends with that process; it is taken down only by ``force``.
"""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.asking import ask
from openclaw_ray.actors.lifetime import PARTS, Lifetime
from openclaw_ray.actors.names import find_actor, runtimes_alive
from openclaw_ray.core.errors import OpenClawRayError, RuntimeInUse, RuntimeNotFound
from openclaw_ray.core.results import camel_dict
from openclaw_ray.runtime.cluster import attach
from openclaw_ray.store.places import address_of
from openclaw_ray.store.statelock import owner_of

if TYPE_CHECKING:
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["DownReport", "down"]

_GONE_WITHIN = 5.0
_STOP_MARGIN = 1.5
_ANSWER_WITHIN = 5.0
_LOOK_EVERY = 0.02


@dataclass(frozen=True, slots=True)
class DownReport:
    """What became of a runtime that was taken down.

    Attributes:
        name: its name.
        stopped: runs that were stopped by it.
        unended: runs that had not ended when its processes were: `down` with ``keep``, or a stop that was not complete.
        state_dir: where its journal and transcripts stay.
        seconds: how long it took.
    """

    name: str
    stopped: int
    unended: int
    state_dir: str
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return camel_dict(asdict(self))


def down(name: str, *, keep: bool = False, force: bool = False) -> DownReport:
    """End a runtime, wherever it runs.

    Args:
        name: its name.
        keep: leave what has not ended for the next start with ``recover=True``, instead of stopping it.
        force: also one that a process owns, or whose registry does not answer.

    Raises:
        RuntimeNotFound: there is none of that name.
        RuntimeInUse: a process owns it, and it was not forced.
        RuntimeUnavailable: its registry does not answer, and it was not forced.
        RayUnreachable: no Ray is there to look in.
    """
    from openclaw_ray.actors.cluster_watch import ask_autoscaler
    from openclaw_ray.runtime.runtime import Runtime

    began = time.monotonic()
    guest = attach(start=False, near=address_of(name))
    try:
        place, stopped, unended = "", 0, 0
        try:
            registry = find_actor(name, "registry")
        except ValueError:
            if not force or not _parts(name):
                raise RuntimeNotFound(name, runtimes_alive()) from None
        else:
            try:
                settings = ask(registry.info.remote, _ANSWER_WITHIN)["settings"]
                place = settings.state_dir
                if settings.lifetime is Lifetime.OWNER and not force:
                    owner = owner_of(settings.state_dir)
                    raise RuntimeInUse(name, *((owner.pid, owner.host, owner.since) if owner else (0, "?", 0.0)))
                with Runtime.connect(name) as runtime:
                    if not keep:
                        stopped = _stop_all(runtime, settings.limits.stop_grace_seconds + _STOP_MARGIN)
                    unended = len(_unended(runtime))
                if ask(registry.info.remote, _ANSWER_WITHIN)["cpus_asked"]:
                    ask_autoscaler(0)
            except RuntimeInUse:
                raise
            except OpenClawRayError:
                if not force:
                    raise
        _end(name)
        return DownReport(name, stopped, unended, place, round(time.monotonic() - began, 3))
    finally:
        guest.leave()


def _stop_all(runtime: Runtime, within: float) -> int:
    """Stop every tree, side by side; gives how many runs that were."""
    until = time.monotonic() + within
    tops = list(dict.fromkeys(str(row["rootKey"]) for row in _unended(runtime)))
    if not tops:
        return 0
    stopped = 0
    with ThreadPoolExecutor(min(16, len(tops)), thread_name_prefix="openclaw-down") as threads:
        stops = [threads.submit(runtime.stop, top, timeout=within) for top in tops]
        for stop in stops:
            with contextlib.suppress(FutureTimeout, OpenClawRayError):  # what is left is ended with its process
                stopped += stop.result(max(0.01, until - time.monotonic())).stopped
    return stopped


def _unended(runtime: Runtime) -> list[dict[str, Any]]:
    return runtime.runs(state=["queued", "running", "paused"], limit=100_000)


def _parts(name: str) -> list[Any]:
    found = []
    for part in PARTS:
        with contextlib.suppress(ValueError):
            found.append(find_actor(name, part))
    return found


def _end(name: str) -> None:
    import ray

    for actor in _parts(name):
        with contextlib.suppress(Exception):  # it has ended meanwhile
            ray.kill(actor)
    until = time.monotonic() + _GONE_WITHIN
    while _parts(name) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY)
