"""core.policy: finer edges of the rules of tools; the conformance cases have their outlines (SPEC.md A4, E)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from openclaw_ray import config
from openclaw_ray.core.errors import NoToolsLeft, ToolDenied
from openclaw_ray.core.policy import (
    Inherited,
    Layer,
    Origin,
    Sender,
    ToolView,
    effective_tools,
    handed_on,
    sender_lists,
    tool_name,
)
from openclaw_ray.core.policy.names import CORE_TOOLS, GROUPS, PROFILES, entry_for, folded, names_in
from openclaw_ray.core.policy.rules import Names, ToolLists

NAMES = ("exec", "my_tool", "read", "sessions_spawn", "sessions_yield", "web_fetch", "write")


def view_of(settings: dict[str, Any], agent: str = "main", **given: Any) -> ToolView:
    """The tools of a session under a configuration."""
    loaded = config.load(settings, env={})
    limits = loaded.runtime_limits(cpus=1)
    asked: dict[str, Any] = {
        "agent_id": agent,
        "depth": 0,
        "max_spawn_depth": limits.max_spawn_depth,
        "universe": NAMES,
        "session_key": f"agent:{agent}:main",
    }
    return effective_tools(limits.tools, loaded.agent_limits(agent).tools, **{**asked, **given})


def left(settings: dict[str, Any], agent: str = "main", **given: Any) -> set[str]:
    return set(view_of(settings, agent, **given).tools)


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("written", "name"), [(" Bash ", "exec"), ("CRON", "automations"), ("Web_Search", "web_search"), ("", "")]
)
def test_a_name_counts_without_letter_case_and_by_its_first_name(written: str, name: str) -> None:
    assert tool_name(written) == name


def test_a_list_counts_each_entry_once_and_no_blank_one() -> None:
    assert folded(["exec", " ", "BASH", "", "Group:FS", "exec"]) == ("exec", "group:fs")


def test_groups_and_profiles_name_what_there_is() -> None:
    assert all(members <= CORE_TOOLS for members in GROUPS.values())
    for entries in PROFILES.values():
        assert all(entry in GROUPS or entry in CORE_TOOLS for entry in entries)
    assert "exec" not in GROUPS["group:openclaw"]
    assert "sessions_spawn" in GROUPS["group:openclaw"]


@pytest.mark.parametrize(
    ("tool", "entry", "means"),
    [
        ("web_fetch", "web_*", True),
        ("web_fetch", "*_f**h", True),
        ("web_fetch", "web", False),
        ("web.fetch", "web_fetch", False),
        ("web_fetch", "group:nothing", False),
        ("read", "group:fs", True),
        ("my_tool", "group:plugins", True),
        ("read", "group:plugins", False),
        ("my_tool", "group:openclaw", False),
        ("a[b", "a[*", True),
    ],
)
def test_an_entry_means_a_name_a_pattern_or_a_group(tool: str, entry: str, means: bool) -> None:
    assert (entry_for(tool, [entry]) == entry) is means


def test_the_names_of_a_list_are_written_out_once() -> None:
    assert names_in(["group:web", "mine", "browse*"]) == {"web_search", "web_fetch", "x_search", "mine", "browser"}


# ---------------------------------------------------------------------- tools of one's own


@pytest.mark.parametrize(
    ("tools", "allowed"),
    [
        ({}, True),
        ({"profile": "coding"}, False),
        ({"profile": "coding", "alsoAllow": ["group:plugins"]}, True),
        ({"profile": "coding", "alsoAllow": ["MY_*"]}, True),
        ({"allow": ["read"]}, False),
        ({"deny": ["group:plugins"]}, False),
        ({"deny": ["group:openclaw"]}, True),
    ],
)
def test_a_tool_of_ones_own_goes_by_the_same_rules(tools: dict[str, Any], allowed: bool) -> None:
    assert view_of({"tools": tools}).allowed("my_tool") is allowed


# ---------------------------------------------------------------------- which rule decided


@pytest.mark.parametrize(
    ("settings", "tool", "decided"),
    [
        ({}, "read", (True, "none", "", "")),
        ({"tools": {"deny": ["group:fs"]}}, "read", (False, "global", "tools.deny", "group:fs")),
        ({"tools": {"allow": ["write"]}}, "read", (False, "global", "tools.allow", "")),
        ({"tools": {"allow": ["re*"]}}, "read", (True, "global", "tools.allow", "re*")),
        ({"tools": {"profile": "minimal"}}, "read", (False, "profile", "tools.profile", "")),
        (
            {"agents": {"list": [{"id": "main", "tools": {"deny": ["bash"]}}]}},
            "exec",
            (False, "agent", "agents.list[0].tools.deny", "exec"),
        ),
        (
            {"tools": {"allow": ["*"]}, "agents": {"entries": {"main": {"tools": {"profile": "coding"}}}}},
            "read",
            (True, "global", "tools.allow", "*"),
        ),
    ],
)
def test_a_decision_names_its_rule_its_path_and_its_entry(
    settings: dict[str, Any], tool: str, decided: tuple[bool, str, str, str]
) -> None:
    found = view_of(settings).decide(tool)
    assert (found.allowed, found.rule, found.path, found.entry) == decided


def test_a_denial_says_where_it_is_written_and_what_to_do() -> None:
    with pytest.raises(ToolDenied) as denied:
        view_of({"tools": {"deny": ["group:runtime"]}}).check("Exec")
    assert str(denied.value) == (
        "tool 'Exec' is denied to agent:main:main by the global rule (tools.deny names group:runtime); "
        "take it out there"
    )
    with pytest.raises(ToolDenied, match=r"\(tools\.allow does not name it\); name it there"):
        view_of({"tools": {"allow": ["read"]}}).check("exec")
    with pytest.raises(ToolDenied, match=r"maxSpawnDepth names sessions_spawn\); a session at that depth is a leaf"):
        view_of({}, depth=5).check("sessions_spawn")
    with pytest.raises(ToolDenied, match=r"\(built in: message\); leave it to the session that spawned this one"):
        view_of({}, depth=1).check("message")


def test_nothing_left_is_an_error_only_if_an_allow_list_says_so() -> None:
    view = view_of({"tools": {"allow": ["x"]}, "agents": {"entries": {"main": {"tools": {"allow": ["y"]}}}}})
    with pytest.raises(NoToolsLeft, match=r"tools\.allow, agents\.entries\.main\.tools\.allow \(tools: read, write\)"):
        view.listed(["read", "write"])
    assert view_of({"tools": {"deny": ["*"]}}).listed(["read"]) == []
    assert view_of({"tools": {"profile": "minimal"}}).listed(["read"]) == []
    assert view_of({"tools": {"allow": ["x"]}}).listed([]) == []


def test_a_view_decides_the_same_after_its_travels() -> None:
    view = view_of({"tools": {"profile": "coding", "deny": ["web_*"]}}, depth=1)
    again = pickle.loads(pickle.dumps(view))
    assert again == view
    assert again.decisions == view.decisions
    assert again.to_json()["tools"][0]["tool"] == "exec"
    assert "exec" in again
    assert "web_fetch" not in again
    assert "no_such_tool" not in again


# ---------------------------------------------------------------------- role


@pytest.mark.parametrize(
    ("depth", "role", "may"), [(4, None, True), (5, None, False), (5, "orchestrator", True), (1, "leaf", False)]
)
def test_the_layer_of_sub_agents_goes_by_the_cap_as_it_is_or_by_the_role_as_it_was(
    depth: int, role: str | None, may: bool
) -> None:
    """SPEC.md A6, 12: the second is what ``ray.compat`` 2026.7 does."""
    assert view_of({}, depth=depth, role=role).allowed("sessions_spawn") is may
    assert view_of({}, depth=depth, role=role).allowed("sessions_yield")


# ---------------------------------------------------------------------- sandbox


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ({"allow": []}, set(NAMES)),
        ({"allow": ["web_*"]}, {"web_fetch"}),
        ({"deny": []}, {"exec", "read", "sessions_spawn", "sessions_yield", "write"}),
        ({"deny": ["exec"]}, {"read", "sessions_spawn", "sessions_yield", "write"}),
        ({"alsoAllow": ["group:plugins"]}, {"exec", "my_tool", "read", "sessions_spawn", "sessions_yield", "write"}),
    ],
)
def test_the_sandbox_gate_takes_the_lists_in_place_of_its_own(tools: dict[str, Any], expected: set[str]) -> None:
    assert left({"tools": {"sandbox": {"tools": tools}}}, sandboxed=True) == expected
    assert left({"tools": {"sandbox": {"tools": tools}}}) == set(NAMES)


def test_an_agents_sandbox_lists_take_the_place_of_the_global_ones_one_by_one() -> None:
    own = {"sandbox": {"tools": {"allow": ["read", "exec"]}}}
    settings = {
        "tools": {"sandbox": {"tools": {"allow": ["write"], "deny": ["exec"]}}},
        "agents": {"entries": {"main": {"tools": own}}},
    }
    assert left(settings, sandboxed=True) == {"read"}


# ---------------------------------------------------------------------- senders and snapshots


def test_the_most_exact_key_of_a_sender_counts() -> None:
    keys = ("channel:c:1", "id:1", "e164:+1", "username:ann", "name:ann b", "*")
    by_sender = {key: {"deny": [f"tool_{at}"]} for at, key in enumerate(keys)}
    rules = config.load({"tools": {"toolsBySender": by_sender}}, env={}).runtime_limits(cpus=1).tools
    known = {"channel": "C", "id": "1", "e164": "+1", "username": "@Ann", "name": "Ann B"}
    found = []
    for gone in (None, "channel", "id", "e164", "username", "name"):
        if gone is not None:
            del known[gone]
        lists = sender_lists(rules, None, Sender(**known))
        assert lists is not None
        assert lists.deny is not None
        found.append(lists.deny.entries[0])
    assert found == [f"tool_{at}" for at in range(6)]


SENDER = Layer(Origin.SENDER, "agent:main:main", deny=("exec",))
SPAWN = Layer(Origin.SPAWN, "agent:main:main", deny=("write",))


def test_a_snapshot_holds_for_turns_without_a_sender_and_a_spawns_lists_for_all() -> None:
    """SPEC.md E6."""
    settings = {"tools": {"toolsBySender": {"*": {"deny": ["read"]}}}}
    snapshot = Inherited((SENDER, SPAWN))
    assert left(settings, inherited=snapshot) == set(NAMES) - {"exec", "write"}
    assert left(settings, inherited=snapshot, sender=Sender(id="9")) == set(NAMES) - {"read", "write"}


def test_a_snapshot_of_an_unknown_version_allows_nothing() -> None:
    view = view_of({}, inherited=Inherited((SPAWN,), version=2))
    assert view.tools == ()
    assert view.decide("read").path == "snapshot of version 2"


def test_a_child_is_handed_its_requesters_layers_then_its_own() -> None:
    sender = ToolLists(deny=Names(("exec",), "tools.toolsBySender.*.deny"))
    asked = ToolLists(allow=Names(("read", "write")), also_allow=Names(("my_tool",)))
    child = handed_on(None, "agent:main:main", sender, asked)
    assert child is not None
    assert [(layer.origin, layer.allow, layer.deny) for layer in child.layers] == [
        (Origin.SENDER, (), ("exec",)),
        (Origin.SPAWN, ("read", "write", "my_tool"), ()),
    ]
    assert handed_on(child, "agent:main:subagent:1", None, asked) == child  # said again, it is one layer
    below = handed_on(child, "agent:main:subagent:1", asked=ToolLists(allow=Names(("exec", "read"))))
    assert left({}, inherited=below) == {"read"}
    assert handed_on(None, "agent:main:main") is None
    assert handed_on(None, "agent:main:main", ToolLists(), ToolLists(allow=Names(()))) is None


# ---------------------------------------------------------------------- what the configuration gives


def test_a_configuration_without_rules_gives_none() -> None:
    loaded = config.load({"tools": {"sessions": {"visibility": "all"}}, "agents": {"entries": {"main": {}}}}, env={})
    assert loaded.runtime_limits(cpus=1).tools is None
    assert loaded.agent_limits("main").tools is None


def test_each_key_of_an_agent_may_be_of_another_roster() -> None:
    listed = {"id": "a", "tools": {"deny": ["read"], "allow": ["exec", "read"]}}
    settings = {"agents": {"entries": {"a": {"tools": {"deny": ["exec"]}}}, "list": [listed]}}
    view = view_of(settings, "a")
    assert view.decide("exec").path == "agents.entries.a.tools.deny"
    assert view.decide("write").path == "agents.list[0].tools.allow"
    assert view.tools == ("read",)


def test_rules_of_a_provider_are_for_its_models_alone() -> None:
    own = {"byProvider": {"P": {"profile": "minimal", "alsoAllow": ["read"]}}}
    settings = {
        "tools": {"byProvider": {"p/m": {"deny": ["exec"]}}},
        "agents": {"entries": {"main": {"tools": own}}},
    }
    assert left(settings) == set(NAMES)
    assert left(settings, provider="q", model="m") == set(NAMES)
    assert left(settings, provider="p", model="other") == {"read"}
    assert left(settings, provider="P", model="M") == {"read"}
    denied = view_of(settings, provider="p", model="m").decide("exec")
    assert denied.path == "agents.entries.main.tools.byProvider.P.profile"
