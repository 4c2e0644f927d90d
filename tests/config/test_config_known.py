"""Real keys of OpenClaw are told from misspelt ones, wherever they are (DESIGN.md 11)."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray import config
from openclaw_ray.config import ConfigError, NoticeKind
from openclaw_ray.config._known import node_at
from openclaw_ray.config._notices import NOT_YET

from .known_keys import compacted, steps

LISTED = Path(__file__).resolve().parents[3] / "shared" / "config-keys.json"


@pytest.mark.parametrize(
    ("settings", "path", "near"),
    [
        ({"gateway": {"prot": 1}}, "gateway.prot", "port"),
        ({"channels": {"telegram": {"botTokn": "x"}}}, "channels.telegram.botTokn", "botToken"),
        ({"agents": {"defaults": {"heartbeat": {"evry": "1m"}}}}, "agents.defaults.heartbeat.evry", "every"),
        ({"agents": {"list": [{"id": "a", "tts": {"atuo": 1}}]}}, "agents.list[0].tts.atuo", "auto"),
        ({"session": {"sendPolicy": {"defualt": "allow"}}}, "session.sendPolicy.defualt", "default"),
        ({"models": {"providers": {"x": {"models": [{"nmae": "m"}]}}}}, "models.providers.x.models[0].nmae", "name"),
        ({"bindings": [{"agentID": "a"}]}, "bindings[0].agentID", "agentId"),
    ],
)
def test_a_typo_is_refused_inside_a_section_that_is_only_tolerated(
    settings: dict[str, Any], path: str, near: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(settings, env={})
    (fault,) = caught.value.faults
    assert (fault.path, fault.kind, fault.near) == (path, "unknown", near)


@pytest.mark.parametrize(
    "settings",
    [
        {"channels": {"my-plugin": {"whatever": {"deep": 1}}}},
        {"plugins": {"entries": {"mine": {"config": {"whatever": [1]}}}}},
        {"models": {"providers": {"any-name": {"baseUrl": "x", "models": [{"id": "m", "params": {"z": 1}}]}}}},
        {"env": {"vars": {"ANY": "x"}}},
        {"agents": {"defaults": {"params": {"free": {"form": True}}}}},
    ],
)
def test_places_that_take_any_name_take_it(settings: dict[str, Any]) -> None:
    assert config.load(settings, env={}).tolerated


def test_what_is_tolerated_is_listed_at_the_first_key_that_is_not_ours() -> None:
    loaded = config.load({"gateway": {"port": 1}, "tools": {"web": {"fetch": {"enabled": True}}}}, env={})
    assert loaded.tolerated == ("gateway", "tools.web")


@pytest.mark.parametrize(
    ("settings", "path", "text"),
    [
        ({"memorySearch": {"a": {"b": 1}}}, "memorySearch", "retired; its place has memory.search"),
        ({"routing": {"allowFrom": []}}, "routing.allowFrom", "retired; its place has channels.whatsapp.allowFrom"),
        ({"env": {"MY_KEY": "x"}}, "env.MY_KEY", "retired; its place has env.vars.*"),
        ({"session": {"idleMinutes": 5}}, "session.idleMinutes", "retired; its place has session.reset.idleMinutes"),
        (
            {"agents": {"list": [{"id": "a", "memorySearch": {}}]}},
            "agents.list[0].memorySearch",
            "retired; its place has agents.entries.*.memory.search",
        ),
        ({"browser": {"color": "red"}}, "browser.color", "retired"),
    ],
)
def test_a_retired_key_is_tolerated_and_its_successor_named(settings: dict[str, Any], path: str, text: str) -> None:
    loaded = config.load(settings, env={})
    assert [(one.path, one.kind, one.text) for one in loaded.notices if one.kind is NoticeKind.RETIRED] == [
        (path, NoticeKind.RETIRED, text)
    ]
    assert any(path.startswith(one) for one in loaded.tolerated)


def test_an_unknown_key_beside_retired_ones_is_unknown() -> None:
    with pytest.raises(ConfigError, match=r"routing\.alowFrom: unknown key; did you mean allowFrom\?"):
        config.load({"routing": {"alowFrom": []}}, env={})


def test_keys_that_do_not_act_yet_are_told_one_by_one() -> None:
    loaded = config.load(
        {
            "agents": {
                "defaults": {"subagents": {"maxConcurrent": 2, "thinking": "low"}, "timeoutSeconds": 5},
                "list": [{"id": "a", "agentDir": "~/a", "workspace": "~/a", "subagents": {"allowAgents": []}}],
            },
            "session": {"reset": {"mode": "idle"}},
        },
        env={},
    )
    assert [one.path for one in loaded.notices if one.kind is NoticeKind.PENDING] == [
        "agents.defaults.timeoutSeconds",
        "session.reset.mode",
    ]


def test_every_key_said_not_to_act_yet_is_one_of_ours() -> None:
    ours = [row.key.replace("<id>", "*") for row in config.rows()]
    for path in NOT_YET:
        whole = path.removesuffix(".fallbacks")  # a model may be one text
        assert any(key == whole or key.startswith(f"{path}.") for key in ours), path


def test_a_sandbox_that_there_is_not_is_told() -> None:
    agents = {"defaults": {"sandbox": {"mode": "non-main"}}, "entries": {"a": {"sandbox": {"mode": "all"}}}}
    loaded = config.load({"agents": agents}, env={})
    assert [(one.path, one.kind, one.text.split()[0]) for one in loaded.notices] == [
        ("agents.defaults.sandbox.mode", NoticeKind.REFUSING, "spawned"),
        ("agents.entries.a.sandbox.mode", NoticeKind.REFUSING, "all"),
    ]
    assert config.load({"agents": {"defaults": {"sandbox": {"mode": "off"}}}}, env={}).notices == ()


def test_what_a_model_falls_back_to_does_not_act_yet() -> None:
    loaded = config.load({"agents": {"defaults": {"model": {"primary": "a/b", "fallbacks": ["c/d"]}}}}, env={})
    assert [one.path for one in loaded.notices] == ["agents.defaults.model.fallbacks"]


def test_the_data_is_in_the_package_and_small() -> None:
    data = (resources.files("openclaw_ray.config") / "known_keys.json.gz").read_bytes()
    assert 10_000 < len(data) < 40_000


@pytest.mark.skipif(not LISTED.is_file(), reason="the list of OpenClaw's keys is not beside the repository")
def test_the_data_is_what_the_list_says() -> None:
    listed = json.loads(LISTED.read_text(encoding="utf-8"))
    data = (resources.files("openclaw_ray.config") / "known_keys.json.gz").read_bytes()
    import gzip

    assert gzip.decompress(data) == gzip.decompress(compacted(listed))
    assert all(node_at(steps(row["path"])) is not None for row in listed["keys"])


def test_no_environment_is_needed_for_a_check() -> None:
    before = dict(os.environ)
    config.loads("{env: {vars: {OPENCLAW_TEST_X: 'x'}}, gateway: {port: 1}}")
    assert dict(os.environ) == before


def test_a_group_of_tools_that_there_is_not_is_told() -> None:
    loaded = config.load(
        {
            "tools": {
                "deny": ["group:fss", "group:fs", "group:plugins"],
                "subagents": {"tools": {"allow": ["Group:Xyzzy_Plugh_9"]}},
            },
            "agents": {"list": [{"id": "a", "tools": {"byProvider": {"p": {"deny": ["group:run_time"]}}}}]},
        },
        env={},
    )
    assert [(one.path, one.text) for one in loaded.notices if one.kind is NoticeKind.UNMATCHED] == [
        ("tools.deny", "there is no group:fss; did you mean group:fs?"),
        ("tools.subagents.tools.allow", "there is no group:xyzzy_plugh_9"),
        ("agents.list[0].tools.byProvider.p.deny", "there is no group:run_time; did you mean group:runtime?"),
    ]
