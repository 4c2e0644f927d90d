"""``tools KEY``: each tool with the rule that decided, of a live runtime or of a configuration alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import openclaw_ray as oc
from openclaw_ray.agents.tools import TOOLS
from openclaw_ray.cli import tools as command
from openclaw_ray.cli.main import run
from openclaw_ray.testing import LocalRuntime

RULES = {"tools": {"deny": ["agents_*"], "allow": ["group:sessions", "agents_list"]}}


@oc.agent
def main(turn: oc.SyncTurn) -> str:
    return "done"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalRuntime]:
    """A runtime under rules, as the one that the command finds."""
    with LocalRuntime(agents=[main], config=RULES) as runtime:

        @contextlib.contextmanager
        def found(name: str | None) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(runtime=runtime, source="runtime r (here)")

        monkeypatch.setattr(command, "open_live", found)
        yield runtime


def test_each_tool_is_shown_with_its_rule(live: LocalRuntime, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "Main"]) == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "agent:main:main: agent main, depth 0, main"
    assert head.split() == ["tool", "may", "rule", "where"]
    assert [row.rstrip().split(maxsplit=3) for row in rows] == [
        ["agents_list", "no", "global", "tools.deny: agents_*"],
        *([name, "yes", "global", "tools.allow: group:sessions"] for name in TOOLS if name != "agents_list"),
    ]


def test_a_session_at_work_is_shown_as_json(live: LocalRuntime, capsys: pytest.CaptureFixture[str]) -> None:
    receipt = live.spawn("go", "main", tools={"deny": ["subagents"]})
    live.result(receipt, timeout=30)
    assert run(["tools", receipt.session_key, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert (whole["sessionKey"], whole["depth"], whole["role"]) == (receipt.session_key, 1, "orchestrator")
    last = whole["tools"][-1]
    assert (last["tool"], last["allowed"], last["rule"]) == ("subagents", False, "inherited")


def test_an_unknown_session_names_the_way_out(live: LocalRuntime, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "agent:no:main"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no session or agent 'agent:no:main' in runtime r (here)" in captured.err


def test_a_configuration_is_asked_without_a_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "openclaw.json"
    file.write_text('{agents: {defaults: {subagents: {maxSpawnDepth: 2}}}}')
    assert run(["tools", "any", "--config", str(file), "--depth", "2"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "any: agent any, depth 2, leaf"
    assert "built in: agents_list" in text
    assert "agents.defaults.subagents.maxSpawnDepth: sessions_spawn" in text
    assert [line.split()[:2] for line in text.splitlines() if "sessions_yield" in line] == [["sessions_yield", "yes"]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--depth", "1"], "--depth is for --config"),
        (["--config", __file__, "--name", "r"], "give one of them"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tools", "main", *options]) == 2
    assert text in capsys.readouterr().err
