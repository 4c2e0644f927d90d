"""``auth``, and what ``doctor`` and ``config check`` say of credentials."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_cli_doctor import WELL, check

from openclaw_ray.cli import doctor_gather
from openclaw_ray.cli.doctor_checks import Verdict
from openclaw_ray.cli.doctor_facts import CredentialStore
from openclaw_ray.cli.main import run
from openclaw_ray.cli.view import LiveView
from openclaw_ray.core.errors import UnknownAgent

SECRET = "sk-do-not-show-9876543210"


def key(**more: Any) -> dict[str, Any]:
    return {"type": "api_key", "provider": "anthropic", "key": SECRET, **more}


def put(path: Path, profiles: dict[str, Any], mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.chmod(0o700)
    path.write_text(json.dumps({"version": 1, "profiles": profiles, "usageStats": {"anthropic:1": {"lastUsed": 5}}}))
    path.chmod(mode)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.json5").write_text(
        """{
          agents: {entries: {main: {default: true, agentDir: "~/main"}, b: {agentDir: "~/b"}, alone: {
            agentDir: "~/alone", ray: {authIsolation: true}}}},
          auth: {order: {anthropic: ["anthropic:2", "anthropic:1"]}},
        }"""
    )
    put(tmp_path / "main" / "auth-profiles.json", {"anthropic:1": key(), "anthropic:3": key()})
    put(tmp_path / "b" / "auth-profiles.json", {"anthropic:2": key(expires=1)})
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["auth", *arguments, "--config", "c.json5", "--json"]) == 0
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err
    return json.loads(captured.out)


def test_an_agents_profiles_are_shown_in_their_order_with_their_stores(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, "b")
    [row] = found["providers"]
    assert (row["provider"], row["next"], row["fallback"], row["orderFrom"]) == (
        "anthropic", "anthropic:2", False, "auth.order",
    )  # fmt: skip
    assert [(one["profileId"], one["source"]) for one in row["order"]] == [
        ("anthropic:2", "agent"),
        ("anthropic:1", "shared"),
    ]
    assert row["excluded"] == [{"profileId": "anthropic:3", "reason": "excluded_by_auth_order"}]
    assert [(one["store"], one["path"], one["mode"]) for one in found["stores"]] == [
        ("agent", str(home / "b" / "auth-profiles.json"), "0600"),
        ("shared", str(home / "main" / "auth-profiles.json"), "0600"),
    ]
    assert shown(capsys, "agent:b:subagent:1") == found


def test_an_agent_without_a_store_has_the_fallback_and_an_isolated_one_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, "elsewhere")["providers"][0]["fallback"] is True
    alone = shown(capsys, "alone")
    assert (alone["isolated"], [one["present"] for one in alone["stores"]]) == (True, [False])
    assert alone["providers"][0]["order"] == []


def test_people_get_a_table_and_where_it_was_read(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["auth", "b", "--config", "c.json5"]) == 0
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err
    assert "anthropic:2" in captured.out
    assert "next" in captured.out
    assert "not used: excluded_by_auth_order" in captured.out
    assert str(home / "main" / "auth-profiles.json") in captured.err
    (home / "none.json5").write_text("{}")
    assert run(["auth", "b", "--config", "none.json5"]) == 0
    assert "set agents.entries.<id>.agentDir or ray.auth.dir" in capsys.readouterr().err
    assert run(["auth", "no agent:", "--config", "c.json5"]) == 2


def test_the_usual_file_leads_to_the_usual_stores_and_no_other_file_does(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(home / ".openclaw" / "agents" / "main" / "agent" / "auth-profiles.json", {"anthropic:u": key()})
    (home / ".openclaw" / "openclaw.json").write_text("{}")
    assert run(["auth", "main", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["providers"][0]["next"] == "anthropic:u"
    (home / "other.json").write_text("{}")
    assert run(["auth", "main", "--json", "--config", "other.json"]) == 0
    assert json.loads(capsys.readouterr().out)["stores"] == []


def test_a_live_runtime_is_asked_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def auth(target: str) -> dict[str, Any]:
        if target.startswith("agent:"):
            raise KeyError(target)
        if target != "b":
            raise UnknownAgent(target, ("b",))
        return {"agentId": "b", "isolated": False, "stores": [], "providers": []}

    @contextlib.contextmanager
    def open_it(name: str) -> Iterator[LiveView]:
        yield LiveView(SimpleNamespace(name=name, state_dir="/state", auth=auth))

    monkeypatch.setattr(LiveView, "open", open_it)
    assert run(["auth", "b", "--name", "nightly", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agentId"] == "b"
    assert run(["auth", "c", "--name", "nightly"]) == 2
    assert run(["auth", "agent:b:main", "--name", "nightly"]) == 2
    assert "no session 'agent:b:main'" in capsys.readouterr().err


def test_doctor_finds_stores_that_others_can_read_and_broken_ones(home: Path) -> None:
    assert check(replace(WELL, stores=(CredentialStore("/x"),)), "credential stores").verdict is Verdict.OK
    facts = doctor_gather.gather(None, "c.json5", None)
    assert check(facts, "credential stores").verdict is Verdict.OK
    path = home / "b" / "auth-profiles.json"
    path.chmod(0o644)
    path.parent.chmod(0o755)
    found = check(doctor_gather.gather(None, "c.json5", None), "credential stores")
    assert found.verdict is Verdict.WARN
    assert "mode 0644" in found.detail
    assert found.remedy == f"chmod 600 {path}; chmod 700 {path.parent}"
    path.chmod(0o600)
    path.parent.chmod(0o700)
    path.write_text(f'{{"profiles": "{SECRET}"}}')
    found = check(doctor_gather.gather(None, "c.json5", None), "credential stores")
    assert (found.verdict, SECRET in found.detail) == (Verdict.FAIL, False)
    assert f"{path} profiles must be an object" in found.detail


def test_keys_of_credentials_are_in_effect(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", "--config", "c.json5"]) == 0
    captured = capsys.readouterr()
    assert "not yet in effect" not in captured.out + captured.err
