"""Lanes: several roots at once, each with more children to run than its lane has slots, on a pool that all share.

Swept are ``maxConcurrent`` (slots of a parent's lane) and ``maxChildrenPerAgent`` (children that it may have at once).

* queue wait: from the child's item being taken, which is when it is admitted, to its turn's beginning;
* utilisation: time in which children worked, as a share of slots × time; slots are those of the lanes, or the processes
  that are left beside the waiting parents if that is fewer;
* fairness: Jain's index over how often each root's children started while all roots had some to start. The first root
  has three times as many as the others, so a queue by age alone would not be fair.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, fairness, milliseconds, of_rounds, percentiles
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.rig import value_of

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"concurrent": [1, 2, 4, 8], "children": [2, 5, 10], "roots": 3, "items": 40, "work_ms": 20.0, "processes": 12}
QUICK = {"concurrent": [1, 4], "children": [2, 5], "roots": 2, "items": 24, "work_ms": 20.0, "processes": 8}
_DEPTH = 1


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    found = Measured()
    for concurrent in config["concurrent"]:
        for children in config["children"]:
            _combination(rig, config, int(concurrent), int(children), found)
    return found


def _combination(rig: Rig, config: Mapping[str, Any], concurrent: int, children: int, found: Measured) -> None:
    roots, processes, work = int(config["roots"]), int(config["processes"]), float(config["work_ms"]) / 1000
    names = [f"team{number}" for number in range(roots)]
    limits = {"maxConcurrent": concurrent, "maxChildrenPerAgent": children, "maxSpawnDepth": _DEPTH}
    pool = {"prewarm": processes, "max": processes}
    with rig.runtime([_work(), *(_team(name) for name in names)], subagents=limits, ray={"pool": pool}) as rt:
        rig.settled(rt, processes)

        def one(number: int, items: int) -> list[tuple[float, float, float]]:
            asked = f"{items} {work} {children}"
            rows: list[tuple[float, float, float]] = value_of(rt.ask(names[number], asked))
            return rows

        with ThreadPoolExecutor(roots) as threads:
            list(threads.map(lambda number: one(number, 4), range(roots)))  # first contacts are over then
            began = time.time()
            sizes = [int(config["items"]) * (3 if number == 0 else 1) for number in range(roots)]
            rows = dict(zip(names, threads.map(one, range(roots), sizes), strict=True))
        rig.look(rt)
    name = f"{concurrent}x{children}"
    every = [row for of_one in rows.values() for row in of_one]
    waits = [max(0.0, start - taken) for taken, start, _ in every]
    width = min(concurrent, children)
    slots = min(width * roots, processes - roots)
    shared = min(max(end for _, _, end in of_one) for of_one in rows.values())
    busy = sum(max(0.0, min(end, shared) - start) for _, start, end in every)
    used = busy / (slots * (shared - began))
    found.figures[f"queue_wait_{name}"] = milliseconds(waits)
    found.latency[f"queue_wait_{name}"] = percentiles(waits)
    found.figures[f"utilisation_{name}"] = of_rounds([used * 100], "%", Better.MORE)
    fair = fairness({root: [start for _, start, _ in of_one] for root, of_one in rows.items()})
    found.figures[f"fairness_{name}"] = of_rounds([fair], "Jain", Better.MORE)
    rig.say(f"  maxConcurrent {concurrent}, maxChildren {children}: {used:.0%} used, fairness {fair:.2f}")


def _work() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="work", spawns=False)
    def work(turn: oc.SyncTurn) -> tuple[float, float, float]:
        began = time.time()
        taken, seconds = turn.input
        time.sleep(seconds)
        return taken, began, time.time()

    return work


def _team(name: str) -> Any:
    import openclaw_ray as oc

    @oc.agent(id=name)
    async def team(turn: oc.Turn) -> list[Any]:
        items, seconds, width = turn.text.split()

        def source() -> Iterator[tuple[float, float]]:
            for _ in range(int(items)):
                yield time.time(), float(seconds)

        results = await turn.map("work", source(), width=int(width))
        return [result.raise_for_status().value for result in results]

    return team
