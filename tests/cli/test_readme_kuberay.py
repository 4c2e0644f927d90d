"""The RayCluster of the README: as the operator wants it, with what a runtime needs, and commands that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from openclaw_ray.cli.main import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    (block,) = re.findall(r"```yaml\n(apiVersion: ray\.io/v1\n.*?)```", README, re.DOTALL)
    made: dict[str, Any] = yaml.safe_load(block)
    return made


def groups(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [manifest["spec"]["headGroupSpec"], *manifest["spec"]["workerGroupSpecs"]]


def test_it_is_a_ray_cluster_of_the_version_that_cluster_yaml_installs(manifest: dict[str, Any]) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayCluster")
    assert set(manifest["spec"]) == {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
    version = manifest["spec"]["rayVersion"]
    assert f"ray=={version}" in (ROOT / "cluster.yaml").read_text(encoding="utf-8")
    for group in groups(manifest):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "the operator takes text only"
        (container,) = group["template"]["spec"]["containers"]
        assert container["image"].endswith(f":{version}")
        assert container["resources"]["limits"] == container["resources"]["requests"]


def test_it_has_a_token_and_no_pod_that_comes_and_goes(manifest: dict[str, Any]) -> None:
    assert manifest["spec"]["authOptions"] == {"mode": "token"}
    for group in manifest["spec"]["workerGroupSpecs"]:
        assert group["replicas"] == group["minReplicas"] == group["maxReplicas"]


def test_the_state_of_the_head_is_on_a_disk_that_lasts(manifest: dict[str, Any]) -> None:
    spec = manifest["spec"]["headGroupSpec"]["template"]["spec"]
    (container,) = spec["containers"]
    (mount,) = container["volumeMounts"]
    (volume,) = spec["volumes"]
    assert mount["name"] == volume["name"]
    assert "persistentVolumeClaim" in volume
    assert {"name": "OPENCLAW_STATE_DIR", "value": mount["mountPath"]} in container["env"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"gcs-server": 6379, "dashboard": 8265, "metrics": 8080}


def test_its_commands_are_understood(manifest: dict[str, Any]) -> None:
    lines = [line for line in README.splitlines() if line.startswith("kubectl exec")]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.partition("--")[2])
        assert words[0] == "openclaw-ray"
        command = cli.commands[words[1]]
        assert command.make_context(words[1], words[2:]).params["name"] == "main"
    name = manifest["metadata"]["name"]
    assert f"ray.io/cluster={name}," in README


def test_every_metric_of_the_readme_is_one_and_none_is_missing() -> None:
    from openclaw_ray.core.metrics import METRICS

    table = README[README.index("| metric | tags |") : README.index("A histogram keeps at most")]
    assert set(re.findall(r"`(openclaw_\w+)`", table)) == {metric.name for metric in METRICS}
