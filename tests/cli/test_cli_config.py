"""``openclaw-ray config``: check, show, schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray.cli.main import run

FAULTY = """{
  agents: {
    defaults: {subagents: {maxSpawnDepth: 9, maxSpawnDept: 1, maxChildrenPerAgent: true}},
    entries: {"bad id!": {}, main: {default: 1, subagents: {runTimeoutSeconds: 5}}},
  },
  session: {dmScope: "x", mainKey: "${OPENCLAW_TEST_UNSET}"},
  gateway: {prot: 1},
  ray: {recovery: "x"},
}"""
REAL = """{
  agents: {list: [{id: "main", workspace: "~/w", agentDir: "~/a"}], defaults: {subagents: {maxConcurrent: 2}}},
  session: {reset: {mode: "idle"}},
  gateway: {port: 1, auth: {token: "${OPENCLAW_TEST_UNSET}"}},
  memorySearch: {},
}"""


@pytest.fixture(autouse=True)
def _no_configuration_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)
    monkeypatch.delenv("OPENCLAW_TEST_UNSET", raising=False)


def write(folder: Path, text: str, name: str = "c.json5") -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_ten_faults_are_ten_lines_with_path_and_remedy_and_exit_code_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "check", write(tmp_path, FAULTY)]) == 2
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert len(lines) == 10
    assert "10 faults" in err
    assert lines[0] == (
        "agents.defaults.subagents.maxSpawnDept (line 3): unknown key; did you mean maxSpawnDepth?"
    )
    assert all(" (line " in line and ";" in line for line in lines)


def test_faults_as_json_are_one_object(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", "--json", write(tmp_path, FAULTY)]) == 2
    (said,) = rows(capfd.readouterr().out)
    assert said["ok"] is False
    assert len(said["faults"]) == 10
    first = said["faults"][0]
    assert (first["kind"], first["near"], first["line"]) == ("unknown", "maxSpawnDepth", 3)
    assert all(fault["remedy"] for fault in said["faults"])


def test_one_that_is_in_order_lists_what_does_not_act(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, REAL)
    assert run(["config", "check", path]) == 0
    assert capfd.readouterr().out.splitlines() == [
        f"ok: {path}",
        "not yet in effect:",
        "  session.reset.mode",
        "retired in OpenClaw, without effect:",
        "  memorySearch: retired; its place has memory.search",
        "variables that are not set and not needed:",
        "  gateway.auth.token: OPENCLAW_TEST_UNSET is not set; it is not needed here",
        "tolerated, without effect:",
        "  gateway",
        "  memorySearch",
    ]


def test_the_same_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", "--json", write(tmp_path, REAL)]) == 0
    (said,) = rows(capfd.readouterr().out)
    assert (said["ok"], said["faults"], said["tolerated"]) == (True, [], ["gateway", "memorySearch"])
    assert {notice["kind"] for notice in said["notices"]} == {"pending", "retired", "variable"}


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capfd.readouterr().out


def test_without_a_file_it_is_the_users_own_or_the_defaults(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["config", "check"]) == 0
    assert capfd.readouterr().out == "ok: <defaults>\n"
    usual = write(tmp_path / ".openclaw", "{ray: {recovery: 'finalize'}}", "openclaw.json")
    assert run(["config", "check"]) == 0
    assert capfd.readouterr().out.startswith(f"ok: {usual}\n")
    named = write(tmp_path, "{}", "named.json")
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", named)
    assert run(["config", "check"]) == 0
    assert capfd.readouterr().out == f"ok: {named}\n"


def test_show_prints_what_is_written_and_where(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", write(tmp_path, REAL)]) == 0
    assert capfd.readouterr().out.splitlines() == [
        'agents.ids = ["main"]  (agents)',
        "agents.defaults.subagents.maxConcurrent = 2",
        'session.reset.mode = "idle"',
        'agent:main.workspace = "~/w"  (agents.list[0].workspace)',
        'agent:main.agentDir = "~/a"  (agents.list[0].agentDir)',
    ]


def test_show_effective_has_the_defaults_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--effective", "--agent", "Docs", "--json", write(tmp_path, REAL)]) == 0
    found = {row["name"]: (row["value"], row["origin"]) for row in rows(capfd.readouterr().out)}
    assert found["agent:docs.subagents.maxConcurrent"] == (2, "agents.defaults.subagents.maxConcurrent")
    assert found["agent:docs.subagents.maxChildrenPerAgent"] == (5, "default")
    assert all(name.startswith("agent:docs.") for name in found)


def test_show_never_shows_the_value_of_a_variable(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCLAW_TEST_SET", "s3cret")
    path = write(tmp_path, "{agents: {defaults: {workspace: '${OPENCLAW_TEST_SET}'}}}")
    for arguments in (["show"], ["show", "--effective"], ["show", "--json"], ["check"], ["check", "--json"]):
        assert run(["config", *arguments, path]) == 0
        assert "s3cret" not in capfd.readouterr().out


@pytest.mark.parametrize(("arguments", "text"), [(["--agent", "../x"], "not an agent id"), ([], "ray.zzz")])
def test_show_refuses_what_is_wrong(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert run(["config", "show", write(tmp_path, "{}" if arguments else "{ray: {zzz: 1}}"), *arguments]) == 2
    assert text in capfd.readouterr().err


def test_schema_and_table_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "schema"]) == 0
    pretty = capfd.readouterr().out
    assert json.loads(pretty)["properties"]["ray"]
    assert run(["config", "schema", "--json"]) == 0
    (plain,) = rows(capfd.readouterr().out)
    assert plain == json.loads(pretty)
    assert run(["config", "schema", "--table"]) == 0
    table = capfd.readouterr().out
    assert table.startswith("| key | type | default | meaning |\n")
    assert run(["config", "schema", "--table", "--json"]) == 0
    assert len(rows(capfd.readouterr().out)) == len(table.splitlines()) - 2


def test_the_file_may_be_given_with_an_option_as_for_other_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    faulty = write(tmp_path, FAULTY, "faulty.json5")
    assert run(["config", "check", "--config", faulty]) == 2
    assert run(["config", "show", faulty, "--config", faulty]) == 2
    assert "give the file once" in capfd.readouterr().err
    real = write(tmp_path, "{agents: {defaults: {subagents: {maxConcurrent: 3}}}}", "real.json5")
    assert run(["config", "show", "--config", real]) == 0
    assert "maxConcurrent = 3" in capfd.readouterr().out
