"""The rule of sight and use between sessions, beside the conformance cases (SPEC.md A3, B2; SCENARIOS 41, 42)."""

from __future__ import annotations

import pickle

import pytest

from openclaw_ray import config
from openclaw_ray.core.visibility import (
    DenialReason,
    SessionRules,
    ToolsVisibility,
    Viewer,
    Visibility,
    check_access,
    pair_allowed,
)

MAIN = Viewer("agent:main:main")
ALL = SessionRules(visibility=Visibility.ALL)


def reason(
    rules: SessionRules, target: str, viewer: Viewer = MAIN, *, spawned: bool = False
) -> tuple[DenialReason, str] | None:
    denial = check_access(rules, viewer, target, spawned=spawned)
    return None if denial is None else (denial.reason, denial.path)


@pytest.mark.parametrize(
    ("allow", "admitted"),
    [
        (None, True),
        ((), True),
        (("  ",), False),
        (("*",), True),
        (("main",), False),
        (("main", "work"), True),
        (("main", " WORK "), False),
        (("main", "WORK*"), True),
    ],
)
def test_each_form_of_the_agent_to_agent_list(allow: tuple[str, ...] | None, admitted: bool) -> None:
    assert pair_allowed(allow, ("main", "work")) is admitted
    rules = SessionRules(visibility=Visibility.ALL, a2a_allow=allow)
    expected = None if admitted else (DenialReason.A2A_PAIR, "tools.agentToAgent.allow")
    assert reason(rules, "agent:work:main") == expected


def test_a_denial_names_the_rule_and_where_it_is_set() -> None:
    assert reason(SessionRules(), "agent:work:main") == (DenialReason.VISIBILITY, "tools.sessions.visibility")
    off = SessionRules(visibility=Visibility.ALL, a2a_enabled=False, enabled_path="session.agentToAgent.enabled")
    assert reason(off, "agent:work:main") == (DenialReason.A2A_DISABLED, "session.agentToAgent.enabled")
    path = "agents.defaults.sandbox.sessionToolsVisibility"
    assert reason(ALL, "agent:main:other", Viewer("agent:main:main", True)) == (DenialReason.SANDBOX, path)
    assert reason(ALL, "agent::broken") == (DenialReason.MALFORMED, "")
    assert reason(ALL, "agent:main:subagent:incognito-1", spawned=True) == (DenialReason.INCOGNITO, "")
    denial = check_access(SessionRules(), MAIN, "agent:work:main", spawned=False)
    assert denial is not None
    assert pickle.loads(pickle.dumps(denial)) == denial
    assert "tools.sessions.visibility is tree" in denial.error


def test_a_sandboxed_viewer_is_held_to_its_own_subtree_unless_the_sandbox_says_all() -> None:
    boxed = Viewer("agent:main:main", True)
    assert reason(ALL, "agent:work:subagent:c", boxed, spawned=True) is None
    free = SessionRules(visibility=Visibility.ALL, sandbox_sees=ToolsVisibility.ALL)
    assert reason(free, "agent:work:main", boxed) is None
    shut = SessionRules(visibility=Visibility.SELF)
    assert reason(shut, "agent:main:subagent:c", boxed, spawned=True) == (
        DenialReason.VISIBILITY,
        "tools.sessions.visibility",
    )


def test_the_own_session_is_in_sight_in_any_spelling() -> None:
    assert reason(SessionRules(visibility=Visibility.SELF), " Agent:Main:MAIN ") is None


def test_the_rules_come_from_the_configuration_with_the_paths_of_what_is_set() -> None:
    old = {"session": {"agentToAgent": {"enabled": False, "allow": ["a"], "maxPingPongTurns": 2}}}
    new = {"tools": {"agentToAgent": {"allow": []}, "sessions": {"visibility": "all"}}}
    rules = config.load({**old, **new}, env={}).runtime_limits(cpus=1).sessions
    assert (rules.visibility, rules.a2a_enabled, rules.a2a_allow) == (Visibility.ALL, False, ())
    assert (rules.enabled_path, rules.allow_path) == ("session.agentToAgent.enabled", "tools.agentToAgent.allow")
    assert (rules.max_ping_pong_turns, rules.turns_path) == (2, "session.agentToAgent.maxPingPongTurns")
    assert config.load({}, env={}).runtime_limits(cpus=1).sessions == SessionRules()


def test_more_than_five_turns_are_refused_at_load() -> None:
    with pytest.raises(config.ConfigError, match="maxPingPongTurns"):
        config.load({"session": {"agentToAgent": {"maxPingPongTurns": 6}}}, env={})


@pytest.mark.parametrize(
    ("allow", "told"),
    [([], "an empty list admits every agent"), ([" "], "blank names alone admit nobody"), (["a"], None), (None, None)],
)
def test_a_list_that_means_more_or_less_than_it_looks_is_told(allow: list[str] | None, told: str | None) -> None:
    loaded = config.load({"session": {"agentToAgent": {} if allow is None else {"allow": allow}}}, env={})
    found = [notice for notice in loaded.notices if notice.kind is config.NoticeKind.LIST]
    assert [(notice.path, told in notice.text) for notice in found if told] == (
        [("session.agentToAgent.allow", True)] if told else []
    )
    assert len(found) == (told is not None)
