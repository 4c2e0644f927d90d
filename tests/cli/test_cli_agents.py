"""``agents list``: the agents of an app file and of a configuration, with their limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray.cli.main import run

APP = """import openclaw_ray as oc

@oc.agent
def main(turn: oc.SyncTurn) -> str:
    return ""

@oc.agent(spawns=False, tools=["read"])
def reader(turn: oc.SyncTurn) -> str:
    return ""

class Judge(oc.Agent):
    id = "judge"
    resumable = True
"""
CONFIG = """{
  agents: {
    defaults: {subagents: {maxSpawnDepth: 3, maxChildrenPerAgent: 7, maxConcurrent: 2}},
    entries: {
      main: {subagents: {allowAgents: ["reader", "judge"], requireAgentId: true}},
      judge: {default: true, subagents: {allowAgents: []}},
      elsewhere: {},
    },
  },
}"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed_app.py").write_text(APP)
    (tmp_path / "c.json5").write_text(CONFIG)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}


def test_agents_are_listed_with_their_origin_and_limits(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agents", "list", "--app", "listed_app.py", "--config", "c.json5", "--json"]) == 0
    rows = listed(capsys)
    assert list(rows) == ["main", "reader", "judge", "elsewhere"]
    assert rows["main"]["origin"] == "listed_app.py:3"
    assert rows["judge"]["origin"] == "listed_app.py:11"
    assert [row["tools"] for row in rows.values()] == [[], ["read"], [], None]
    assert (rows["elsewhere"]["origin"], rows["elsewhere"]["code"]) == ("c.json5", False)
    assert [row["default"] for row in rows.values()] == [False, False, True, False]
    assert [row["spawns"] for row in rows.values()] == [True, False, True, None]
    assert rows["main"]["allowAgents"] == ["reader", "judge"]
    assert rows["main"]["allowAgentsPath"] == "agents.entries.main.subagents.allowAgents"
    assert rows["main"]["requireAgentId"] is True
    assert rows["reader"]["allowAgents"] == ["reader"]  # itself alone
    assert rows["judge"]["allowAgents"] == []
    assert rows["judge"]["resumable"] is True
    limits = [rows["main"][name] for name in ("maxSpawnDepth", "maxChildrenPerAgent", "maxConcurrent")]
    assert limits == [3, 7, 2]


def test_without_a_configuration_the_defaults_hold(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agents", "list", "--app", "listed_app.py", "--json"]) == 0
    rows = listed(capsys)
    assert [row["default"] for row in rows.values()] == [True, False, False]
    assert (rows["main"]["maxSpawnDepth"], rows["main"]["maxChildrenPerAgent"]) == (5, 5)


def test_a_depth_that_the_pool_cannot_hold_is_shown_as_it_will_be(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "c.json5").write_text("{ray: {pool: {max: 3}}}")
    assert run(["agents", "list", "--app", "listed_app.py", "--config", "c.json5", "--json"]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["maxSpawnDepth"] for line in captured.out.splitlines()] == [2, 2, 2]
    assert captured.err.startswith("note: maxSpawnDepth lowered from 5 to 2")


def test_the_table_shows_who_has_no_code(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agents", "list", "--config", "c.json5"]) == 0
    text = capsys.readouterr().out
    assert "elsewhere" in text
    assert "no code" in text
    assert "nobody" in text


def test_a_wrong_configuration_has_exit_code_2(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "c.json5").write_text("{agents: {defaults: {subagents: {maxSpawnDepth: 99}}}}")
    assert run(["agents", "list", "--config", "c.json5"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "maxSpawnDepth" in captured.err


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_where_there_are_none_it_says_how_to_see_those_of_an_app(
    files: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert run(["agents", "list", *more]) == 0
    said = capsys.readouterr()
    assert "--app FILE" in said.err
    assert "note" not in said.out
