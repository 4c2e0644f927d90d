"""What another configuration changes, and when (SCENARIOS.md 64)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from openclaw_ray import config
from openclaw_ray.config import Change, TakesEffect
from openclaw_ray.config._changes import _LIVE
from openclaw_ray.core.limits import RuntimeLimits


def changes(old: dict[str, Any], new: dict[str, Any], env: dict[str, str] | None = None) -> tuple[Change, ...]:
    return config.changes(config.load(old, env=env or {}), config.load(new, env=env or {}))


def subagents(**settings: Any) -> dict[str, Any]:
    return {"agents": {"defaults": {"subagents": settings}}}


def test_the_same_values_are_no_change_however_they_are_written() -> None:
    assert changes({}, {"ray": {"recovery": "resume"}, "gateway": {"port": 1}}) == ()


@pytest.mark.parametrize(
    ("settings", "name", "when"),
    [
        (subagents(maxChildrenPerAgent=7), "agents.defaults.subagents.maxChildrenPerAgent", TakesEffect.NOW),
        (subagents(allowAgents=["*"]), "agents.defaults.subagents.allowAgents", TakesEffect.NOW),
        (subagents(maxSpawnDepth=2), "agents.defaults.subagents.maxSpawnDepth", TakesEffect.RESTART),
        (subagents(thinking="low"), "agents.defaults.subagents.thinking", TakesEffect.NOT_YET),
        ({"ray": {"stopGraceSeconds": 1}}, "ray.stopGraceSeconds", TakesEffect.NOW),
        ({"ray": {"maxActiveSessions": 3}}, "ray.maxActiveSessions", TakesEffect.NOW),
        ({"ray": {"journal": {"sync": "full"}}}, "ray.journal.sync", TakesEffect.RESTART),
        ({"ray": {"clientLeaseSeconds": 5}}, "ray.clientLeaseSeconds", TakesEffect.RESTART),
        ({"ray": {"pool": {"max": 9}}}, "ray.pool.max", TakesEffect.RESTART),
        ({"session": {"agentToAgent": {"enabled": False}}}, "a2a.enabled", TakesEffect.NOW),
        ({"tools": {"profile": "coding"}}, "tools.profile", TakesEffect.NOT_YET),
    ],
)
def test_each_change_says_when_it_takes_effect(settings: dict[str, Any], name: str, when: TakesEffect) -> None:
    (found,) = changes({}, settings)
    assert (found.name, found.takes_effect) == (name, when)
    (back,) = changes(settings, {})
    assert (back.old, back.new) == (found.new, found.old)


def test_a_default_that_agents_inherit_is_told_once() -> None:
    roster = {"entries": {"a": {}, "b": {"subagents": {"allowAgents": ["x"]}}}}
    old = {"agents": {**roster, "defaults": {"subagents": {"allowAgents": ["a"]}}}}
    new = {"agents": {**roster, "defaults": {"subagents": {"allowAgents": ["b"]}}}}
    assert [one.name for one in changes(old, new)] == ["agents.defaults.subagents.allowAgents"]


def test_an_agents_own_settings_are_told_with_its_name() -> None:
    new = {"agents": {"entries": {"main": {"subagents": {"allowAgents": ["x"]}, "ray": {"num_cpus": 1}}}}}
    assert [(one.name, one.old, one.new, one.takes_effect) for one in changes({}, new)] == [
        ("agent:main.subagents.allowAgents", None, ["x"], TakesEffect.NOW),
        ("agent:main.ray.num_cpus", None, 1, TakesEffect.NOW),
    ]


def test_a_new_agent_changes_the_roster() -> None:
    (found,) = changes({}, {"agents": {"entries": {"main": {}, "docs": {}}}})
    assert (found.name, found.old, found.new) == ("agents.ids", ["main"], ["main", "docs"])


def test_a_changed_variable_is_a_change_whose_value_is_not_shown() -> None:
    settings = {"agents": {"defaults": {"workspace": "${PLACE}"}}}
    old = config.load(settings, env={"PLACE": "s3cret-1"})
    (found,) = config.changes(old, config.load(settings, env={"PLACE": "s3cret-2"}))
    assert found == Change("agents.defaults.workspace", "${PLACE}", "${PLACE}", TakesEffect.NOT_YET)


def test_a_running_runtime_takes_what_can_change_and_keeps_the_rest() -> None:
    running = config.load({}, env={}).runtime_limits(cpus=2)
    new = config.load(
        {
            **subagents(maxChildrenPerAgent=7, maxSpawnDepth=2, maxConcurrent=3, runTimeoutSeconds=9),
            "ray": {"stopGraceSeconds": 1, "journal": {"sync": "full"}, "pool": {"max": 9, "reuse": "never"}},
        },
        env={},
    ).runtime_limits(cpus=2)
    after = config.limits_after(running, new)
    changed = {one.name for one in fields(RuntimeLimits) if getattr(after, one.name) != getattr(running, one.name)}
    assert changed == {
        "max_children",
        "max_concurrent",
        "run_timeout_seconds",
        "stop_grace_seconds",
        "pool_reuse",
        "config_rev",
    }


def test_every_setting_that_can_change_is_one() -> None:
    known = {row.key for row in config.rows()} | {"a2a.allow", "a2a.enabled", "a2a.maxPingPongTurns"}
    assert set(_LIVE) <= known
    assert set(_LIVE.values()) <= {one.name for one in fields(RuntimeLimits)}


def test_the_widths_of_a_runtime_follow_the_bundle_that_it_began_with() -> None:
    new = config.load({"ray": {"compat": "2026.7"}}, env={})
    running = config.load({}, env={}).runtime_limits(cpus=4)
    after = config.limits_after(running, new.runtime_limits(cpus=4, compat=running.compat))
    assert after.main_lane == running.main_lane
