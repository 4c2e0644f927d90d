"""A rate limit over sessions of two clients, while some of their processes are killed.

A heavy form: with ``OPENCLAW_RAY_LONG=1`` 200 under 20 a second and 5 at once, else 60. The same without Ray is in
``tests/core/rules/test_rules_limits.py``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_tier import LONG
from limit_agents import limited

import openclaw_ray as oc
from openclaw_ray.core.lifecycle import Cause
from openclaw_ray.testing.chaos import Killer, Victim
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]

SESSIONS, RATE = (100, 20) if LONG else (30, 30)
PLACES = 5
LASTS = 0.12


@pytest.fixture(scope="module")
def config() -> dict[str, object]:
    """A limit, and processes enough for all who want to be in."""
    return {"limits": {"api": {"rate": RATE, "concurrent": PLACES}}, "pool": {"max": 14}}


@pytest.mark.long
def test_never_above_the_limit_fair_between_two_roots_and_no_place_is_lost(
    rt: oc.Runtime, tmp_path: Path, seed: int
) -> None:
    rt.register([limited])
    log = tmp_path / "log"
    with oc.Runtime.connect(rt.name) as other, ThreadPoolExecutor(2) as threads:
        with Killer(rt, [Victim.BUSY], rate=0.5, seed=seed):
            maps = [
                threads.submit(client.map, "limited", [(str(log), name, LASTS)] * SESSIONS, width=6)
                for client, name in ((rt, "one"), (other, "two"))
            ]
            results = [result for each in maps for result in each.result()]
        eventually(lambda: rt.stats().limits["api"] == {"held": 0, "waiting": 0}, what="every place given back")
    died = [result for result in results if not result.ok]
    assert {result.error.cause for result in died if result.error is not None} <= {Cause.PROCESS_DIED}
    assert len(died) < len(results) / 4

    lines = [line.split() for line in log.read_text().splitlines()]
    spans = sorted((float(came), float(gone), root) for root, came, gone in lines)
    changes = sorted([(came, 1) for came, _, _ in spans] + [(gone, -1) for _, gone, _ in spans])
    inside = most = 0
    for _, change in changes:
        inside += change
        most = max(most, inside)
    assert most <= PLACES
    # a turn hears of it some milliseconds after it was let in: one of the second before may be late
    for begin, _, _ in spans:
        assert sum(begin <= came < begin + 1.0 for came, _, _ in spans) <= RATE + 1
    half = [root for _, _, root in spans[: len(spans) // 2]]
    assert abs(half.count("one") - half.count("two")) <= 0.2 * len(half)
