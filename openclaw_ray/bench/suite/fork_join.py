"""Fork-join of no-op sessions, against what Ray itself does with no-op calls in the same run.

Measured in turn (A B C D, A B C D, …) after a warm-up of each:

* ``rt.map``: one isolated session per item, journal and transcripts on; ``turn.map``: the same inside a session;
* ``ActorPool.map`` over as many bare actors, and default ``@ray.remote`` tasks, ``width`` in flight.

Then payloads of several sizes with and without sessions, a curve over widths, and one large map against small ones.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, in_turn, of_rounds, rates, ratio
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.rig import noop_agent, value_of
from openclaw_ray.bench.sweep import measure_point

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {
    "sessions": 1_000,
    "width": 16,
    "rounds": 5,
    "large": 10_000,
    "payloads": [1_000, 100_000, 1_000_000],
    "widths": [1, 2, 4, 8, 16, 32],
}
QUICK = {**FULL, "sessions": 300, "rounds": 3, "payloads": [100_000], "widths": [1, 2, 4, 8, 16]}
_WIDTH, _ENOUGH = 16, 300
"""Sessions at once that the budget's lines on maps are for, and how many must come of a round that counts."""
_LARGE = 10_000
"""Sessions that the budget's line on cost asks for."""


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    width, sessions = int(config["width"]), int(config["sessions"])
    widest = max(width, *config["widths"], 1)
    pool = {"prewarm": width + 1, "max": widest + 6}
    agents = [noop_agent(), _fork()]
    found = Measured()
    with (
        rig.runtime(agents, subagents={"maxChildrenPerAgent": 64, "maxConcurrent": width}, ray={"pool": pool}) as rt,
        rig.bare(width) as bare,
    ):
        rig.settled(rt, width + 1)
        _against_ray(rig, rt, bare, config, found)
        _payloads(rig, rt, bare, config, found)
        if config["large"]:
            _growth(rig, rt, width, int(config["large"]), found)
        step = rt._query("info")["step"]  # the registry's own clock; no public figure needs all of it
        found.budget["step_cpu_p99_ms"] = step["cpu_p99_ms"]
        found.facts["step"] = step
        found.curves["concurrency"] = [
            measure_point(
                rig, rt, "noop", ["x"] * sessions, width=w, rounds=max(2, int(config["rounds"]) // 2), warm_up=4 * w
            ).to_json()
            for w in config["widths"]
        ]
    return found


def _against_ray(rig: Rig, rt: Runtime, bare: list[Any], config: Mapping[str, Any], found: Measured) -> None:
    sessions, width = int(config["sessions"]), int(config["width"])

    @rig.ray().remote  # type: ignore[untyped-decorator]
    def task(item: str) -> str:
        return "ok"

    contenders: dict[str, Callable[[], float]] = {
        "map": lambda: _map(rt, ["x"] * sessions, width),
        "turn_map": lambda: _turn_map(rt, sessions, width),
        "actor_pool": lambda: _actor_pool(bare, ["x"] * sessions),
        "tasks": lambda: _tasks(task, sessions, width),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number, name in in_turn(contenders, int(config["rounds"])):
        lasted = contenders[name]()
        rig.say(f"  round {number + 1}: {name} {sessions / lasted:.0f}/s")
        if number >= 0:
            seconds[name].append(lasted)
        rig.look(rt)
    for name, values in seconds.items():
        found.figures[name] = rates(sessions, values)
    for ours in ("map", "turn_map"):
        for theirs in ("actor_pool", "tasks"):
            figure = ratio(seconds[theirs], seconds[ours], Better.MORE)
            found.figures[f"{ours}_vs_{theirs}"] = figure
            if width == _WIDTH and sessions >= _ENOUGH:
                found.budget[f"{ours}_vs_{theirs}"] = figure.median
            else:
                found.budget_notes[f"{ours}_vs_{theirs}"] = (
                    f"measured with {sessions} sessions, {width} at once, where it is {figure.median:.2f}; the line is "
                    f"for {_WIDTH} at once, and {_ENOUGH} sessions or more"
                )


def _payloads(rig: Rig, rt: Runtime, bare: list[Any], config: Mapping[str, Any], found: Measured) -> None:
    """The same with something to carry: bytes that go in, and are not looked at."""
    rounds, width = int(config["rounds"]), int(config["width"])
    count = max(width, int(config["sessions"]) // 5)
    for size in config["payloads"]:
        items = [bytes(size)] * count
        contenders = {"map": lambda i=items: _map(rt, i, width), "actor_pool": lambda i=items: _actor_pool(bare, i)}
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for number, name in in_turn(contenders, rounds):
            lasted = contenders[name]()
            if number >= 0:
                seconds[name].append(lasted)
        rig.look(rt)
        for name, values in seconds.items():
            found.figures[f"{name}_{size}_bytes"] = rates(count, values)
        found.figures[f"map_vs_actor_pool_{size}_bytes"] = ratio(seconds["actor_pool"], seconds["map"], Better.MORE)
        rig.say(f"  {size} bytes: map {count / statistics.median(seconds['map']):.0f}/s")


def _growth(rig: Rig, rt: Runtime, width: int, large: int, found: Measured) -> None:
    """Cost per session of a map of ``large`` against maps of 100, before and after it."""
    small = [_map(rt, ["x"] * 100, width) / 100 for _ in range(3)]
    big = _map(rt, ["x"] * large, width) / large
    small += [_map(rt, ["x"] * 100, width) / 100 for _ in range(3)]
    rig.look(rt)
    rig.say(f"  {large} sessions: {1 / big:.0f}/s")
    found.figures["cost_per_session_at_100"] = of_rounds([each * 1000 for each in small], "ms", Better.LESS)
    found.figures["cost_per_session_growth"] = of_rounds([big / each for each in small], "x", Better.LESS)
    if large >= _LARGE:
        found.budget["cost_per_session_growth"] = big / statistics.median(small)
    else:
        found.budget_notes["cost_per_session_growth"] = (
            f"measured at {large:,} sessions, where it is {big / statistics.median(small):.2f}; the line asks for "
            f"{_LARGE:,} (--set fork_join.large={_LARGE})"
        )


def _fork() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="fork")
    async def fork(turn: oc.Turn) -> float:
        # the first join of a turn pays for the first contact of its processes; it is warmed up with the rest
        began = time.perf_counter()
        results = await turn.map("noop", ["x"] * int(turn.input["n"]), width=int(turn.input["width"]))
        lasted = time.perf_counter() - began
        assert all(r.ok for r in results)
        assert len(results) == turn.input["n"]
        return lasted

    return fork


def _map(rt: Runtime, items: list[Any], width: int) -> float:
    began = time.perf_counter()
    results = rt.map("noop", items, width=width)
    lasted = time.perf_counter() - began
    assert len(results) == len(items)
    assert all(r.ok for r in results)
    return lasted


def _turn_map(rt: Runtime, sessions: int, width: int) -> float:
    receipt = rt.spawn(task="fork", agent_id="fork", input={"n": sessions, "width": width})
    return float(value_of(rt.result(receipt)))


def _actor_pool(bare: list[Any], items: list[Any]) -> float:
    from ray.util import ActorPool

    began = time.perf_counter()
    done = list(ActorPool(bare).map(lambda actor, item: actor.call.remote(item), items))
    assert len(done) == len(items)
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
