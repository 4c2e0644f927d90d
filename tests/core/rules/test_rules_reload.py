"""New limits in a running registry: all or none, kept over a crash, never a turn disturbed (SCENARIOS.md 64)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openclaw_ray.core.limits import AgentLimits
from openclaw_ray.core.protocol.journal import JournalFault
from openclaw_ray.core.protocol.messages import Start
from openclaw_ray.core.protocol.reloading import kept_limits
from rules.hand import Hand


def reload(hand: Hand, agents: dict[str, AgentLimits] | None = None, **limits: Any) -> None:
    hand.do(hand.registry.reload(replace(hand.limits, **limits), agents or {}, "boot"))


def started(hand: Hand) -> list[str]:
    return [start.spec.run for start in hand.sent(Start)]


def test_a_wider_lane_lets_those_who_wait_in_at_once() -> None:
    hand = Hand(actors=4, pool_max=8, max_concurrent=1)
    parent = hand.start("parent")
    for child in ("a", "b", "c"):
        parent.spawn(child)
    assert started(hand) == ["a"]
    reload(hand, max_concurrent=2)
    assert started(hand) == ["a", "b"]


def test_a_narrower_lane_stops_nobody_and_lets_nobody_in() -> None:
    hand = Hand(actors=5, pool_max=8, max_concurrent=2)
    parent = hand.start("parent")
    for child in ("a", "b", "c"):
        parent.spawn(child)
    first, second = hand.begin("a"), hand.begin("b")
    reload(hand, max_concurrent=1)
    assert (hand.state("a"), hand.state("b"), hand.state("c")) == ("running", "running", "queued")
    first.settle()
    assert started(hand) == []
    second.settle()
    assert started(hand) == ["c"]


def test_the_next_spawn_goes_by_the_new_limits_and_a_run_keeps_its_timeout() -> None:
    hand = Hand(actors=4, pool_max=8, run_timeout_seconds=10)
    parent = hand.start("parent")
    parent.spawn("a")
    reload(hand, max_children=2, run_timeout_seconds=20)
    parent.spawn("b")
    assert (hand.run("a").timeout, hand.run("b").timeout) == (10, 20)
    assert not parent.spawn("c").accepted


def test_an_agents_new_allowlist_holds_after_a_crash_too() -> None:
    hand = Hand(actors=1)
    reload(hand, {"w": AgentLimits("w", allow_agents=("docs",)), "unknown": AgentLimits("unknown")}, max_children=2)
    hand.crash_registry()
    assert hand.registry.s.agents["w"].limits.allow_agents == ("docs",)
    assert "unknown" not in hand.registry.s.agents
    assert hand.registry.bundle("b1") == (b"code", ())


def test_a_registry_that_is_started_again_has_the_limits_of_the_last_reload() -> None:
    hand = Hand(actors=1)
    reload(hand, max_children=2)
    reload(hand, max_children=3)
    assert kept_limits(hand.journal, "boot", hand.limits).max_children == 3
    assert kept_limits(hand.journal, "next boot", hand.limits) == hand.limits


def test_what_the_journal_does_not_keep_never_happened() -> None:
    hand = Hand(actors=1)
    hand.journal.fail_next = 1
    with pytest.raises(JournalFault):
        reload(hand, {"w": AgentLimits("w", require_agent_id=True)}, max_children=2)
    hand.crash_registry()
    assert kept_limits(hand.journal, "boot", hand.limits) == hand.limits
    assert hand.registry.s.agents["w"].limits.require_agent_id is False
