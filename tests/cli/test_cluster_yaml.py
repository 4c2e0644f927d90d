"""``cluster.yaml``: what Ray's cluster launcher takes, and commands that Ray and this package understand."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.scripts.scripts import cli as ray_cli

from openclaw_ray.cli.main import cli

FILE = Path(__file__).parents[2] / "cluster.yaml"
NODES = ("head", "worker")


@pytest.fixture
def cluster() -> dict[str, Any]:
    """The file with Ray's defaults, as the launcher works with it."""
    prepared: dict[str, Any] = prepare_config(yaml.safe_load(FILE.read_text(encoding="utf-8")))
    return prepared


def commands(cluster: dict[str, Any], node: str, program: str) -> list[list[str]]:
    """The arguments of each call of a program among the start commands of a node."""
    calls = []
    for line in cluster[f"{node}_start_ray_commands"]:
        for part in line.split("&&"):
            words = shlex.split(part)
            if words and words[0].split("/")[-1] == program:
                calls.append(words[1:])
    return calls


def test_it_is_valid_for_the_launcher(cluster: dict[str, Any]) -> None:
    validate_config(cluster)
    (kind,) = cluster["available_node_types"].values()
    assert kind["min_workers"] == kind["max_workers"] == len(cluster["provider"]["worker_ips"])


@pytest.mark.parametrize("node", NODES)
def test_ray_starts_with_the_token_and_enough_files(cluster: dict[str, Any], node: str) -> None:
    (line,) = [line for line in cluster[f"{node}_start_ray_commands"] if "ray start" in line]
    limit, mode, start = (part.strip() for part in line.split("&&"))
    assert (limit, mode) == ("ulimit -n 65535", "export RAY_AUTH_MODE=token")
    assert "ray start" in start
    assert "~/.ray/auth_token" in cluster["file_mounts"]


@pytest.mark.parametrize("node", NODES)
def test_ray_knows_the_options(cluster: dict[str, Any], node: str) -> None:
    calls = commands(cluster, node, "ray")
    assert [call[0] for call in calls] == ["stop", "start"]
    given = [understood(ray_cli, call) for call in calls]
    assert given[1]["head"] is (node == "head")


def test_each_node_gets_this_package(cluster: dict[str, Any]) -> None:
    (place,) = [remote for remote, local in cluster["file_mounts"].items() if local == "."]
    assert any("pip install" in line and place in line for line in cluster["setup_commands"])


def test_the_head_has_a_runtime_with_a_state_dir_that_it_makes(cluster: dict[str, Any]) -> None:
    (call,) = commands(cluster, "head", "openclaw-ray")
    given = understood(cli, call)
    assert call[0] == "up"
    assert any(f"mkdir -p {given['state']} " in line for line in cluster["head_setup_commands"])
    (start,) = [understood(ray_cli, each) for each in commands(cluster, "head", "ray") if each[0] == "start"]
    assert given["address"].endswith(f":{start['port']}")
    assert commands(cluster, "worker", "openclaw-ray") == []


def understood(program: click.Group, words: list[str]) -> dict[str, Any]:
    """What a command line gives, without running it; `click.UsageError` if it is not understood."""
    command = program.commands[words[0]]
    return command.make_context(words[0], words[1:]).params
