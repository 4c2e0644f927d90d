"""Whatever is in a file, it loads or is refused with paths; nothing else ever happens (SCENARIOS.md 61)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import json5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_ray import config
from openclaw_ray.config import Config, ConfigError

CASES = Path(__file__).resolve().parents[1] / "cases" / "configs"
REAL = [
    json5.loads(path.read_text(encoding="utf-8"))
    for path in sorted(CASES.glob("*.json*"))
    if "expected" not in path.name
]
NUMBERS: list[Any] = [True, -1, 10**400, float("nan")]
JUNK: list[Any] = [None, *NUMBERS, "", "x", "${NOT_SET}", "$${X}", [], [None], {}, {"": 1}, {"x": {}}]


def places(value: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The steps to everything in it."""
    if steps:
        yield steps
    for step, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*steps, step))


def with_junk(source: dict[str, Any], steps: tuple[Any, ...], junk: Any) -> dict[str, Any]:
    made = copy.deepcopy(source)
    here: Any = made
    for step in steps[:-1]:
        here = here[step]
    here[steps[-1]] = junk
    return made


def loads_or_is_refused(source: dict[str, Any]) -> None:
    outcome = outcome_of(source)
    if isinstance(outcome, ConfigError):
        assert outcome.faults
        for fault in outcome.faults:
            assert fault.path
            assert str(fault)
            assert fault.remedy or fault.near
    else:
        assert json.dumps([one.value for one in outcome.settings()])
        assert outcome.runtime_limits(cpus=1).config_rev == outcome.rev


def outcome_of(source: dict[str, Any] | str) -> Config | ConfigError:
    try:
        return config.loads(source, env={}) if isinstance(source, str) else config.load(source, env={})
    except ConfigError as error:
        return error


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_junk_anywhere_in_a_real_file_is_taken_or_refused_with_its_path(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(REAL))
    steps = data.draw(st.sampled_from(list(places(source))))
    loads_or_is_refused(with_junk(source, steps, data.draw(st.sampled_from(JUNK))))


NAMES = ("agents", "channels", "defaults", "entries", "list", "id", "subagents", "tools", "allow", "session", "ray")


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.sampled_from([None, True, 1, "x", "main"]),
        lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=4) | st.lists(inner, max_size=2),
        max_leaves=12,
    )
)
def test_our_own_names_in_any_order_are_taken_or_refused(source: Any) -> None:
    loads_or_is_refused(source if isinstance(source, dict) else {"agents": source})


@pytest.mark.parametrize("depth", [300, 5_000])
@pytest.mark.parametrize("key", ["gateway", "agents", "channels"])
def test_what_is_nested_without_end_never_ends_in_a_crash(key: str, depth: int) -> None:
    outcome = outcome_of(f"{{{key}: " + "{a: " * depth + "1" + "}" * depth + "}")
    taken = key == "channels" and depth < 5_000  # what a plugin's channel has below it is the plugin's affair
    assert isinstance(outcome, Config if taken else ConfigError)
