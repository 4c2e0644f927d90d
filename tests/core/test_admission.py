"""core.admission: SPEC.md C stage 1; the first rule that is broken decides, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openclaw_ray.core.admission import (
    Refusal,
    SpawnFacts,
    SpawnLimits,
    allowed_targets,
    check_spawn,
    check_target,
    listed,
    normalise_allow,
    target_agent,
)

CONFIGURED = frozenset({"main", "docs", "ops"})
FACTS = SpawnFacts(
    requester_key="agent:main:main",
    requester_agent="main",
    depth=0,
    active_children=0,
    operator=False,
    agent_id=None,
    stopping=False,
)
LIMITS = SpawnLimits(
    max_spawn_depth=5,
    max_children=5,
    require_agent_id=False,
    allow_agents=None,
    configured=CONFIGURED,
)


def refused(facts: SpawnFacts, limits: SpawnLimits = LIMITS) -> Refusal:
    refusal = check_spawn(facts, limits)
    assert refusal is not None
    return refusal


def test_a_spawn_that_breaks_no_rule_is_admitted() -> None:
    assert check_spawn(FACTS, LIMITS) is None
    assert (
        check_spawn(replace(FACTS, agent_id=" Main ", depth=4, active_children=4, task_bytes=3), LIMITS)
        is None
    )


@pytest.mark.parametrize(
    ("facts", "limits", "way_out"),
    [
        (replace(FACTS, depth=5), LIMITS, "raise it there"),
        (replace(FACTS, active_children=5), LIMITS, "join children first"),
        (FACTS, replace(LIMITS, require_agent_id=True), "name one of main, or unset"),
        (replace(FACTS, agent_id="docs"), LIMITS, 'add it there, or "*" for all'),
        (replace(FACTS, agent_id="nobody"), replace(LIMITS, allow_agents=("*",)), "or add it to agents.entries"),
    ],
)
def test_a_refusal_by_a_rule_names_the_way_out(facts: SpawnFacts, limits: SpawnLimits, way_out: str) -> None:
    assert way_out in refused(facts, limits).error


def test_the_children_cap_is_told_in_words_and_in_parts() -> None:
    assert refused(replace(FACTS, active_children=5)) == Refusal(
        "forbidden",
        "maxChildrenPerAgent reached: 5 of 5 active under agent:main:main "
        "(agents.defaults.subagents.maxChildrenPerAgent; join children first, or raise it there)",
        "maxChildrenPerAgent",
        5,
        5,
        "agents.defaults.subagents.maxChildrenPerAgent",
    )


def test_the_depth_cap_names_depth_and_cap() -> None:
    refusal = refused(replace(FACTS, requester_key="agent:main:subagent:u", depth=5))
    assert (refusal.status, refusal.limit, refusal.value, refusal.maximum) == (
        "forbidden",
        "maxSpawnDepth",
        5,
        5,
    )
    assert "depth 5 of 5" in refusal.error
    assert "agents.defaults.subagents.maxSpawnDepth" in refusal.error


def test_a_spawn_is_refused_when_an_ancestor_is_stopping() -> None:
    refusal = refused(replace(FACTS, stopping=True))
    assert (refusal.status, refusal.limit) == ("forbidden", "stop")
    assert "is being stopped" in refusal.error


@pytest.mark.parametrize("agent_id", ["", " ", "../etc", "Agent not found: xyz", "a" * 65])
def test_a_bad_agent_id_is_an_error_before_any_policy(agent_id: str) -> None:
    refusal = refused(replace(FACTS, agent_id=agent_id, depth=9, active_children=9, stopping=True))
    assert (refusal.status, refusal.limit) == ("error", "agentId")
    assert len(refusal.error) < 200


def test_an_empty_or_huge_task_is_an_error() -> None:
    assert refused(replace(FACTS, task_bytes=0)).error == "task is empty"
    huge = refused(replace(FACTS, task_bytes=2**20 + 1))
    assert (huge.status, huge.value, huge.maximum) == ("error", 2**20 + 1, 2**20)
    assert "input" in huge.error


def test_the_rules_decide_in_their_order() -> None:
    limits = replace(LIMITS, require_agent_id=True, configured=frozenset())
    facts = replace(FACTS, task_bytes=0, agent_id="!", depth=9, active_children=9, stopping=True)
    mended: list[tuple[str, dict[str, object]]] = [
        ("task", {"task_bytes": 1}),
        ("agentId", {"agent_id": None}),
        ("maxSpawnDepth", {"depth": 0}),
        ("maxChildrenPerAgent", {"active_children": 0}),
        ("requireAgentId", {"agent_id": "docs"}),
        ("allowAgents", {"agent_id": "main"}),
        ("agentId", {}),
    ]
    for limit, mending in mended:
        assert refused(facts, limits).limit == limit
        facts = replace(facts, **mending)  # type: ignore[arg-type]
    assert refused(facts, replace(limits, configured=CONFIGURED)).limit == "stop"


def test_require_agent_id_names_whom_one_may_name() -> None:
    limits = replace(LIMITS, require_agent_id=True, allow_agents=("docs", "main"), require_path="here")
    refusal = refused(FACTS, limits)
    assert (refusal.status, refusal.path) == ("forbidden", "here")
    assert "main, docs" in refusal.error


def test_a_target_off_the_list_is_refused_with_the_list_and_its_place() -> None:
    limits = replace(LIMITS, allow_agents=("docs",), allow_path="agents.entries.main.subagents.allowAgents")
    refusal = refused(replace(FACTS, agent_id="ops"), limits)
    assert (refusal.status, refusal.limit, refusal.path) == ("forbidden", "allowAgents", limits.allow_path)
    assert "allowed: docs" in refusal.error


def test_an_empty_choice_is_told_as_none() -> None:
    assert "allowed: none" in refused(replace(FACTS, agent_id="ops"), replace(LIMITS, allow_agents=())).error


@pytest.mark.parametrize("allow", [("ghost",), ("*",)])
@pytest.mark.parametrize("operator", [True, False])
def test_an_unknown_agent_is_refused_even_if_listed(allow: tuple[str, ...], operator: bool) -> None:
    facts = replace(FACTS, agent_id="ghost", operator=operator)
    assert refused(facts, replace(LIMITS, allow_agents=allow)).status == "forbidden"


def test_a_requester_that_was_deleted_spawns_nothing_by_default() -> None:
    assert refused(replace(FACTS, requester_agent="gone")).limit == "agentId"


def test_an_operator_is_not_bound_by_children_allowlist_and_require_agent_id() -> None:
    limits = replace(LIMITS, require_agent_id=True, allow_agents=())
    facts = replace(FACTS, operator=True, active_children=10_000)
    assert check_spawn(facts, limits) is None
    assert check_spawn(replace(facts, agent_id="ops"), limits) is None


@pytest.mark.parametrize("changes", [{"depth": 5}, {"stopping": True}, {"agent_id": "!"}, {"task_bytes": 0}])
def test_an_operator_is_bound_by_everything_else(changes: dict[str, object]) -> None:
    assert check_spawn(replace(FACTS, operator=True, **changes), LIMITS) is not None  # type: ignore[arg-type]


def test_leaving_the_target_out_is_allowed_whatever_the_list() -> None:
    for allow in (None, (), ("docs",)):
        assert check_spawn(FACTS, replace(LIMITS, allow_agents=allow)) is None


def test_naming_oneself_needs_to_be_on_an_explicit_list() -> None:
    facts = replace(FACTS, agent_id="main")
    assert check_spawn(facts, LIMITS) is None
    assert check_spawn(facts, replace(LIMITS, allow_agents=("docs",))) is not None


def test_the_target_rules_alone_look_at_no_limit() -> None:
    full = replace(FACTS, depth=9, active_children=9, stopping=True)
    assert check_target(full, LIMITS) is None
    refusal = check_target(replace(full, agent_id="ops"), LIMITS)
    assert refusal is not None
    assert refusal.limit == "allowAgents"


def test_the_target_is_the_named_agent_else_the_requesters() -> None:
    assert target_agent(FACTS) == "main"
    assert target_agent(replace(FACTS, agent_id="Docs")) == "docs"


@pytest.mark.parametrize(
    ("allow", "targets"),
    [
        (None, ("main",)),
        ((), ()),
        (("*",), ("main", "docs", "ops")),
        (("ops", "main", "docs"), ("main", "docs", "ops")),
        (("ghost", "ops"), ("ops",)),
        (("*", "ghost"), ("main", "docs", "ops")),
    ],
)
def test_listing_and_admission_agree(allow: tuple[str, ...] | None, targets: tuple[str, ...]) -> None:
    assert listed("main", allow, CONFIGURED) == targets
    assert allowed_targets("main", allow, CONFIGURED) == frozenset(targets)
    for agent in CONFIGURED:
        admitted = check_spawn(replace(FACTS, agent_id=agent), replace(LIMITS, allow_agents=allow)) is None
        assert admitted == (agent in targets)


def test_a_list_is_trimmed_and_a_list_of_blanks_stays_a_list() -> None:
    assert normalise_allow([" Docs ", "", "docs", "*"]) == ("docs", "*")
    assert normalise_allow(["  "]) == ()
