"""The registry without Ray: steps a second, CPU time of a step and memory, against the rows in its journal.

Sessions come and go on paper (`openclaw_ray.bench.paper`); at each number of rows a window of sessions is timed. If the
cost of a step rises with what was recorded before, this shows it, and nothing else can: no process is in the way.
"""

from __future__ import annotations

import gc
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, Figure, milliseconds, of_rounds, percentiles
from openclaw_ray.bench.paper import PaperRuntime
from openclaw_ray.bench.result import Measured

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"rows": [100, 1_000, 10_000, 100_000], "window": 1_000, "width": 16}
QUICK = {"rows": [100, 1_000, 10_000], "window": 300, "width": 16}


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    import psutil

    process, window = psutil.Process(), int(config["window"])
    found = Measured()
    memory: list[tuple[int, int]] = []
    costs: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory(prefix="openclaw-ray-bench-") as place:
        paper = PaperRuntime(Path(place), int(config["width"]))
        try:
            paper.run(50)  # whatever is made at the first use is made
            for rows in sorted(int(each) for each in config["rows"]):
                paper.run(max(1, rows - paper.sessions))
                gc.collect()
                memory.append((paper.sessions, process.memory_info().rss))
                costs.append((rows, _window(rig, paper, rows, window, found)))
        finally:
            paper.close()
    if len(memory) > 1:
        # between the last two: before them it is mostly caches that fill
        (first, before), (last, after) = memory[-2:]
        each = (after - before) / (last - first)
        found.figures["memory_per_settled_session"] = of_rounds([each], "bytes", Better.LESS)
    if len(costs) > 1:
        growth = costs[-1][1] / costs[0][1]
        found.figures["step_cost_growth"] = of_rounds([growth], "x", Better.LESS)
    return found


def _window(rig: Rig, paper: PaperRuntime, rows: int, window: int, found: Measured) -> float:
    """Time a window of sessions in five parts; gives the CPU milliseconds of a session."""
    steps: list[float] = []
    each, paper.steps = max(1, window // 5), steps
    parts = [paper.run(each) for _ in range(5)]
    paper.steps = None
    name = f"at_{rows}_rows"
    found.latency[f"step_{name}"] = percentiles(steps)
    found.figures[f"step_cpu_{name}"] = milliseconds(steps)
    found.figures[f"sessions_{name}"] = of_rounds([each / part for part in parts], "1/s", Better.MORE)
    cpu = sum(steps) * 1000 / (5 * each)
    found.figures[f"steps_{name}"] = _steps_per_second(steps)
    p99 = found.latency[f"step_{name}"]["p99_ms"]
    found.curves.setdefault("registry", []).append(
        {"rows": rows, "session_cpu_ms": round(cpu, 4), "step_p50_ms": found.latency[f"step_{name}"]["p50_ms"],
         "step_p99_ms": p99}
    )
    rig.say(f"  {rows} rows: {cpu:.2f} ms CPU a session, step p99 {p99:.2f} ms")
    return cpu


def _steps_per_second(steps: Sequence[float]) -> Figure:
    """Steps that one CPU could do in a second, of five parts."""
    size = math.ceil(len(steps) / 5)
    parts = [steps[start : start + size] for start in range(0, len(steps), size)]
    return of_rounds([len(part) / max(sum(part), time.get_clock_info("thread_time").resolution) for part in parts],
                     "1/s", Better.MORE)
