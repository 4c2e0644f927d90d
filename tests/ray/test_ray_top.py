"""``top`` on a real runtime: its processes and nodes are those that Ray and the machine know."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import ray

from openclaw_ray.cli.main import run
from openclaw_ray.runtime.starting import ACTOR_BYTES
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


FAN_OUT = 500


def _by_ray(name: str) -> dict[str, tuple[int, str]]:
    """Pid and node of each session process of a runtime, as Ray's own table of actors has them."""
    table = ray._private.state.actors()
    alive = [actor for actor in table.values() if actor["State"] == "ALIVE" and actor["Name"].startswith(f"{name}/")]
    return {each["Name"].removeprefix(f"{name}/"): (each["Pid"], each["Address"]["NodeID"]) for each in alive}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_fan_out_of_five_hundred_is_shown_as_ray_has_it(
    shared: oc.Runtime, cluster: str, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    import agents

    import openclaw_ray as oc

    def asked(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert run([*words, "--name", rt.name, "--json"]) == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    most = max(8, min(48, psutil.virtual_memory().available // ACTOR_BYTES - 8))
    with oc.Runtime.start(agents=[agents.hold], config={"ray": {"pool": {"max": most, "prewarm": most}}}) as rt:
        receipts = [rt.spawn(agent_id="hold", input=str(gate)) for _ in range(FAN_OUT)]
        gate.wait_for(most, 300)
        shown, told = asked("top", "--once"), asked("status")
        assert shown["runs"] == told["runs"] == {"running": most, "paused": 0, "queued": FAN_OUT - most}
        rows = {row["runId"]: row for row in shown["rows"]}
        assert set(rows) == {receipt.run_id for receipt in receipts}
        by_ray = _by_ray(rt.name)
        at_work = {row["runId"]: by_ray[row["actor"]] for row in rt.runs(state="running", limit=FAN_OUT)}
        assert len(set(at_work.values())) == most
        running = {run_id: row for run_id, row in rows.items() if row["state"] == "running"}
        queued = [row for row in rows.values() if row["state"] == "queued"]
        assert {run_id: (row["pid"], row["node"]) for run_id, row in running.items()} == at_work
        assert sorted(row["place"] for row in queued) == list(range(1, FAN_OUT - most + 1))
        assert all("pid" not in row for row in queued)
        assert told["stats"]["actors"] == {"bound": most}
        gate.open()
        for receipt in receipts:
            rt.result(receipt, timeout=300).raise_for_status()
        assert asked("top", "--once")["rows"] == []
