"""config.load: strict, all faults at once, real files load (SCENARIOS.md 61, 62)."""

from __future__ import annotations

import pickle
import time
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from openclaw_ray import config
from openclaw_ray.config import Config, ConfigError, ConfigFault


def faults(source: Any) -> tuple[ConfigFault, ...]:
    with pytest.raises(ConfigError) as caught:
        config.loads(source) if isinstance(source, str) else config.load(source, env={})
    return caught.value.faults


def only(source: Any) -> ConfigFault:
    found = faults(source)
    assert len(found) == 1, found
    return found[0]


def agent(**settings: Any) -> dict[str, Any]:
    return {"agents": {"entries": {"a": settings}}}


def subagents(**settings: Any) -> dict[str, Any]:
    return {"agents": {"defaults": {"subagents": settings}}}


# --------------------------------------------------------------------------- no coercion


CHILDREN = "agents.defaults.subagents.maxChildrenPerAgent"


@pytest.mark.parametrize(
    "value",
    [True, "5", 5.5, None, float("inf"), float("nan"), 0, 21, -1, [5], {}, 2**60, 10**400],
    ids=lambda value: repr(value)[:20],
)
def test_a_limit_takes_nothing_but_a_whole_number_in_its_range(value: Any) -> None:
    fault = only(subagents(maxChildrenPerAgent=value))
    assert fault.path == CHILDREN
    assert fault.kind in ("type", "range")


def test_true_is_not_taken_as_one() -> None:
    assert only(subagents(maxChildrenPerAgent=True)).text == "must be a whole number from 1 to 20, not true"


def test_one_is_not_taken_as_true() -> None:
    assert only(subagents(requireAgentId=1)).text == "must be true or false, not 1"


def test_a_number_without_a_fraction_is_whole_however_it_is_written() -> None:
    assert config.load(subagents(maxChildrenPerAgent=5.0), env={}).runtime_limits(cpus=1).max_children == 5


@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN", "-1", "true", "'2'", "null"])
@pytest.mark.parametrize("key", ["stopGraceSeconds", "clientLeaseSeconds", "registryTimeoutSeconds"])
def test_seconds_are_finite_numbers(key: str, value: str) -> None:
    fault = only(f"{{ray: {{{key}: {value}}}}}")
    assert (fault.path, fault.line) == (f"ray.{key}", 1)


@pytest.mark.parametrize("value", [2**31, 10**10])
def test_a_long_timeout_is_kept_as_it_is(value: int) -> None:
    assert (
        config.load(subagents(runTimeoutSeconds=value), env={}).runtime_limits(cpus=1).run_timeout_seconds
        == value
    )


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"agents": 5}, "agents"),
        ({"agents": {"entries": []}}, "agents.entries"),
        ({"agents": {"entries": {"a": 5}}}, "agents.entries.a"),
        ({"agents": {"list": {}}}, "agents.list"),
        ({"agents": {"list": [5]}}, "agents.list[0]"),
        ({"agents": {"list": [{}]}}, "agents.list[0].id"),
        ({"agents": {"defaults": {"workspace": " "}}}, "agents.defaults.workspace"),
        ({"agents": {"defaults": {"model": 5}}}, "agents.defaults.model"),
        ({"agents": {"defaults": {"model": {"primary": 5}}}}, "agents.defaults.model.primary"),
        ({"agents": {"defaults": {"model": {"fallbacks": ["a", 5]}}}}, "agents.defaults.model.fallbacks[1]"),
        (agent(ray={"num_gpus": -1}), "agents.entries.a.ray.num_gpus"),
        (agent(ray={"resources": {"x": "1"}}), "agents.entries.a.ray.resources.x"),
        (agent(ray={"scheduling": "spread"}), "agents.entries.a.ray.scheduling"),
        (agent(subagents={"allowAgents": None}), "agents.entries.a.subagents.allowAgents"),
        ({"ray": {"compat": "2026.8"}}, "ray.compat"),
        ({"ray": {"pool": {"reuse": True}}}, "ray.pool.reuse"),
        ({"ray": {"pool": {"max": 0}}}, "ray.pool.max"),
        ({"ray": {"pool": {"max": 2, "prewarm": 3}}}, "ray.pool.prewarm"),
        ({"ray": {"limits": {"unlock": "true"}}}, "ray.limits.unlock"),
        ({"ray": {"budgets": {"costPerTree": 0}}}, "ray.budgets.costPerTree"),
    ],
)
def test_a_wrong_value_is_told_with_its_whole_path(settings: dict[str, Any], path: str) -> None:
    assert only(settings).path == path


# --------------------------------------------------------------------------- unknown keys


@pytest.mark.parametrize(
    ("settings", "path", "near"),
    [
        ({"agnets": {}}, "agnets", "agents"),
        ({"rya": {}}, "rya", "ray"),
        ({"agents": {"entires": {}}}, "agents.entires", "entries"),
        ({"agents": {"entries": {"main": {"workspce": "x"}}}}, "agents.entries.main.workspce", "workspace"),
        ({"agents": {"list": [{"id": "a", "identiy": {}}]}}, "agents.list[0].identiy", "identity"),
        ({"agents": {"defaults": {"model": {"primry": "x"}}}}, "agents.defaults.model.primry", "primary"),
        ({"ray": {"pool": {"prewrm": 1}}}, "ray.pool.prewrm", "prewarm"),
        (subagents(MAXSPAWNDEPTH=2), "agents.defaults.subagents.MAXSPAWNDEPTH", "maxSpawnDepth"),
        ({"zzz": 1}, "zzz", None),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_name(
    settings: dict[str, Any], path: str, near: str | None
) -> None:
    fault = only(settings)
    assert (fault.path, fault.kind, fault.near) == (path, "unknown", near)


def test_a_limit_under_the_wrong_parent_is_told_where_it_belongs() -> None:
    fault = only({"agents": {"entries": {"main": {"subagents": {"maxSpawnDepth": 2}}}}})
    assert fault.path == "agents.entries.main.subagents.maxSpawnDepth"
    assert "belongs to agents.defaults.subagents" in fault.text


def test_real_keys_that_are_not_ours_are_tolerated_and_listed() -> None:
    loaded = config.load(
        {
            "$schema": "x",
            "gateway": {"port": 1},
            "agents": {
                "ownership": "explicit",
                "defaults": {"heartbeat": {}},
                "entries": {"a": {"heartbeat": {}, "tools": {}}},
            },
        },
        env={},
    )
    assert loaded.tolerated == (
        "$schema",
        "agents.defaults.heartbeat",
        "agents.entries.a.heartbeat",
        "gateway",
    )


# --------------------------------------------------------------------------- text


def test_all_faults_come_at_once_in_the_order_of_the_text() -> None:
    found = faults(
        """{
          // a comment
          agents: {
            defaults: {subagents: {maxSpawnDepth: 9, maxSpawnDept: 1}},
            entries: {"bad id!": {}, main: {default: 1}},
          },
          ray: {compat: "x",
                compat: "2026.9", pool: {max: 'many'}},
          gatway: {},
        }"""
    )
    assert [(fault.line, fault.path, fault.kind) for fault in found] == [
        (4, "agents.defaults.subagents.maxSpawnDept", "unknown"),
        (4, "agents.defaults.subagents.maxSpawnDepth", "range"),
        (5, "agents.entries.bad id!", "value"),
        (5, "agents.entries.main.default", "type"),
        (8, "ray.compat", "duplicate"),
        (8, "ray.pool.max", "type"),
        (9, "gatway", "unknown"),
    ]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ('{"ray": {},\n\n "ray": {}}', "ray", 3),
        ("{ray: {},\r\n ray: {}}", "ray", 2),
        ("{agents: {list: [{id: 'a'},\n{id: 'b', 'id': 'c'}]}}", "agents.list[1].id", 2),
        ('{"gateway": {"a": 1, // two\n"\\u0061": 2}}', "gateway.a", 2),
        ("{/* ray: { */ gateway: {'x\\\ny': [1, {}], 'xy': '{', z: 2,\nxy: 3}}", "gateway.xy", 2),
    ],
)
def test_a_key_written_two_times_is_refused_with_the_line_of_the_second(
    text: str, path: str, line: int
) -> None:
    found = [fault for fault in faults(text) if fault.kind == "duplicate"]
    assert (found[0].path, found[0].line) == (path, line)


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("{a: 1,\n b: 2 c}", "syntax", 2),
        ("", "syntax", None),
        ("{", "syntax", 1),
        ("[]", "root", None),
        ("null", "root", None),
        ("[" * 100_000, "syntax", None),
    ],
)
def test_a_text_that_is_no_object_is_refused(text: str, kind: str, line: int | None) -> None:
    fault = only(text)
    assert (fault.path, fault.kind, fault.line) == ("", kind, line)


def test_json5_forms_are_understood() -> None:
    loaded = config.loads("\ufeff/* */ {'ray': {pool: {max: 0x0A, idleSeconds: +.5,},},} // tail")
    limits = loaded.runtime_limits(cpus=1)
    assert (limits.pool_max, limits.pool_idle_seconds) == (10, 0.5)


def test_a_megabyte_of_plain_json_loads_fast() -> None:
    entries = ", ".join(f'"gateway{n}": {{"port": {n}, "note": "{"x" * 60}"}}' for n in range(10_000))
    began = time.process_time()
    config.loads(f'{{"channels": {{{entries}}}}}')
    assert time.process_time() - began < 3


# --------------------------------------------------------------------------- sources


def test_nothing_means_the_defaults() -> None:
    loaded = config.load(env={})
    assert (loaded.source, loaded.agent_ids, loaded.named_agents) == ("<defaults>", ("main",), ())


def test_the_variable_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{ray: {inbox: {max: 7}}}", encoding="utf-8")
    loaded = config.load(env={"OPENCLAW_CONFIG_PATH": str(path)})
    assert (loaded.source, loaded.runtime_limits(cpus=1).inbox_max) == (str(path), 7)
    assert config.load(path, env={}) == config.load(str(path), env={}) == loaded


def test_an_empty_variable_is_none() -> None:
    assert config.load(env={"OPENCLAW_CONFIG_PATH": ""}).source == "<defaults>"


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    missing = tmp_path / "no.json"
    with pytest.raises(ConfigError) as caught:
        config.load(env={"OPENCLAW_CONFIG_PATH": str(missing)})
    (fault,) = caught.value.faults
    assert (fault.path, fault.kind) == ("", "file")
    assert str(missing) in fault.text
    assert "OPENCLAW_CONFIG_PATH" in fault.text
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe{}")
    for path in (tmp_path, tmp_path / "bad.json"):
        with pytest.raises(ConfigError, match="cannot be read"):
            config.load(path, env={})


def test_a_checked_configuration_is_taken_as_it_is() -> None:
    loaded = config.load({"ray": {}}, env={})
    assert config.load(loaded, env={}) is loaded


def test_the_result_is_frozen_and_independent_of_its_source() -> None:
    allow = ["docs"]
    source = {"agents": {"entries": {"a": {"subagents": {"allowAgents": allow}}}}}
    loaded = config.load(source, env={})
    allow.append("ops")
    source["agents"]["entries"]["b"] = {}
    assert loaded.agent_limits("a").allow_agents == ("docs",)
    assert loaded.agent_ids == ("a",)
    with pytest.raises(FrozenInstanceError):
        loaded.source = "x"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        loaded.root.ray = None  # type: ignore[assignment]


def test_a_configuration_goes_through_a_pickle() -> None:
    loaded = config.loads("{agents: {defaults: {model: {primary: 'x/y'}}}, gateway: {}}")
    back: Config = pickle.loads(pickle.dumps(loaded))
    assert back == loaded
    assert (back.rev, back.tolerated) == (loaded.rev, ("gateway",))
