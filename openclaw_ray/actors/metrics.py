"""Metrics through ``ray.util.metrics``: what the registry has counted, recorded by a thread of its own once a second.

1. Somebody collects if this node's Ray has a metrics agent, which comes with ``ray[default]``. Without that this thread
   ends at once, no tally is kept, and nothing of Ray's metrics is imported; if the agent does not come up, a minute
   later.
2. The registry's lock is held for taking the tally and reading the gauges; recording is done after it is free.
3. A gauge keeps its last value in Ray, so each set of tags is given a value at each look.

The tag ``runtime`` is the runtime's name if a user gave it, else ``unnamed``: names that are made up are not bounded.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.core import metrics as m
from openclaw_ray.core.protocol.measuring import gauges

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistryActor

__all__ = ["MetricsLine", "Recorder", "agent_port", "runtime_tag"]

LOOK_EVERY = 1.0
"""Seconds between two looks."""
_AGENT_AFTER = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds between the looks for an agent that may be starting beside the registry."""


def agent_port() -> int:
    """The port at which this node's metrics agent gives what it has collected; 0 if there is none."""
    import ray

    here = ray.get_runtime_context().get_node_id()
    node: Mapping[str, Any] = next((n for n in ray.nodes() if n["NodeID"] == here), {})  # type: ignore[no-untyped-call]
    port, address = int(node.get("MetricsExportPort") or 0), str(node.get("NodeManagerAddress", ""))
    if port:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1.0):
            return port
    return 0


def runtime_tag(name: str) -> str:
    """The runtime's name as a tag."""
    return "unnamed" if re.fullmatch(r"run-[0-9a-f]{8}", name) else name


class Recorder:
    """Ray's metric objects, made at their first use."""

    def __init__(self, runtime: str, library: Any) -> None:
        self._library = library
        self._runtime = runtime_tag(runtime)
        self._known = {metric.name: metric for metric in m.METRICS}
        self._made: dict[str, Any] = {}

    def record(self, taken: m.Taken, now: list[tuple[str, tuple[str, ...], float]]) -> None:
        """Give Ray what one look has found."""
        for (name, tags), by in taken.counts.items():
            self._of(name).inc(by, tags=self._tags(name, tags))
        for (name, tags), samples in taken.samples.items():
            histogram, labels = self._of(name), self._tags(name, tags)
            for seconds in samples:
                histogram.observe(seconds, tags=labels)
        for name, tags, value in now:
            self._of(name).set(value, tags=self._tags(name, tags))

    def _tags(self, name: str, values: tuple[str, ...]) -> dict[str, str]:
        return {"runtime": self._runtime, **dict(zip(self._known[name].tags, values, strict=True))}

    def _of(self, name: str) -> Any:
        if name not in self._made:
            metric = self._known[name]
            keys = ("runtime", *metric.tags)
            match metric.kind:
                case m.Kind.COUNTER:
                    made = self._library.Counter(name, description=metric.text, tag_keys=keys)
                case m.Kind.GAUGE:
                    made = self._library.Gauge(name, description=metric.text, tag_keys=keys)
                case m.Kind.HISTOGRAM:
                    bounds = list(m.BOUNDARIES)
                    made = self._library.Histogram(name, description=metric.text, boundaries=bounds, tag_keys=keys)
            self._made[name] = made
        return self._made[name]


class MetricsLine:
    """The thread that records."""

    def __init__(self, registry: RegistryActor) -> None:
        self.registry = registry
        self._retired: dict[str, int] = {}

    def run(self) -> None:
        """Record for ever, if somebody collects (1)."""
        if not _installed():
            return
        self._keep(m.Tally())  # what happens while the agent starts counts, too
        if not self._collected():
            self._keep(None)
            return
        from ray.util import metrics as library

        recorder = Recorder(self.registry.settings.runtime, library)
        while True:
            recorder.record(*self._look())
            time.sleep(LOOK_EVERY)

    def _keep(self, tally: m.Tally | None) -> None:
        with self.registry.lock:
            self.registry.tally = self.registry.core.s.tally = tally

    def _collected(self) -> bool:
        for pause in _AGENT_AFTER:
            time.sleep(pause)
            if agent_port():
                return True
        return False

    def _look(self) -> tuple[m.Taken, list[tuple[str, tuple[str, ...], float]]]:
        registry = self.registry
        with registry.lock:
            tally, state = registry.tally, registry.core.s
            assert tally is not None
            state.tally = tally  # a registry that was built anew from the journal has none
            retired: dict[str, int] = {}
            for why, count in state.retired_actors.items():
                word = m.retired_word(why)
                retired[word] = retired.get(word, 0) + count
            for word, more in m.risen(retired, self._retired):
                tally.count(m.WORKERS_RETIRED, word, by=more)
            return tally.take(), list(gauges(state))


def _installed() -> bool:
    """Whether this Ray has what its metrics agent needs."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("aiohttp", "prometheus_client"))
