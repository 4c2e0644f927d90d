"""Credentials on a cluster: they reach the sessions that are entitled to them, and nothing else (SCENARIOS.md 44)."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.programs import run_program

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]

_PROGRAM = Path(__file__).with_name("auth_program.py")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("auth")
    env = {"OPENCLAW_TEST_KEY": f"sk-env-{uuid.uuid4().hex}", "RAY_ADDRESS": None}
    answer: dict[str, Any] = run_program(_PROGRAM, str(folder), env=env, timeout=220.0).answer()
    return answer


def test_a_tree_gets_its_own_keys_the_fallback_and_a_rotated_one(told: dict[str, Any]) -> None:
    assert told["sources"] == {"gets": "shared", "b": "agent"}
    assert told["fallback"] is True
    assert told["local"] is True
    assert told["elsewhere"] is True
    assert told["rotated"] == len("-rotated")


def test_processes_are_used_again_within_what_is_in_reach_alone(told: dict[str, Any]) -> None:
    assert told["used again"] is True
    assert told["of its own class"] is True
    assert told["apart"] is True


def test_a_new_registry_knows_what_is_in_reach_and_a_new_configuration_changes_it(told: dict[str, Any]) -> None:
    assert told["after a registry"] is True
    assert told["changed"] == [["agents.ids", "now"], ["agent:gets.ray.authIsolation", "now"]]
    assert told["refused"] == "NoCredential"


@pytest.mark.skipif(os.geteuid() != 0, reason="another process's memory is root's to read")
def test_no_key_is_anywhere_but_with_who_is_entitled_to_it(told: dict[str, Any]) -> None:
    seen = dict(told["seen"])
    held = seen.pop("holder's memory")
    assert "openai" in held  # so what looks for them finds them
    assert "own" not in held  # of another class; what else its own class has in reach may have been there
    assert {place: found for place, found in seen.items() if found} == {}
    assert told["crew"] >= 3
    assert told["failed"]["type"] == "ValueError"
    assert "anthropic:p" in told["failed"]["message"]
