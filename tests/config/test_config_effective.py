"""Values in force and where they come from: precedence as SPEC.md A has it."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray import config
from openclaw_ray.config import Bindings, ConfigError

ATTACHMENTS = "tools.sessions_spawn.attachments"


def in_force(settings: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    return {one.name: (one.value, one.origin) for one in config.load(settings, env={}).settings()}


def test_what_is_not_written_is_a_default() -> None:
    found = in_force({})
    assert found["agents.defaults.subagents.maxSpawnDepth"] == (5, "default")
    assert found["tools.sessions.visibility"] == ("tree", "default")
    assert {origin for _, origin in found.values()} == {"default"}


def test_the_bundle_of_2026_7_shows_in_the_depth() -> None:
    found = in_force({"ray": {"compat": "2026.7"}})
    assert found["agents.defaults.subagents.maxSpawnDepth"] == (1, "default")
    assert found["agent:main.subagents.maxSpawnDepth"] == (1, "default")


def test_each_agent_to_agent_setting_comes_from_tools_else_from_session() -> None:
    settings = {
        "tools": {"agentToAgent": {"enabled": False}},
        "session": {"agentToAgent": {"enabled": True, "allow": ["a"], "maxPingPongTurns": 0}},
    }
    found = in_force(settings)
    assert found["a2a.enabled"] == (False, "tools.agentToAgent.enabled")
    assert found["a2a.allow"] == (["a"], "session.agentToAgent.allow")
    assert found["a2a.maxPingPongTurns"] == (0, "session.agentToAgent.maxPingPongTurns")
    joined = config.load(settings, env={}).a2a
    assert (joined.enabled, joined.allow, joined.max_ping_pong_turns) == (False, ("a",), 0)


def test_thread_bindings_fall_back_from_account_to_channel_to_session() -> None:
    loaded = config.load(
        {
            "session": {"threadBindings": {"idleHours": 5, "enabled": False, "spawnSubagentSessions": False}},
            "channels": {
                "discord": {
                    "threadBindings": {"maxAgeHours": 2, "enabled": True},
                    "accounts": {"work": {"threadBindings": {"idleHours": 0, "spawnSessions": True}}},
                }
            },
        },
        env={},
    )
    assert loaded.thread_bindings() == Bindings(enabled=False, idle_hours=5, spawn_sessions=False)
    assert loaded.thread_bindings("telegram") == loaded.thread_bindings()
    assert loaded.thread_bindings("discord") == Bindings(idle_hours=5, max_age_hours=2, spawn_sessions=False)
    assert loaded.thread_bindings("discord", "work") == Bindings(idle_hours=0, max_age_hours=2)
    found = {one.name: (one.value, one.origin) for one in loaded.settings()}
    assert found["channel:discord.threadBindings.idleHours"] == (5, "session.threadBindings.idleHours")
    assert found["channel:discord.threadBindings.enabled"] == (True, "channels.discord.threadBindings.enabled")
    assert found["channel:discord:work.threadBindings.spawnSessions"] == (
        True,
        "channels.discord.accounts.work.threadBindings.spawnSessions",
    )
    assert found["channel:discord.threadBindings.defaultSpawnContext"] == ("fork", "default")


def test_the_newer_name_of_spawn_sessions_wins() -> None:
    settings = {"session": {"threadBindings": {"spawnSessions": False, "spawnSubagentSessions": True}}}
    assert config.load(settings, env={}).thread_bindings().spawn_sessions is False


def test_an_agents_own_value_wins_over_the_defaults() -> None:
    found = in_force(
        {
            "agents": {
                "defaults": {"model": "x/y", "thinkingDefault": "low", "sandbox": {"mode": "all"}},
                "list": [{"id": "a", "model": "l/l", "thinkingDefault": "max"}],
                "entries": {"A": {"model": {"primary": "e/e"}}, "b": {}},
            },
            "tools": {"deny": ["x"]},
        }
    )
    assert found["agent:a.model"] == ({"primary": "e/e"}, "agents.entries.A.model")
    assert found["agent:a.thinkingDefault"] == ("max", "agents.list[0].thinkingDefault")
    assert found["agent:b.thinkingDefault"] == ("low", "agents.defaults.thinkingDefault")
    assert found["agent:b.sandbox.mode"] == ("all", "agents.defaults.sandbox.mode")
    assert found["agent:b.tools.deny"] == (None, "default")


def test_objects_by_id_are_shown_part_by_part() -> None:
    found = in_force(
        {
            "auth": {"profiles": {"a:b": {"provider": "a", "mode": "token"}}, "order": {"a": ["a:b"]}},
            "tools": {"byProvider": {"p/m": {"profile": "minimal", "deny": ["x"]}}},
            "agents": {"entries": {"z": {"tools": {"toolsBySender": {"*": {"deny": ["y"]}}}}}},
        }
    )
    assert found["auth.profiles.a:b.mode"] == ("token", "auth.profiles.a:b.mode")
    assert found["auth.order.a"] == (["a:b"], "auth.order.a")
    assert found["tools.byProvider.p/m.profile"] == ("minimal", "tools.byProvider.p/m.profile")
    assert found["agent:z.tools.toolsBySender.*.deny"] == (
        ["y"],
        "agents.entries.z.tools.toolsBySender.*.deny",
    )


def test_an_agent_that_is_not_named_has_the_defaults() -> None:
    loaded = config.load({"agents": {"defaults": {"workspace": "~/w"}}}, env={})
    found = {one.name: one.value for one in loaded.settings(agent="Other")}
    assert found["agent:other.workspace"] == "~/w"
    with pytest.raises(ValueError, match="not an agent id"):
        list(loaded.settings(agent="../x"))


def test_the_rev_changes_with_any_value_in_force_and_with_nothing_else() -> None:
    plain = config.load({}, env={}).rev
    assert config.load({"session": {"mainKey": "home"}, "gateway": {"port": 1}}, env={}).rev == plain
    assert config.load({"tools": {"sessions": {"visibility": "tree"}}}, env={}).rev == plain
    assert config.load({"tools": {"sessions": {"visibility": "all"}}}, env={}).rev != plain


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"tools": {"byProvider": {"p": {"allow": ["a"], "alsoAllow": ["b"]}}}}, "tools.byProvider.p"),
        ({"tools": {"subagents": {"tools": {"allow": ["a"], "alsoAllow": ["b"]}}}}, "tools.subagents.tools"),
        (
            {"agents": {"list": [{"id": "a", "tools": {"allow": ["a"], "alsoAllow": ["b"]}}]}},
            "agents.list[0].tools",
        ),
        (
            {"agents": {"entries": {"a": {"tools": {"toolsBySender": {"*": {"allow": ["a"], "alsoAllow": ["b"]}}}}}}},
            "agents.entries.a.tools.toolsBySender.*",
        ),
        ({"auth": {"profiles": {"p": {"mode": "token"}}}}, "auth.profiles.p.provider"),
        ({"auth": {"order": {"p": "x"}}}, "auth.order.p"),
        ({"messages": {"queue": {"byChannel": {"discord": "fifo"}}}}, "messages.queue.byChannel.discord"),
        ({"messages": {"queue": {"debounceMsByChannel": {"x": -1}}}}, "messages.queue.debounceMsByChannel.x"),
        ({"session": {"maintenance": {"pruneAfter": "soon"}}}, "session.maintenance.pruneAfter"),
        ({"session": {"identityLinks": {"a": "b"}}}, "session.identityLinks.a"),
        ({"channels": {"x": {"threadBindings": {"idleHours": -1}}}}, "channels.x.threadBindings.idleHours"),
        ({"agents": {"defaults": {"thinkingDefault": "hard"}}}, "agents.defaults.thinkingDefault"),
        ({"tools": {"sessions_spawn": {"attachments": {"maxFiles": 1.5}}}}, f"{ATTACHMENTS}.maxFiles"),
        ({"session": {"agentToAgent": {"maxPingPongTurns": 6}}}, "session.agentToAgent.maxPingPongTurns"),
    ],
)
def test_every_section_is_checked(settings: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(settings, env={})
    assert [fault.path for fault in caught.value.faults] == [path]


@pytest.mark.parametrize("value", ["30d", "12h", "1h30m", 0, 7.5])
def test_times_are_taken_as_openclaw_writes_them(value: object) -> None:
    assert in_force({"session": {"maintenance": {"pruneAfter": value}}})["session.maintenance.pruneAfter"][0] == value


def test_ten_faults_are_ten_lines_each_with_its_path_and_a_way_out() -> None:
    children: dict[str, Any] = {"maxSpawnDepth": 9, "maxSpawnDept": 1, "maxChildrenPerAgent": "5"}
    with pytest.raises(ConfigError) as caught:
        config.load(
            {
                "agents": {
                    "defaults": {"subagents": children},
                    "entries": {"bad id!": {}, "main": {"default": 1}, "x": {"subagents": {"maxConcurrent": 1}}},
                },
                "gateway": {"prot": 1},
                "ray": {"recovery": "x", "zzz": 1},
                "session": {"dmScope": "${NOT_SET}"},
            },
            env={},
        )
    found = caught.value.faults
    assert len(found) == 10
    for fault in found:
        assert str(fault).startswith(fault.path)
        assert fault.near or fault.remedy, fault
