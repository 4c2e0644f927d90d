"""core.spawn_params: the form of a call of sessions_spawn (SPEC.md B1)."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.spawn_params import (
    PARAMETERS,
    REFUSED,
    SpawnCleanup,
    SpawnContext,
    SpawnMode,
    SpawnParams,
    parse_spawn,
    program_names,
)


def test_a_task_is_all_that_is_needed() -> None:
    assert parse_spawn({"task": " look\n"}) == SpawnParams(" look\n")


def test_every_parameter_is_read() -> None:
    params = parse_spawn(
        {
            "task": "x",
            "taskName": " part ",
            "label": " L ",
            "agent": "docs",
            "runtime": "acp",
            "model": "m",
            "thinking": "low",
            "runTimeoutSeconds": 0,
            "cwd": "/w",
            "thread": True,
            "mode": "session",
            "cleanup": "delete",
            "expectsCompletionMessage": False,
            "completionTarget": "parent",
            "sandbox": "require",
            "context": "fork",
            "lightContext": True,
            "attachments": [{"name": "a", "content": "b"}, {"name": "c", "content": "", "encoding": "base64"}],
            "attachAs": {"mountPath": "in"},
            "visible": True,
            "worktree": True,
            "collect": True,
        }
    )
    assert params == SpawnParams(
        task="x",
        task_name="part",
        label="L",
        agent_id="docs",
        acp=True,
        model="m",
        thinking="low",
        run_timeout_seconds=0,
        cwd="/w",
        thread=True,
        mode=SpawnMode.SESSION,
        cleanup=SpawnCleanup.DELETE,
        context=SpawnContext.FORK,
        sandbox_required=True,
        expects_completion=False,
        completion_target="parent",
        light_context=True,
        attachments=(("a", "b", "utf8"), ("c", "", "base64")),
        attach_as="in",
        visible=True,
        others=("worktree", "collect"),
    )


@pytest.mark.parametrize("name", ["taskName", "label", "agentId", "model", "thinking", "cwd"])
def test_a_blank_text_is_as_good_as_absent(name: str) -> None:
    assert parse_spawn({"task": "x", name: "  "}) == SpawnParams("x")


@pytest.mark.parametrize("given", [{}, {"task": None}, {"task": ""}, {"task": " \n"}, {"task": 7}])
def test_without_a_task_it_is_no_call(given: dict[str, Any]) -> None:
    with pytest.raises(ToolInputError, match="sessions_spawn: task"):
        parse_spawn(given)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_where_results_go_is_not_the_childs_affair(name: str) -> None:
    with pytest.raises(ToolInputError, match="parent" if "imeout" not in name else "runTimeoutSeconds"):
        parse_spawn({"task": "x", name: "y"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "forever"),
        ("cleanup", "burn"),
        ("context", "half"),
        ("sandbox", "maybe"),
        ("runtime", "docker"),
        ("completionTarget", "user"),
        ("runTimeoutSeconds", -1),
        ("runTimeoutSeconds", 1.5),
        ("thread", "yes"),
        ("attachments", "file"),
        ("attachments", ["file"]),
        ("attachments", [{"name": "a"}]),
        ("attachments", [{"name": "a", "content": "b", "encoding": "rot13"}]),
        ("attachments", [{"name": "a", "content": "b", "path": "/etc"}]),
        ("attachAs", {"where": "x"}),
    ],
)
def test_a_value_that_is_none_is_an_input_error(name: str, value: Any) -> None:
    with pytest.raises(ToolInputError):
        parse_spawn({"task": "x", name: value})


def test_a_bad_attachment_is_named_by_its_place() -> None:
    files = [{"name": "a", "content": "b"}, {"name": "c", "content": 1}]
    with pytest.raises(ToolInputError, match=r"attachments\[1\]: content"):
        parse_spawn({"task": "x", "attachments": files})


def test_a_program_names_every_parameter_in_its_own_way() -> None:
    names = program_names()
    assert len(names) == len(PARAMETERS)
    assert {"task_name", "run_timeout_seconds", "attach_as", "thread"} <= names
    assert "taskName" not in names
