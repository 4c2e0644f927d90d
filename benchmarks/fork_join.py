"""Fork-join of no-op sessions, against what Ray itself does with no-op calls in the same run.

    python benchmarks/fork_join.py --json [--sessions 1000] [--width 16] [--rounds 5]

Measured, interleaved (A B C D, A B C D, …) after a warm-up of each:

* ``rt.map``: one isolated session per item, journal and transcripts on;
* ``turn.map``: the same from inside a session;
* ``ActorPool.map`` over as many bare actors, and default ``@ray.remote`` tasks, ``width`` in flight;
* a bare call to a bare actor, and a warm spawn: until accepted, until its result with the registry's verdict.

Ratios are of medians over rounds; the spread is printed. On a shared machine compare ratios, not absolute rates.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from _measure import environment, own_stdout, percentiles, print_report, spread

BUDGET = {
    "map_vs_actor_pool": (">=", 0.20),
    "map_vs_tasks": (">=", 0.20),
    "turn_map_vs_actor_pool": (">=", 0.12),
    "turn_map_vs_tasks": (">=", 0.12),
    "accepted_vs_bare_call": ("<=", 3.0),
    "result_vs_bare_call": ("<=", 8.0),
    "cost_per_session_growth": ("<=", 1.5),
    "idle_actor_extra_mb": ("<=", 12.0),
    "step_cpu_p99_ms": ("<=", 5.0),
}
"""The "first" column of the performance budget."""


def main() -> int:
    """Run and print; exit 1 if a line of the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000, help="sessions in one round of one contender")
    parser.add_argument("--width", type=int, default=16, help="sessions, actors or tasks at once")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds after the warm-up")
    parser.add_argument("--large", type=int, default=10_000, help="sessions for the cost line; 0: leave it out")
    parser.add_argument("--json", action="store_true", help="print the JSON object alone")
    args = parser.parse_args()
    out = own_stdout()
    report = measure(args.sessions, args.width, args.rounds, args.large, quiet=args.json)
    print_report(report, out)
    return 0 if all(line["pass"] for line in report["budget"].values()) else 1


def measure(sessions: int, width: int, rounds: int, large: int, *, quiet: bool) -> dict[str, Any]:
    """All figures of one run."""
    import ray

    import openclaw_ray as oc

    facts = environment()
    ray.init(address="local", include_dashboard=False, logging_level="ERROR", log_to_driver=False)

    @oc.agent(id="noop", spawns=False)
    def noop(turn: oc.SyncTurn) -> str:
        return "ok"

    @oc.agent(id="fork")
    async def fork(turn: oc.Turn) -> list[float]:
        # the first join of a turn pays for the first contact of its processes; it is warmed up with the rest
        began = time.perf_counter()
        results = await turn.map("noop", ["x"] * int(turn.input["n"]), width=int(turn.input["width"]))
        lasted = time.perf_counter() - began
        assert all(r.ok for r in results)
        assert len(results) == turn.input["n"]
        return [lasted]

    @ray.remote(num_cpus=0)
    class Bare:
        def call(self, item: str) -> str:
            return "ok"

    @ray.remote
    def task(item: str) -> str:
        return "ok"

    subagents = {"maxChildrenPerAgent": 64, "maxConcurrent": width, "allowAgents": ["*"]}
    config = {
        "agents": {"defaults": {"subagents": subagents}},
        "ray": {"limits": {"unlock": True}, "pool": {"prewarm": width + 1}},
    }
    rt = oc.Runtime.start(config=config, agents=[noop, fork])
    try:
        bare = [Bare.remote() for _ in range(width)]
        ray.get([b.call.remote("x") for b in bare])
        contenders: dict[str, Callable[[], float]] = {
            "map": lambda: _map(rt, sessions, width),
            "turn_map": lambda: _turn_map(rt, sessions, width),
            "actor_pool": lambda: _actor_pool(bare, sessions),
            "tasks": lambda: _tasks(task, sessions, width),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for round_number in range(-1, rounds):
            for name, run in contenders.items():
                lasted = run()
                if round_number >= 0:
                    seconds[name].append(lasted)
                if not quiet:
                    print(f"round {round_number}: {name} {sessions / lasted:.0f}/s", file=sys.stderr)
        latency = _latency(rt, bare[0], max(200, sessions // 5))
        growth = _growth(rt, width, large) if large else None
        memory = _memory(rt, bare)
        step = rt._query("info")["step"]  # the registry's own clock; no public figure needs it
        stats = rt.stats()
    finally:
        rt.close()
        ray.shutdown()
    rates = {name: spread([sessions / s for s in values]) for name, values in seconds.items()}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    figures = {
        "map_vs_actor_pool": medians["actor_pool"] / medians["map"],
        "map_vs_tasks": medians["tasks"] / medians["map"],
        "turn_map_vs_actor_pool": medians["actor_pool"] / medians["turn_map"],
        "turn_map_vs_tasks": medians["tasks"] / medians["turn_map"],
        "accepted_vs_bare_call": latency["accepted"]["p50_ms"] / latency["bare_call"]["p50_ms"],
        "result_vs_bare_call": latency["result"]["p50_ms"] / latency["bare_call"]["p50_ms"],
        "idle_actor_extra_mb": memory["idle_actor_mb"] - memory["bare_actor_mb"],
        "step_cpu_p99_ms": step["cpu_p99_ms"],
    }
    if growth is not None:
        figures["cost_per_session_growth"] = growth["ratio"]
    return {
        "benchmark": "fork_join",
        "config": {"sessions": sessions, "width": width, "rounds": rounds, "large": large},
        "rates_per_second": rates,
        "latency": latency,
        "growth": growth,
        "memory": {**memory, "peak_mb": round(stats.peak_memory_bytes / 2**20, 1)},
        "step": step,
        "budget": {name: _line(name, value) for name, value in figures.items()},
        **facts,
    }


def _line(name: str, value: float) -> dict[str, Any]:
    word, bound = BUDGET[name]
    passed = value >= bound if word == ">=" else value <= bound
    return {"value": round(value, 3), "bound": f"{word} {bound}", "pass": passed}


def _map(rt: Any, sessions: int, width: int) -> float:
    began = time.perf_counter()
    results = rt.map("noop", ["x"] * sessions, width=width)
    lasted = time.perf_counter() - began
    assert len(results) == sessions
    assert all(r.ok for r in results)
    return lasted


def _turn_map(rt: Any, sessions: int, width: int) -> float:
    receipt = rt.spawn(task="fork", agent_id="fork", input={"n": sessions, "width": width})
    lasted: float = rt.result(receipt).raise_for_status().value[0]
    return lasted


def _actor_pool(bare: list[Any], sessions: int) -> float:
    from ray.util import ActorPool

    began = time.perf_counter()
    done = list(ActorPool(bare).map(lambda actor, item: actor.call.remote(item), ["x"] * sessions))
    assert len(done) == sessions
    return time.perf_counter() - began


def _tasks(task: Any, sessions: int, width: int) -> float:
    import ray

    began = time.perf_counter()
    pending: list[Any] = []
    for _ in range(sessions):
        if len(pending) >= width:
            done, pending = ray.wait(pending, num_returns=1)
            ray.get(done)
        pending.append(task.remote("x"))
    ray.get(pending)
    return time.perf_counter() - began


def _latency(rt: Any, bare: Any, times: int) -> dict[str, dict[str, float]]:
    import ray

    calls, accepted, results = [], [], []
    for n in range(-20, times):
        began = time.perf_counter()
        ray.get(bare.call.remote("x"))
        called = time.perf_counter()
        receipt = rt.spawn(task="x", agent_id="noop")
        said = time.perf_counter()
        assert rt.result(receipt).ok
        ended = time.perf_counter()
        if n >= 0:
            calls.append(called - began)
            accepted.append(said - called)
            results.append(ended - called)
    return {"bare_call": percentiles(calls), "accepted": percentiles(accepted), "result": percentiles(results)}


def _growth(rt: Any, width: int, large: int) -> dict[str, float]:
    """Cost per session of a map of ``large`` against maps of 100."""
    small = statistics.median(_map(rt, 100, width) / 100 for _ in range(5))
    big = _map(rt, large, width) / large
    return {"small_ms": round(small * 1000, 3), "large_ms": round(big * 1000, 3), "ratio": round(big / small, 3)}


def _memory(rt: Any, bare: list[Any]) -> dict[str, float]:
    """Private memory of an idle session process and of a bare actor, in MB."""
    import os

    import psutil
    import ray

    @ray.remote(num_cpus=0)
    class Pid:
        def pid(self) -> int:
            return os.getpid()

    actor = Pid.remote()
    bare_mb = psutil.Process(ray.get(actor.pid.remote())).memory_full_info().uss / 2**20
    pids = rt._query("info")["counts"]["pids"]
    ours = [psutil.Process(pid).memory_full_info().uss / 2**20 for pid in pids]
    return {"idle_actor_mb": round(statistics.median(ours), 1), "bare_actor_mb": round(bare_mb, 1)}


if __name__ == "__main__":
    raise SystemExit(main())
