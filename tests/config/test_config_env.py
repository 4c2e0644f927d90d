"""``${NAME}``: what is set is put in and never shown; what is not set is named (SCENARIOS.md 64)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from openclaw_ray import config
from openclaw_ray.config import ConfigError, NoticeKind

ENV = {"HOME_OF_A": "/srv/a", "SECRET": "s3cret-value", "EMPTY": ""}


def workspace(text: str, **other: Any) -> dict[str, Any]:
    return {"agents": {"defaults": {"workspace": text}}, **other}


def value(settings: dict[str, Any], env: dict[str, str] | None = None) -> str | None:
    return config.load(settings, env=ENV if env is None else env).agent_limits("main").workspace


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("${HOME_OF_A}", "/srv/a"),
        ("x/${HOME_OF_A}/${SECRET}", "x//srv/a/s3cret-value"),
        ("$${HOME_OF_A}", "${HOME_OF_A}"),
        ("${lower} $HOME_OF_A ${1A} ${}", "${lower} $HOME_OF_A ${1A} ${}"),
    ],
)
def test_upper_case_names_are_put_in_and_the_rest_stays(written: str, becomes: str) -> None:
    assert value(workspace(written)) == becomes


@pytest.mark.parametrize(
    ("section", "becomes"),
    [({"vars": {"OWN": "/v"}}, "/v"), ({"OWN": "/o"}, "/o"), ({"vars": {"HOME_OF_A": "no"}}, None)],
)
def test_the_files_own_variables_come_after_the_environment(section: dict[str, Any], becomes: str | None) -> None:
    written = "${OWN}" if becomes else "${HOME_OF_A}"
    assert value(workspace(written, env=section)) == (becomes or "/srv/a")


@pytest.mark.parametrize("name", ["MISSING", "EMPTY"])
def test_a_name_that_is_not_set_is_a_fault_that_names_it(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        value(workspace(f"a/${{{name}}}"))
    (fault,) = caught.value.faults
    assert (fault.path, fault.kind) == ("agents.defaults.workspace", "variable")
    assert name in fault.text
    assert "env.vars" in (fault.remedy or "")


def test_one_that_a_tolerated_section_needs_is_only_told() -> None:
    loaded = config.load({"channels": {"telegram": {"botToken": "${TELEGRAM}"}}}, env={})
    assert [(one.path, one.text) for one in loaded.notices if one.kind is NoticeKind.VARIABLE] == [
        ("channels.telegram.botToken", "TELEGRAM is not set; it is not needed here")
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"session": {"dmScope": "${SECRET}"}},
        {"ray": {"pool": {"max": "${SECRET}"}}},
        {"ray": {"pool": {"max": ["${SECRET}"]}}},
        {"agents": {"list": [{"id": "../${SECRET}"}]}},
        {"tools": {"allow": {"a": "${SECRET}"}}},
    ],
)
def test_no_fault_shows_the_value_of_a_variable(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(settings, env=ENV)
    text = str(caught.value) + repr(caught.value.faults)
    assert "${SECRET}" in text
    assert "s3cret" not in text


def test_values_shown_to_people_are_as_they_are_written() -> None:
    settings = workspace("${SECRET}")
    settings["agents"]["defaults"]["subagents"] = {"allowAgents": ["${SECRET}", "docs"], "model": "x/${SECRET}"}
    loaded = config.load(settings, env=ENV)
    assert "s3cret" not in repr([one.value for one in loaded.settings()])
    assert "s3cret" in repr([one.value for one in loaded.settings(shown=False)])
    assert loaded.agent_limits("main").allow_agents == ("s3cret-value", "docs")


def test_the_records_of_the_actors_hold_plain_text() -> None:
    limits = config.load(workspace("${SECRET}"), env=ENV).agent_limits("main")
    assert type(limits.workspace) is str
    assert b"FromEnv" not in pickle.dumps(limits)


def test_a_configuration_with_variables_goes_through_a_pickle() -> None:
    loaded = config.load(workspace("${SECRET}"), env=ENV)
    back = pickle.loads(pickle.dumps(loaded))
    assert (back, back.rev) == (loaded, loaded.rev)
    assert "s3cret" not in repr([one.value for one in back.settings()])


def test_keys_are_never_filled_in() -> None:
    loaded = config.load({"auth": {"order": {"${SECRET}": ["a:b"]}}}, env=ENV)
    assert list(loaded.root.auth.order) == ["${SECRET}"]
