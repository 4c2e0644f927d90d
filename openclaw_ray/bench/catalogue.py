"""The benchmarks of the suite by name, and how one is run: its sizes, its result, or why there is none.

A benchmark is a module of `openclaw_ray.bench.suite` with ``FULL`` and ``QUICK`` (its configuration: sizes by name) and
``measure(rig, config) -> Measured``. It is imported when it is run.
"""

from __future__ import annotations

import importlib
import json
import time
import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from openclaw_ray.bench.facts import facts
from openclaw_ray.bench.result import Measured, Skipped

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig

__all__ = ["ABOUT", "Benchmark", "configuration", "find", "parse_setting", "run_one"]

ABOUT: Mapping[str, str] = {
    "fork_join": "no-op sessions by rt.map and turn.map against Ray's own; payloads, widths",
    "spawn_latency": "spawn to accepted, first turn, announced: warm, cold, first contact, re-activated",
    "depth": "chains of sessions, against chains of bare actors",
    "lanes": "maxConcurrent × maxChildrenPerAgent: queue wait, utilisation, fairness between roots",
    "stop": "stop of trees by size, cooperative and with a deaf session",
    "ping_pong": "a message and its reply between two sessions, against two bare actors",
    "registry": "the registry without Ray: steps a second, CPU a step, memory, against rows in its journal",
    "memory": "a session process, a passive session, 1,000 records",
    "recovery": "registry killed to service back; driver killed to last session process gone",
    "skynet": "a 10-way tree with a checksum, against the same tree of Ray tasks",
    "pipeline": "rows a second of a Ray Data job that asks a session about each batch",
}
"""What each measures, in the order in which they run."""


_SAID = 500
"""Characters of an error that a result keeps; all of it goes to standard error."""


class Benchmark(Protocol):
    """A module of the suite."""

    FULL: Mapping[str, Any]
    QUICK: Mapping[str, Any]

    def measure(self, rig: Rig, config: Mapping[str, Any]) -> Measured:
        """Measure.

        Raises:
            Skipped: it cannot run here.
        """


def find(name: str) -> Benchmark:
    """The benchmark of this name.

    Raises:
        ValueError: there is none; the text lists those there are.
    """
    if name not in ABOUT:
        raise ValueError(f"there is no benchmark {name!r}; there are {', '.join(ABOUT)}")
    return cast(Benchmark, importlib.import_module(f"openclaw_ray.bench.suite.{name}"))


def configuration(benchmark: Benchmark, *, quick: bool, settings: Iterable[tuple[str, Any]] = ()) -> dict[str, Any]:
    """Its sizes, with ``settings`` (name, value) over them.

    Raises:
        ValueError: it has no setting of that name, or a value is of another type.
    """
    sizes = dict(benchmark.QUICK if quick else benchmark.FULL)
    for name, value in settings:
        if name not in sizes:
            raise ValueError(f"there is no setting {name!r}; there are {', '.join(sizes)}")
        kind = type(sizes[name])
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind:
            raise ValueError(f"{name} is a {kind.__name__}, as in {json.dumps(sizes[name])}, not {json.dumps(value)}")
        sizes[name] = value
    return sizes


def parse_setting(text: str) -> tuple[str, Any]:
    """``name=value``, the value as JSON.

    Raises:
        ValueError: it is none.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    try:
        return name.strip().replace("-", "_"), json.loads(value)
    except ValueError:
        raise ValueError(f"the value of {text!r} is no JSON: a number, a list as [1,2], true or false") from None


def run_one(rig: Rig, name: str, *, quick: bool, settings: Iterable[tuple[str, Any]] = ()) -> dict[str, Any]:
    """Run one benchmark and give its result as JSON; ``skipped`` or ``failed`` in it says why it measured nothing.

    Raises:
        ValueError: the name, or a setting.
    """
    benchmark = find(name)
    config = configuration(benchmark, quick=quick, settings=settings)
    here = facts()
    began = time.monotonic()
    word = {}
    measured = Measured()
    try:
        measured = benchmark.measure(rig, config)
    except Skipped as why:
        word = {"skipped": str(why)}
    except Exception as error:  # noqa: BLE001 - the other benchmarks are to run all the same
        rig.say(traceback.format_exc())
        word = {"failed": f"{type(error).__name__}: {error}"[:_SAID]}
    rig.take_peak(measured)
    lasted = round(time.monotonic() - began, 1)
    head = {"benchmark": name, "quick": quick, "config": config, "seconds": lasted}
    return {**head, **word, **measured.to_json(), **here}
