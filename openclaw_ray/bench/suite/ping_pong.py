"""Two sessions that talk: a message and its reply, against a call between two bare actors; and a whole exchange.

Each message is a turn of the other session, which is activated for it, hears the message and passivates again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, milliseconds, of_rounds, percentiles
from openclaw_ray.bench.result import Measured
from openclaw_ray.bench.rig import value_of

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"messages": 500, "exchanges": 20, "turns": 5}
QUICK = {"messages": 100, "exchanges": 5, "turns": 5}
_OVER_WITHIN = 30.0


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    found = Measured()
    with _talking(rig, turns=0) as rt:
        count = int(config["messages"])
        theirs = _bare(rig, count)
        ours = [float(each) for each in value_of(rt.ask("caller", str(count + 10)))][10:]
        rig.look(rt)
    for name, times in (("round_trip", ours), ("bare_round_trip", theirs)):
        found.figures[name] = milliseconds(times)
        found.latency[name] = percentiles(times)
    ours_ms, theirs_ms = found.figures["round_trip"], found.figures["bare_round_trip"]
    found.figures["round_trip_vs_bare"] = of_rounds(
        [ours_ms.median / theirs_ms.median, ours_ms.low / theirs_ms.high, ours_ms.high / theirs_ms.low],
        "x",
        Better.LESS,
    )
    rig.say(f"  round trip {ours_ms.median:.1f} ms, of bare actors {theirs_ms.median:.1f} ms")
    turns = int(config["turns"])
    with _talking(rig, turns=turns) as rt:
        rates = [_exchange(rt) for _ in range(int(config["exchanges"]) + 1)][1:]
        rig.look(rt)
    found.figures["turns_per_second"] = of_rounds(rates, "1/s", Better.MORE)
    return found


def _talking(rig: Rig, *, turns: int) -> Any:
    tools = {"sessions": {"visibility": "all"}, "agentToAgent": {"maxPingPongTurns": turns}}
    return rig.runtime([_caller(), _answerer()], ray={"pool": {"prewarm": 3, "max": 6}}, tools=tools)


def _exchange(rt: Runtime) -> float:
    """Turns a second of one message and all that follows from it: its reply, the turns of both, the announce."""
    events = rt.events()
    began = time.time()
    rt.ask("caller", "1").raise_for_status()
    for event in events:
        if event.kind == "exchange":
            return (2 + (event.done or 0)) / max(1e-6, event.at - began)
        if time.time() - began > _OVER_WITHIN:
            break
    raise TimeoutError(f"an exchange was not over within {_OVER_WITHIN:g} s")


def _bare(rig: Rig, count: int) -> list[float]:
    """What calls from one bare actor to another take, as the caller sees it."""
    ray = rig.ray()

    class Caller:
        def call(self, item: Any) -> str:
            return "ok"

        def time_calls(self, other: Any, times: int) -> list[float]:
            import ray

            found = []
            for _ in range(times):
                began = time.perf_counter()
                ray.get(other.call.remote("x"))
                found.append(time.perf_counter() - began)
            return found

    with rig.bare(2, Caller) as (one, other):
        times: list[float] = ray.get(one.time_calls.remote(other, count + 10))
    return times[10:]


def _caller() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="caller")
    async def caller(turn: oc.Turn) -> Any:
        if turn.source is not None:
            return "and?"
        if turn.kind != "message":
            return None
        found = []
        for _ in range(int(turn.text)):
            began = time.perf_counter()
            sent = await turn.send(None, "x", agent_id="answerer", timeout_seconds=30)
            assert sent.status == "ok", sent
            found.append(time.perf_counter() - began)
        return found

    return caller


def _answerer() -> Any:
    import openclaw_ray as oc

    @oc.agent(id="answerer", spawns=False)
    def answerer(turn: oc.SyncTurn) -> str:
        return "ok"

    return answerer
