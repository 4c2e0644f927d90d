"""How long a spawn takes: until it is accepted, until its turn begins, until its end is heard of.

* ``warm``: on a process that has run a turn; ``cold``: on one that is started for it.
* ``re-activated``: a message to a session that is there, but has no process.
* ``announced``: spawn and join inside of a session. ``first contact`` is the first completion that a process hands to
  that parent; it is told apart by the process id that the child gives back.

When a turn begins is told by its process's clock, so it is right on one host only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, Figure, milliseconds, percentiles
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.rig import value_of

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"spawns": 500, "cold": 10, "parents": 4, "children": 100}
QUICK = {"spawns": 200, "cold": 5, "parents": 2, "children": 60}


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    found = Measured()
    with rig.runtime([_stamp(), _parent()], ray={"pool": {"prewarm": 4, "max": 8}}) as rt, rig.bare(1) as bare:
        rig.settled(rt, 4)
        _warm(rig, rt, bare[0], int(config["spawns"]), found)
        _reactivated(rig, rt, int(config["spawns"]) // 2, found)
        _announced(rig, rt, int(config["parents"]), int(config["children"]), found)
        rig.look(rt)
    with rig.runtime([_stamp()], ray={"pool": {"prewarm": 1, "reuse": "never"}}) as rt:
        _cold(rig, rt, int(config["cold"]), found)
    return found


def _warm(rig: Rig, rt: Runtime, bare: Any, spawns: int, found: Measured) -> None:
    """Spawns by the driver, in turn with calls to a bare actor."""
    ray = rig.ray()
    times: dict[str, list[float]] = {"bare_call": [], "accepted": [], "first_turn": [], "result": []}
    for number in range(-20, spawns):
        began = time.perf_counter()
        ray.get(bare.call.remote("x"))
        called = time.perf_counter()
        accepted, first, result = _spawn(rt)
        if number >= 0:
            times["bare_call"].append(called - began)
            times["accepted"].append(accepted)
            times["first_turn"].append(first)
            times["result"].append(result)
    for name, values in times.items():
        _keep(found, name if name == "bare_call" else f"warm_{name}", values)
    call = found.figures["bare_call"]
    for name in ("accepted", "result"):
        ours = found.figures[f"warm_{name}"]
        ratio = ours.median / call.median
        found.budget[f"{name}_vs_bare_call"] = ratio
        found.figures[f"{name}_vs_bare_call"] = Figure(
            ratio, ours.low / call.high, ours.high / call.low, "x", Better.LESS, ours.count
        )
    rig.say(f"  bare call {call.median:.2f} ms, result {found.figures['warm_result'].median:.2f} ms")


def _reactivated(rig: Rig, rt: Runtime, asks: int, found: Measured) -> None:
    """Messages to one session; between them it has no process, and each finds a longer transcript."""
    times = []
    for number in range(-5, asks):
        began = time.perf_counter()
        rt.ask("stamp", "x").raise_for_status()
        if number >= 0:
            times.append(time.perf_counter() - began)
    _keep(found, "reactivated_reply", times)


def _announced(rig: Rig, rt: Runtime, parents: int, children: int, found: Measured) -> None:
    """Spawn and join inside of sessions."""
    accepted: list[float] = []
    warm: list[float] = []
    first: list[float] = []
    for _ in range(parents):
        receipt = rt.spawn(agent_id="parent", input=children)
        met: set[int] = set()
        for took, ended, pid in value_of(rt.result(receipt)):
            (warm if pid in met else first).append(ended)
            accepted.append(took)
            met.add(pid)
    _keep(found, "warm_accepted_in_a_session", accepted)
    _keep(found, "first_contact_announced", first)
    if warm:
        _keep(found, "warm_announced", warm)


def _cold(rig: Rig, rt: Runtime, spawns: int, found: Measured) -> None:
    """Spawns that each need a process of their own, which is not there yet."""
    times: dict[str, list[float]] = {"accepted": [], "first_turn": [], "result": []}
    rt.result(rt.spawn("x", "stamp")).raise_for_status()  # takes the one that was there
    before = rt.stats().cold_activations
    for _ in range(spawns):
        for name, value in zip(times, _spawn(rt), strict=True):
            times[name].append(value)
    for name, values in times.items():
        _keep(found, f"cold_{name}", values)
    found.facts["cold_activations"] = rt.stats().cold_activations - before
    rig.say(f"  cold: first turn after {found.figures['cold_first_turn'].median:.0f} ms")


def _spawn(rt: Runtime) -> tuple[float, float, float]:
    """Seconds until accepted, until the turn began, until the result."""
    began, at = time.perf_counter(), time.time()
    receipt = rt.spawn(task="x", agent_id="stamp")
    accepted = time.perf_counter() - began
    first, _ = value_of(rt.result(receipt))
    return accepted, first - at, time.perf_counter() - began


def _keep(found: Measured, name: str, seconds: list[float]) -> None:
    found.figures[name] = milliseconds(seconds)
    found.latency[name] = percentiles(seconds)


def _stamp() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="stamp", spawns=False)
    def stamp(turn: oc.SyncTurn) -> tuple[float, int]:
        return time.time(), os.getpid()

    return stamp


def _parent() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="parent")
    async def parent(turn: oc.Turn) -> list[tuple[float, float, int]]:
        found = []
        for _ in range(turn.input):
            began = time.perf_counter()
            receipt = await turn.spawn(agent_id="stamp", task="x")
            accepted = time.perf_counter() - began
            [done] = await turn.join([receipt])
            ended = time.perf_counter() - began
            value: Any = done.result.raise_for_status().value
            found.append((accepted, ended, value[1]))
        return found

    return parent
