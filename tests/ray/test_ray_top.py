"""``top`` on a real runtime: its processes and nodes are those that Ray and the machine know."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import ray

from openclaw_ray.cli.main import run
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from support.runtimes import Gate

    import openclaw_ray as oc
    from openclaw_ray.testing.leaks import ProcessMark

pytestmark = pytest.mark.ray


@pytest.fixture
def cluster(rt: oc.Runtime, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of the shared Ray, which is ``RAY_ADDRESS`` for commands."""
    address = str(ray.get_runtime_context().gcs_address)
    monkeypatch.setenv("RAY_ADDRESS", address)
    return address


def test_what_runs_is_shown_with_its_process_and_node(
    rt: oc.Runtime, cluster: str, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    receipts = [rt.spawn("hold on", "hold", input=str(gate), label=f"held {number}") for number in range(2)]
    gate.wait_for(2)
    assert run(["top", "--name", rt.name, "--once", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    rows = {row["runId"]: row for row in shown["rows"] if row["agentId"] == "hold"}
    assert set(rows) == {receipt.run_id for receipt in receipts}
    nodes = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
    for receipt in receipts:
        row, known = rows[receipt.run_id], rt.run(receipt.run_id)
        assert known is not None
        assert (row["pid"], row["node"], row["state"]) == (known["pid"], known["node"], "running")
        assert row["node"] in nodes
        assert "ray::" in " ".join(psutil.Process(row["pid"]).cmdline())
    assert len({row["pid"] for row in rows.values()}) == 2
    gate.open()
    for receipt in receipts:
        rt.result(receipt, timeout=30)
    assert run(["top", "--name", rt.name, "--once", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert not {row["runId"] for row in shown["rows"]} & set(rows)


@pytest.mark.long
def test_ctrl_c_ends_it_cleanly(rt: oc.Runtime, cluster: str, tmp_path: Path, mark: ProcessMark) -> None:
    out = tmp_path / "pictures"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "openclaw_ray.cli.main", "top", "--name", rt.name, "--json", "--every", "0.1"],
            env=mark.environment() | {"PYTHONPATH": str(Path(__file__).parents[2]), "RAY_ADDRESS": cluster},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        eventually(lambda: len(out.read_text().splitlines()) >= 3, 60, what="three pictures")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    pictures = [json.loads(line) for line in out.read_text().splitlines()]
    assert ["startedPerSecond" in picture for picture in pictures[:3]] == [False, True, True]
