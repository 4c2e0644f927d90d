"""core.spawn_rules: what the parameters of sessions_spawn mean together (SPEC.md C, stages 0 and 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.model_choice import THINKING_LEVELS
from openclaw_ray.core.spawn_params import SWARM, VISIBLE_ONLY, parse_spawn
from openclaw_ray.core.spawn_rules import (
    SpawnPlan,
    SpawnScene,
    check_child,
    decide,
    not_in_effect,
    planned,
)
from openclaw_ray.core.thread_rules import Bindings

HERE = SpawnScene("main")
CHANNEL = replace(HERE, bindings=Bindings())


def plan_of(scene: SpawnScene = HERE, **given: Any) -> SpawnPlan:
    plan = decide(parse_spawn({"task": "x", **given}), scene)
    assert isinstance(plan, SpawnPlan), plan
    return plan


def refusal_of(scene: SpawnScene = HERE, **given: Any) -> Refusal:
    refusal = decide(parse_spawn({"task": "x", **given}), scene)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def test_what_follows_from_a_task_alone() -> None:
    plan = plan_of()
    assert (plan.agent_id, plan.mode, plan.cleanup, plan.context) == (None, "run", "keep", "isolated")
    assert planned(plan.params, HERE) == plan


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["a", "a-b_c9", "lastly", "all-of-it", "a" + "b" * 63])
def test_task_names_that_are_taken(name: str) -> None:
    assert plan_of(taskName=name).params.task_name == name


@pytest.mark.parametrize("name", ["A", "9a", "-a", "_a", "a b", "ä", "a.b", "a\nb", "a" * 65, "last", "all"])
def test_task_names_that_are_not(name: str) -> None:
    refusal = refusal_of(taskName=name)
    assert (refusal.status, refusal.limit) == ("error", "taskName")


def test_a_reserved_name_is_called_so() -> None:
    assert "reserved" in refusal_of(taskName="last").error


def test_a_label_has_at_most_512_characters() -> None:
    assert plan_of(label="é" * 512).params.label == "é" * 512
    refusal = refusal_of(label="x" * 513)
    assert (refusal.status, refusal.limit, refusal.value, refusal.maximum) == ("error", "label", 513, 512)


def test_an_agent_id_that_is_none_is_an_error_and_quoted_short() -> None:
    refusal = refusal_of(agentId="No " * 1000)
    assert (refusal.status, refusal.limit) == ("error", "agentId")
    assert len(refusal.error) < 200


def test_a_task_of_more_than_a_megabyte_is_refused() -> None:
    assert plan_of(task="e" * (1 << 20))
    refusal = refusal_of(task="é" * (1 << 20))
    assert (refusal.status, refusal.limit, refusal.value, refusal.maximum) == ("error", "task", 2 << 20, 1 << 20)
    assert refusal_of(task="\udcff").limit == "task"


def test_the_first_broken_rule_decides() -> None:
    assert refusal_of(taskName="all", agentId="no!", mode="session").limit == "taskName"
    assert refusal_of(agentId="no!", mode="session").limit == "agentId"
    assert refusal_of(mode="session", visible=True, thinking="low").limit == "mode"


# ---------------------------------------------------------------------- combinations


def test_a_session_needs_a_thread_and_a_thread_a_channel() -> None:
    assert "thread: true" in refusal_of(CHANNEL, mode="session").error
    assert refusal_of(thread=True).limit == "thread"
    assert refusal_of(thread=True, mode="session").limit == "thread"
    plan = plan_of(CHANNEL, thread=True, cleanup="delete")
    assert (plan.mode, plan.cleanup, plan.context) == ("session", "keep", "fork")


def test_a_thread_may_be_had_for_one_run() -> None:
    plan = plan_of(CHANNEL, thread=True, mode="run", cleanup="delete")
    assert (plan.mode, plan.cleanup) == ("run", "delete")


def test_a_thread_begins_with_what_is_configured_unless_the_call_says() -> None:
    isolated = replace(CHANNEL, bindings=Bindings(default_spawn_context="isolated"))
    assert plan_of(isolated, thread=True).context == "isolated"
    assert plan_of(isolated, thread=True, context="fork").context == "fork"
    assert plan_of(CHANNEL, thread=True, context="isolated").context == "isolated"


def test_a_bound_child_that_cannot_begin_with_a_branch_begins_without_unless_it_was_asked_for() -> None:
    bare = replace(CHANNEL, transcript=False)
    for scene, given in ((bare, {}), (CHANNEL, {"agentId": "docs"})):
        assert plan_of(scene, thread=True, **given).context == "isolated"
        assert refusal_of(scene, thread=True, context="fork", **given).limit == "context"


@pytest.mark.parametrize(
    ("bindings", "path"),
    [
        (Bindings(enabled=False, spawn_sessions=False), "session.threadBindings.enabled"),
        (Bindings(spawn_sessions=False), "session.threadBindings.spawnSessions"),
    ],
)
def test_a_thread_needs_bindings_that_are_enabled_for_spawns(bindings: Bindings, path: str) -> None:
    refusal = refusal_of(replace(CHANNEL, bindings=bindings), thread=True)
    assert (refusal.status, refusal.limit, refusal.path) == ("error", "thread", path)
    assert path in refusal.error


def test_a_channel_that_cannot_bind_is_named() -> None:
    assert "'sms' cannot" in refusal_of(replace(HERE, channel="sms"), thread=True).error
    assert "has none" in refusal_of(thread=True).error


def test_a_fork_is_for_ones_own_agent_with_a_transcript() -> None:
    assert plan_of(context="fork").context == "fork"
    assert plan_of(context="fork", agentId="MAIN").context == "fork"
    assert "docs" in refusal_of(context="fork", agentId="docs").error
    assert "transcript" in refusal_of(replace(HERE, transcript=False), context="fork").error


@pytest.mark.parametrize("more", [{"thread": True}, {"visible": True}, {"expectsCompletionMessage": False}])
def test_an_end_told_to_the_parent_alone_is_of_a_hidden_run_whose_end_is_told(more: dict[str, Any]) -> None:
    assert plan_of(completionTarget="parent").params.completion_target == "parent"
    assert refusal_of(CHANNEL, completionTarget="parent", **more).limit == "completionTarget"


@pytest.mark.parametrize(
    "more",
    [
        {"thread": True},
        {"thinking": "low"},
        {"lightContext": True},
        {"attachments": [{"name": "a", "content": "b"}]},
        {"attachAs": {"mountPath": "in"}},
    ],
)
def test_a_visible_session_takes_none_of_these(more: dict[str, Any]) -> None:
    refusal = refusal_of(CHANNEL, visible=True, **more)
    assert (refusal.status, refusal.limit) == ("error", "visible")
    assert next(iter(more)) in refusal.error


def test_a_visible_session_is_kept() -> None:
    plan = plan_of(visible=True, cleanup="delete", mode="run", attachments=[], attachAs={})
    assert plan.cleanup == "keep"


@pytest.mark.parametrize("name", VISIBLE_ONLY)
def test_what_is_said_of_a_visible_session_needs_one(name: str) -> None:
    assert f"{name} needs visible" in refusal_of(**{name: "x"}).error
    assert plan_of(visible=True, **{name: "x"}).params.others == (name,)


@pytest.mark.parametrize("name", SWARM)
def test_there_are_no_collector_runs(name: str) -> None:
    assert refusal_of(**{name: True}).limit == name


def test_there_is_no_backend_for_external_harnesses() -> None:
    assert refusal_of(runtime="acp").limit == "runtime"
    assert plan_of(runtime="subagent").mode == "run"


# ---------------------------------------------------------------------- whether a child may be so


def test_a_sandboxed_session_spawns_sandboxed_children_only() -> None:
    inside = replace(HERE, sandboxed=True)
    refusal = check_child(plan_of(inside), inside)
    assert refusal is not None
    assert (refusal.status, refusal.limit) == ("forbidden", "sandbox")
    both = replace(inside, child_sandboxed=True)
    assert check_child(plan_of(both), both) is None


def test_a_required_sandbox_must_be_there() -> None:
    refusal = check_child(plan_of(sandbox="require"), HERE)
    assert refusal is not None
    assert (refusal.status, refusal.path) == ("forbidden", "agents.defaults.sandbox.mode")
    boxed = replace(HERE, child_sandboxed=True)
    assert check_child(plan_of(boxed, sandbox="require"), boxed) is None
    assert check_child(plan_of(sandbox="inherit"), HERE) is None


def test_a_sandboxed_child_works_in_its_own_workspace() -> None:
    boxed = replace(HERE, child_sandboxed=True, child_workspace="/ws")
    refusal = check_child(plan_of(boxed, cwd="/elsewhere"), boxed)
    assert refusal is not None
    assert (refusal.status, refusal.limit) == ("forbidden", "cwd")
    assert check_child(plan_of(boxed, cwd="/ws"), boxed) is None
    assert check_child(plan_of(cwd="/elsewhere"), HERE) is None


def test_inherited_tool_lists_forbid_a_visible_session() -> None:
    under = replace(HERE, inherited_policy=True)
    refusal = check_child(plan_of(under, visible=True), under)
    assert refusal is not None
    assert refusal.status == "forbidden"
    assert check_child(plan_of(under), under) is None


def test_a_thinking_level_is_one_of_the_levels() -> None:
    for level in THINKING_LEVELS:
        assert check_child(plan_of(thinking=level.upper()), HERE) is None
    refusal = check_child(plan_of(thinking="hard"), HERE)
    assert refusal is not None
    assert (refusal.status, refusal.limit) == ("error", "thinking")
    assert "xhigh" in refusal.error


# ---------------------------------------------------------------------- what is not in effect yet


def test_what_is_not_done_yet_is_refused_and_never_left_out() -> None:
    refusal = planned(parse_spawn({"task": "x", "visible": True}), CHANNEL)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.limit) == ("error", "visible")
    assert "visible: not yet in effect (" in refusal.error


@pytest.mark.parametrize(
    "given",
    [
        {"thread": False, "visible": False, "lightContext": False, "attachments": [], "attachAs": {}},
        {"mode": "run", "cleanup": "keep", "context": "isolated", "sandbox": "inherit", "runtime": "subagent"},
        {"runTimeoutSeconds": 5, "expectsCompletionMessage": False},
        {"completionTarget": "parent", "taskName": "a", "label": "b", "agentId": "docs"},
    ],
)
def test_what_says_no_more_than_what_is_done_is_taken(given: dict[str, Any]) -> None:
    assert not_in_effect(plan_of(**given)) is None
    assert isinstance(planned(parse_spawn({"task": "x", **given}), HERE), SpawnPlan)


def test_a_folder_is_named_from_the_root() -> None:
    for path in ("/w", "/"):
        assert isinstance(planned(parse_spawn({"task": "x", "cwd": path}), HERE), SpawnPlan)
    for path in ("w", "./w", "~/w", "../w", "/w\0"):
        refusal = planned(parse_spawn({"task": "x", "cwd": path}), HERE)
        assert isinstance(refusal, Refusal)
        assert (refusal.status, refusal.limit) == ("error", "cwd")


def test_what_a_child_is_to_be_is_left_to_the_registry() -> None:
    given = {"model": "a/b", "thinking": "low", "context": "fork", "lightContext": True, "sandbox": "require"}
    assert isinstance(planned(parse_spawn({"task": "x", **given}), HERE), SpawnPlan)
