"""Ids that allowlists name and that the configuration does not have (SPEC.md B7; R129)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openclaw_ray import config
from openclaw_ray.cli import doctor as doctor_module
from openclaw_ray.cli.doctor_facts import Facts
from openclaw_ray.cli.main import run

TEXT = """{
  // mine, with a comment
  agents: {
    defaults: { subagents: { allowAgents: ["docs", "dcos", "*"] } },
    entries: {
      main: { subagents: { allowAgents: [
        "docs",
        "ghost",
      ] } },
      docs: {},
    },
  },
  tools: { agentToAgent: { enabled: true, allow: ["main", "Docs", "re*", "old-one"] } },
}
"""


def stale(source: Any, known: tuple[str, ...] = ()) -> list[tuple[str, str, str | None, int | None]]:
    found = config.stale_ids(config.load(source, env={}), known)
    return [(each.path, each.agent_id, each.near, each.line) for each in found]


def test_each_has_its_path_its_line_and_the_nearest_id(tmp_path: Path) -> None:
    file = tmp_path / "openclaw.json"
    file.write_text(TEXT)
    assert stale(file) == [
        ("agents.defaults.subagents.allowAgents[1]", "dcos", "docs", 4),
        ("agents.entries.main.subagents.allowAgents[1]", "ghost", None, 8),
        ("tools.agentToAgent.allow[3]", "old-one", None, 13),
    ]
    assert file.read_text() == TEXT
    [first, *_] = config.stale_ids(config.load(file, env={}))
    assert str(first).startswith(f"{file}:4: agents.defaults.subagents.allowAgents[1] names 'dcos', which is no agent")
    assert str(first).endswith("did you mean 'docs'?")


def test_an_agent_that_is_passed_in_code_is_not_stale() -> None:
    settings = {"agents": {"entries": {"main": {"subagents": {"allowAgents": ["in-code"]}}}}}
    assert stale(settings, ("in-code",)) == []
    assert stale(settings) == [("agents.entries.main.subagents.allowAgents[0]", "in-code", None, None)]


def test_a_configuration_that_names_no_agent_leaves_them_to_code() -> None:
    assert stale({"agents": {"defaults": {"subagents": {"allowAgents": ["anything"]}}}}) == []
    assert stale(None) == []


def test_doctor_fix_prints_what_to_take_out_and_writes_nothing(monkeypatch: Any, capsys: Any) -> None:
    facts = Facts(ray="2.60.0", python="3.11.9", stale_allowed=("c:4: allowAgents[1] names 'dcos'", "c:8: ghost"))
    monkeypatch.setattr(doctor_module, "look", lambda *_: facts)
    monkeypatch.setattr(doctor_module, "_mended", lambda mend, name: [])
    run(["doctor"])
    assert "to take out" not in capsys.readouterr().err
    run(["doctor", "--fix"])
    said = capsys.readouterr().err
    assert "note: to take out: c:4: allowAgents[1] names 'dcos'" in said
    assert "note: to take out: c:8: ghost" in said
