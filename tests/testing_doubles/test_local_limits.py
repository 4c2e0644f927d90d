"""``turn.limit`` over a runtime of threads: plain and async turns, errors that teach, stops, and what all share."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from support import inside

import openclaw_ray as oc
from openclaw_ray.testing import LocalRuntime, assert_at_rest, eventually, run_turn


@oc.agent(spawns=False)
def plain(turn: oc.SyncTurn) -> str:
    with turn.limit(turn.text), inside.INSIDE[turn.text]:
        time.sleep(0.005)
    return "done"


@oc.agent(spawns=False)
async def awaited(turn: oc.Turn) -> str:
    async def one() -> None:
        async with turn.limit(turn.text):
            with inside.INSIDE[turn.text]:
                await asyncio.sleep(0.005)

    await asyncio.gather(*(one() for _ in range(4)))
    return "done"


@oc.agent
def holds(turn: oc.SyncTurn) -> Any:
    """Waits for a child inside; the child wants the same."""
    with turn.limit("one"):
        turn.spawn("one", agent_id="plain")
        [done] = turn.join()
    return done.result.error.message


@oc.agent(spawns=False)
def stays(turn: oc.SyncTurn) -> None:
    with turn.limit("one"):
        turn.progress("inside")
        while True:
            turn.check()
            time.sleep(0.002)


@oc.agent(spawns=False)
def tries(turn: oc.SyncTurn) -> str:
    try:
        with turn.limit(turn.text, timeout=0.02):
            return "in"
    except oc.OpenClawRayError as error:
        return f"{type(error).__name__}: {error}"


CONFIG = {
    "agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}},
    "ray": {"limits": {"two": {"concurrent": 2}, "one": {"concurrent": 1}, "fast": {"rate": 100}}, "pool": {"max": 12}},
}
AGENTS = [plain, awaited, holds, stays, tries]


@pytest.fixture(autouse=True)
def counters() -> None:
    inside.INSIDE.update({name: inside.Inside() for name in ("one", "two", "fast")})


def test_never_more_at_once_than_there_are_places_in_plain_and_async_turns() -> None:
    with LocalRuntime(AGENTS, config=CONFIG) as rt:
        results = rt.map("plain", ["two"] * 12) + rt.map("awaited", ["two"] * 4)
        assert {result.status for result in results} == {oc.ResultStatus.OK}
        assert inside.INSIDE["two"].most == 2
        assert rt.stats().limits["two"] == {"held": 0, "waiting": 0}
        assert_at_rest(rt)


def test_never_faster_than_the_rate() -> None:
    with LocalRuntime(AGENTS, config=CONFIG) as rt:
        rt.map("plain", ["fast"] * 30)
        times = sorted(inside.INSIDE["fast"].times)
        # let in at least 10 ms apart by the registry's clock; the last one cannot be earlier than that
        assert times[-1] - times[0] >= 29 * 0.01 - 0.02


def test_a_stopped_turn_gives_back_and_one_that_waits_leaves_the_line() -> None:
    with LocalRuntime(AGENTS, config=CONFIG) as rt:
        first = rt.spawn("go", "stays")
        eventually(lambda: rt.stats().limits["one"]["held"] == 1)
        second = rt.spawn("one", "plain")
        third = rt.spawn("one", "plain")
        eventually(lambda: rt.stats().limits["one"]["waiting"] == 2)
        rt.stop(second.session_key)
        eventually(lambda: rt.stats().limits["one"]["waiting"] == 1)
        rt.stop(first.session_key)
        assert rt.result(third, timeout=10).status is oc.ResultStatus.OK
        assert rt.stats().limits["one"] == {"held": 0, "waiting": 0}


def test_errors_name_the_limit_and_the_way_out() -> None:
    with LocalRuntime(AGENTS, config=CONFIG) as rt:
        above = rt.ask("holds", "go", timeout=10)
        assert "all 1 places (ray.limits.one.concurrent) are held by sessions that wait above" in (above.text or "")
        unknown = rt.ask("tries", "tow", timeout=10)
        known = "(ray.limits: fast, one, two; add ray.limits.tow)"
        assert unknown.text == f"UnknownLimit: there is no rate limit 'tow' {known}"
        holder = rt.spawn("go", "stays")
        eventually(lambda: rt.stats().limits["one"]["held"] == 1)
        late = rt.ask("tries", "one", timeout=10)
        assert (late.text or "").startswith("LimitTimeout: rate limit 'one' did not let this turn in within 0.02 s")
        assert rt.stats().limits["one"]["waiting"] == 0
        rt.stop(holder.session_key)


def test_in_run_turn_everybody_is_let_in() -> None:
    assert run_turn(plain, "two").result.text == "done"


@pytest.mark.parametrize(("options", "what"), [({"cost": 0}, "cost"), ({"timeout": -1}, "timeout")])
def test_a_cost_or_timeout_that_is_none_is_refused(options: dict[str, Any], what: str) -> None:
    @oc.agent
    def wrong(turn: oc.SyncTurn) -> None:
        turn.limit("two", **options)

    error = run_turn(wrong, "x").result.error
    assert error is not None
    assert error.type == "ValueError"
    assert what in error.message
