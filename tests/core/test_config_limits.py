"""What the actors get of a configuration: core.limits, made by config.Config (DESIGN.md 11)."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray import config
from openclaw_ray.config import ConfigError
from openclaw_ray.core.attachments import AttachmentLimits
from openclaw_ray.core.auth import AuthRules
from openclaw_ray.core.limits import (
    AgentLimits,
    AgentSettings,
    Compat,
    JournalSync,
    Logs,
    PoolReuse,
    Recovery,
    RuntimeLimits,
)
from openclaw_ray.core.policy import Names, ToolLists, ToolRules, ToolSettings
from openclaw_ray.core.rate_limits import LimitRule
from openclaw_ray.core.thread_rules import Bindings, ThreadRules
from openclaw_ray.core.visibility import SessionRules, Visibility


def limits(source: dict[str, Any] | None = None, cpus: int = 2) -> RuntimeLimits:
    return config.load(source or {}, env={}).runtime_limits(cpus=cpus)


def test_the_defaults_of_the_record_are_those_of_the_configuration() -> None:
    made = limits()
    assert made.config_rev
    for one in fields(RuntimeLimits):
        if one.name != "config_rev":
            assert getattr(made, one.name) == getattr(RuntimeLimits(), one.name), one.name


SETTINGS: dict[str, Any] = {
    "agents": {
        "defaults": {
            "maxConcurrent": 3,
            "timeoutSeconds": 600,
            "subagents": {
                "maxSpawnDepth": 2,
                "maxChildrenPerAgent": 7,
                "maxConcurrent": 4,
                "runTimeoutSeconds": 300,
                "announceTimeoutMs": 10**12,
                "archiveAfterMinutes": 0,
            },
        }
    },
    "session": {"maintenance": {"pruneAfter": "1d12h"}, "threadBindings": {"idleHours": 3}},
    "ray": {
        "compat": "2026.7",
        "pool": {
            "max": 12,
            "prewarm": 0,
            "reuse": "tree",
            "idleSeconds": 5,
            "parkSeconds": 0.5,
            "maxGrowthMb": 32,
            "scheduling": "node:head",
            "placeSeconds": 600,
        },
        "maxActiveSessions": 9,
        "stopGraceSeconds": 1,
        "clientLeaseSeconds": 6,
        "registryTimeoutSeconds": 11,
        "recovery": "finalize",
        "inbox": {"max": 5},
        "budgets": {"sessionsPerTree": 20, "tokensPerTree": 1000, "costPerTree": 1.5},
        "journal": {"sync": "full"},
        "logs": "json",
        "pingPongWithSubagents": False,
        "limits": {"api": {"rate": 20, "per": 60, "burst": 3, "concurrent": 5}},
    },
    "tools": {
        "sessions": {"visibility": "all"},
        "deny": ["exec"],
        "sessions_spawn": {
            "attachments": {
                "enabled": True,
                "maxTotalBytes": 30,
                "maxFiles": 2,
                "maxFileBytes": 20,
                "retainOnSessionKeep": True,
            }
        }
    },
}


def test_every_setting_has_an_effect() -> None:
    made = limits(SETTINGS)
    assert made == RuntimeLimits(
        max_spawn_depth=2,
        max_spawn_depth_set=True,
        max_children=7,
        max_concurrent=4,
        global_lane=True,
        main_lane=3,
        run_timeout_seconds=300,
        turn_timeout_seconds=600,
        announce_timeout_ms=2**31 - 1,
        archive_after_minutes=0,
        prune_after=36 * 3600.0,
        pool_max=12,
        pool_prewarm=0,
        pool_reuse=PoolReuse.TREE,
        pool_idle_seconds=5.0,
        pool_park_seconds=0.5,
        pool_max_growth_mb=32.0,
        pool_scheduling="node:head",
        pool_place_seconds=600.0,
        max_active_sessions=9,
        stop_grace_seconds=1.0,
        client_lease_seconds=6.0,
        registry_timeout_seconds=11.0,
        recovery=Recovery.FINALIZE,
        inbox_max=5,
        journal_sync=JournalSync.FULL,
        logs=Logs.JSON,
        ping_pong_with_subagents=False,
        sessions_per_tree=20,
        tokens_per_tree=1000,
        cost_per_tree=1.5,
        compat=Compat.V2026_7,
        config_rev=made.config_rev,
        tools=ToolRules(ToolSettings(lists=ToolLists(deny=Names(("exec",), "tools.deny")))),
        rates=(LimitRule("api", 20.0, 60.0, 3.0, 5),),
        sessions=SessionRules(visibility=Visibility.ALL),
        attachments=AttachmentLimits(30, 2, 20, retain=True),
        threads=ThreadRules(Bindings(idle_hours=3.0)),
    )
    untouched = [
        one.name for one in fields(RuntimeLimits) if getattr(made, one.name) == getattr(limits(), one.name)
    ]
    assert untouched == ["archive_minute"]  # no setting: how long a minute is


@pytest.mark.parametrize(("cpus", "width"), [(1, 8), (12, 12), (64, 16)])
def test_the_main_lane_follows_the_cpus_between_8_and_16(cpus: int, width: int) -> None:
    assert limits(cpus=cpus).main_lane == width


def test_the_bundle_of_2026_7_changes_depth_and_lanes() -> None:
    old = limits({"ray": {"compat": "2026.7"}}, cpus=4)
    assert (old.max_spawn_depth, old.max_spawn_depth_set, old.global_lane, old.main_lane) == (
        1,
        False,
        True,
        16,
    )


def test_a_written_depth_beats_the_bundle() -> None:
    source = {"ray": {"compat": "2026.7"}, "agents": {"defaults": {"subagents": {"maxSpawnDepth": 5}}}}
    assert limits(source).max_spawn_depth == 5


def test_null_is_no_cap_on_active_sessions() -> None:
    assert limits({"ray": {"maxActiveSessions": None}}).max_active_sessions is None


@pytest.mark.parametrize(
    ("key", "most", "unlocked"), [("maxChildrenPerAgent", 20, 10_000), ("maxSpawnDepth", 5, 32)]
)
def test_unlock_raises_two_limits(key: str, most: int, unlocked: int) -> None:
    def source(value: int, unlock: bool) -> dict[str, Any]:
        return {"agents": {"defaults": {"subagents": {key: value}}}, "ray": {"limits": {"unlock": unlock}}}

    config.load(source(most, False), env={})
    config.load(source(unlocked, True), env={})
    with pytest.raises(ConfigError, match=f"ray.limits.unlock: true allows up to {unlocked}"):
        config.load(source(most + 1, False), env={})
    with pytest.raises(ConfigError, match=f"from 1 to {unlocked}"):
        config.load(source(unlocked + 1, True), env={})


# --------------------------------------------------------------------------- agents


ROSTER: dict[str, Any] = {
    "agents": {
        "defaults": {"workspace": "~/w", "subagents": {"allowAgents": ["main"], "requireAgentId": True}},
        "list": [
            {"id": "main", "workspace": "~/m", "subagents": {"allowAgents": ["x"]}, "default": True},
            {"id": "Docs", "subagents": {"requireAgentId": False}},
        ],
        "entries": {
            "main": {"agentDir": "~/a", "subagents": {"allowAgents": [" Docs ", "  "]}},
            "gpu": {
                "ray": {
                    "num_cpus": 1,
                    "num_gpus": 0.5,
                    "memory": 1000,
                    "resources": {"tpu": 2},
                    "scheduling": "SPREAD",
                }
            },
        },
    }
}


def test_both_rosters_are_merged_and_entries_win_field_by_field() -> None:
    loaded = config.load(ROSTER, env={})
    assert loaded.agent_ids == ("main", "gpu", "docs")
    assert loaded.agent_limits("Main") == AgentLimits(
        agent_id="main",
        configured=True,
        allow_agents=("docs",),
        allow_path="agents.entries.main.subagents.allowAgents",
        require_agent_id=True,
        workspace="~/m",
        agent_dir="~/a",
        auth=AuthRules(own=str(Path.home() / "a" / "auth-profiles.json")),
        settings=AgentSettings(workspace="~/m", workspace_path="agents.list[0].workspace"),
    )


def test_what_an_agents_sessions_are_given_is_one_record_or_none() -> None:
    assert config.load({}, env={}).agent_limits("main").settings is None
    assert config.load({"agents": {"entries": {"main": {"name": "M"}}}}, env={}).agent_limits("main").settings is None
    source = {
        "agents": {
            "defaults": {
                "workspace": "~/w",
                "model": {"primary": "a/d", "fallbacks": ["b/d"]},
                "thinkingDefault": "low",
                "sandbox": {"mode": "non-main"},
                "subagents": {"model": "a/c", "thinking": "high", "delegationMode": "prefer"},
            },
            "entries": {
                "docs": {
                    "sandbox": {"mode": "off"},
                    "model": "a/docs",
                    "subagents": {"model": "a/k", "thinking": "max"},
                }
            },
        }
    }
    loaded = config.load(source, env={})
    assert loaded.agent_limits("main").settings == AgentSettings(
        workspace="~/w",
        sandbox="non-main",
        model="a/d",
        thinking="low",
        child_model="a/c",
        default_thinking="high",
        delegation="prefer",
    )
    docs = loaded.agent_limits("docs").settings
    assert docs is not None
    assert (docs.sandbox, docs.sandbox_path) == ("off", "agents.entries.docs.sandbox.mode")
    assert (docs.model, docs.child_model) == ("a/docs", "a/k")
    assert (docs.child_thinking, docs.child_thinking_path) == ("max", "agents.entries.docs.subagents.thinking")
    assert type(docs.workspace) is str  # no type of the configuration's travels


def test_each_setting_falls_back_on_its_own_and_says_where_it_is_set() -> None:
    docs = config.load(ROSTER, env={}).agent_limits("docs")
    assert (docs.allow_agents, docs.allow_path) == (("main",), "agents.defaults.subagents.allowAgents")
    assert (docs.require_agent_id, docs.require_path) == (False, "agents.list[1].subagents.requireAgentId")
    assert docs.workspace == "~/w"


def test_what_an_agent_asks_of_ray_is_one_dict() -> None:
    gpu = config.load(ROSTER, env={}).agent_limits("gpu")
    assert gpu.resources == {"num_cpus": 1.0, "num_gpus": 0.5, "memory": 1000.0, "tpu": 2.0}
    assert gpu.scheduling == "SPREAD"


def test_an_agent_that_is_not_named_has_the_defaults() -> None:
    other = config.load(ROSTER, env={}).agent_limits("other")
    assert (other.configured, other.allow_agents, other.resources) == (False, ("main",), {})
    with pytest.raises(ValueError, match="not an agent id"):
        config.load(env={}).agent_limits("../x")


@pytest.mark.parametrize(
    ("written", "kept"), [(None, None), ([], ()), (["  "], ()), (["*"], ("*",)), (["a", "A"], ("a",))]
)
def test_no_list_and_an_empty_list_are_two_things(
    written: list[str] | None, kept: tuple[str, ...] | None
) -> None:
    settings = {} if written is None else {"allowAgents": written}
    loaded = config.load({"agents": {"entries": {"a": {"subagents": settings}}}}, env={})
    assert loaded.agent_limits("a").allow_agents == kept


@pytest.mark.parametrize(
    ("entries", "default"),
    [
        ({}, "main"),
        ({"docs": {}}, "docs"),
        ({"docs": {}, "main": {}}, "main"),
        ({"docs": {}, "ops": {}}, "main"),
        ({"docs": {}, "Ops": {"default": True}}, "ops"),
    ],
)
def test_the_default_agent_is_the_marked_one_else_main_else_the_only_one(
    entries: dict[str, Any], default: str
) -> None:
    assert config.load({"agents": {"entries": entries}}, env={}).default_agent == default


def test_entries_can_take_the_mark_from_the_list() -> None:
    source = {
        "agents": {"list": [{"id": "a", "default": True}], "entries": {"A": {"default": False}, "b": {}}}
    }
    assert config.load(source, env={}).default_agent == "main"


def test_two_default_agents_over_both_rosters_are_refused() -> None:
    source = {"agents": {"list": [{"id": "a", "default": True}], "entries": {"b": {"default": True}}}}
    with pytest.raises(ConfigError, match=r"agents.entries.b.default: agent a is the default agent already"):
        config.load(source, env={})


def test_an_id_may_be_in_both_rosters_but_not_two_times_in_one() -> None:
    with pytest.raises(
        ConfigError, match=r"agents.list\[1\].id: is the same agent id as agents.list\[0\].id"
    ):
        config.load({"agents": {"list": [{"id": "a"}, {"id": "A"}], "entries": {"a": {}}}}, env={})


# --------------------------------------------------------------------------- the records


def test_records_are_frozen_and_go_through_a_pickle() -> None:
    loaded = config.load(ROSTER, env={})
    runtime, agent = loaded.runtime_limits(cpus=3), loaded.agent_limits("gpu")
    assert pickle.loads(pickle.dumps((runtime, agent))) == (runtime, agent)
    with pytest.raises(FrozenInstanceError):
        runtime.max_children = 6  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        agent.configured = False  # type: ignore[misc]


def test_a_process_that_unpickles_the_records_does_not_get_pydantic() -> None:
    loaded = config.load(ROSTER, env={})
    data = pickle.dumps(
        (loaded.runtime_limits(cpus=3), loaded.agent_limits("gpu"), loaded.agent_limits("main"))
    )
    code = f"import pickle, sys; pickle.loads({data!r}); print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_rev_is_that_of_the_effective_settings() -> None:
    plain = config.load(env={}).rev
    assert len(plain) == 12
    assert config.loads("{gateway: {}, ray: {recovery: 'resume'}} // x").rev == plain
    assert config.loads("{ray: {recovery: 'finalize'}}").rev != plain


def test_limits_of_an_older_journal_have_the_defaults_of_what_is_new() -> None:
    kept = AgentLimits("a", configured=True, resources={"num_cpus": 1.0})
    older = AgentLimits.__new__(AgentLimits)
    older.__setstate__(kept.__getstate__()[:-1])
    assert older == kept
    assert pickle.loads(pickle.dumps(kept)) == kept


def test_limits_of_an_older_journal_lack_the_newest_fields() -> None:
    made = config.load({"agents": {"defaults": {"model": "a/b"}}}, env={}).agent_limits("main")
    assert pickle.loads(pickle.dumps(made)) == made
    old = AgentLimits.__new__(AgentLimits)
    old.__setstate__([getattr(made, one.name) for one in fields(AgentLimits)][:-1])
    assert (old.agent_id, old.settings) == ("main", None)
