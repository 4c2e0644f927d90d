"""The model describes itself: a schema for editors, a table for the README (SCENARIOS.md 61: no drift)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw_ray import config

ROWS = {row.key: row for row in config.rows()}


def nested(path: str, value: object) -> dict[str, Any]:
    made: Any = value
    for step in reversed(path.split(".")):
        made = {step: made}
    assert isinstance(made, dict)
    return made


def test_the_table_has_every_key_with_its_sort_and_meaning() -> None:
    lines = config.table().splitlines()
    assert lines[:2] == ["| key | type | default | meaning |", "|---|---|---|---|"]
    assert len(lines) == len(ROWS) + 2
    assert (
        "| `agents.defaults.subagents.maxChildrenPerAgent` | int 1–20 (to 10000 with ray.limits.unlock) | `5` "
        "| active direct children of one session; more are refused |"
    ) in lines
    assert all(line.count(" | ") >= 3 for line in lines[2:])


@pytest.mark.parametrize("key", sorted(ROWS))
def test_every_key_of_the_table_has_a_sort_and_a_meaning(key: str) -> None:
    assert ROWS[key].type
    assert ROWS[key].meaning


@pytest.mark.parametrize("key", sorted(key for key, row in ROWS.items() if row.default and "<id>" not in key))
def test_every_documented_default_loads_and_is_the_default(key: str) -> None:
    value = json.loads(ROWS[key].default)
    loaded = config.load(nested(key, value), env={})
    assert loaded.rev == config.load({}, env={}).rev


def test_every_setting_in_force_is_in_the_table() -> None:
    for one in config.load({}, env={}).settings():
        by_name = ("agent", "a2a.", "messages.queue.byChannel", "auth.", "secrets.", "tools.by", "tools.tools")
        if one.name.startswith(by_name):
            continue
        assert one.name in ROWS, one.name


def test_keys_that_do_not_act_yet_are_marked() -> None:
    marked = [line for line in config.table().splitlines() if "` † |" in line]
    assert len(marked) == sum(not row.in_effect for row in ROWS.values())


# --------------------------------------------------------------------------- schema


def definition(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"][name]
    return found


def test_the_schema_has_ranges_words_and_meanings() -> None:
    schema = config.json_schema()
    json.dumps(schema)
    children = definition(schema, "SubagentDefaults")["properties"]
    assert children["maxConcurrent"]["minimum"] == 1
    assert children["maxSpawnDepth"]["maximum"] == 32
    assert children["delegationMode"]["enum"] == ["suggest", "prefer"]
    assert "description" in children["runTimeoutSeconds"]


def test_the_schema_takes_no_null_where_a_file_may_not_have_one() -> None:
    schema = config.json_schema()
    assert "anyOf" not in definition(schema, "AgentDefaults")["properties"]["workspace"]
    assert definition(schema, "Ray")["properties"]["maxActiveSessions"]["type"] == ["integer", "null"]


def test_the_schema_knows_tolerated_keys_and_includes_and_no_others() -> None:
    schema = config.json_schema()
    assert {"gateway", "models", "$include", "agents", "ray"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert {"heartbeat", "$include"} <= set(definition(schema, "AgentDefaults")["properties"])
    assert definition(schema, "Channel")["additionalProperties"] is True
    assert "heartbeat" not in definition(schema, "Pool")["properties"]
