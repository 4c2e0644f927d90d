"""A runtime that lives on its own: ``up``, ``status``, ``down``, as commands and from programs."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import ray
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.actors.names import runtimes_alive
from openclaw_ray.cli.main import run
from openclaw_ray.core.errors import RayUnreachable, RuntimeInUse, RuntimeNotFound
from openclaw_ray.runtime import opening
from openclaw_ray.store.statelock import owner_of
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_gone

if TYPE_CHECKING:
    from support.runtimes import Gate

pytestmark = pytest.mark.ray

APP = """
import pathlib, time
import openclaw_ray as oc

@oc.agent
def upper(turn: oc.SyncTurn) -> str:
    return turn.text.upper()

@oc.agent(resumable=True)
def main(turn: oc.SyncTurn) -> str:
    if turn.kind == "resume":
        return "resumed"
    place = pathlib.Path(turn.text)
    (place / "in-main").touch()
    while not (place / "open").exists():
        turn.check()
        time.sleep(0.01)
    return "went through"
"""
CONFIG = '{ray: {pool: {max: 8, prewarm: 1}, stopGraceSeconds: 1}}'


SMALL: dict[str, Any] = {"ray": {"pool": {"max": 8, "prewarm": 1}, "stopGraceSeconds": 1}}


class Cluster:
    """Commands in this process, which is in the shared Ray, with a state dir of its own."""

    def __init__(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place = place
        self.capsys = capsys
        (place / "app.py").write_text(APP)
        (place / "config.json5").write_text(CONFIG)

    def command(self, *words: str) -> tuple[int, str, str]:
        """``openclaw-ray …``: exit status, output, errors."""
        self.capsys.readouterr()
        code = run(words)
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def json(self, *words: str) -> dict[str, Any]:
        """What a command that goes well prints."""
        code, out, errors = self.command(*words, "--json")
        assert code == 0, errors
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        return answer

    def up(self, name: str, *more: str) -> dict[str, Any]:
        """A service of this name is up; the row that was printed."""
        config = str(self.place / "config.json5")
        return self.json("up", "--name", name, "--config", config, *more)

    @property
    def app(self) -> str:
        """The app file."""
        return str(self.place / "app.py")


@pytest.fixture
def cluster(
    shared: oc.Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cluster]:
    """The shared Ray, with a folder of its own for state."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield Cluster(tmp_path, capsys)
    sys.modules.pop("app", None)
    for name in set(runtimes_alive()) - {shared.name}:
        oc.Runtime.down(name, force=True)


def test_it_outlives_its_starter_and_its_clients_and_is_gone_after_down(cluster: Cluster, gate: Gate) -> None:
    row = cluster.up("svc", "--app", cluster.app)
    assert (row["name"], row["agents"]) == ("svc", ["main", "upper"])
    client = f"""
        import os, signal, openclaw_ray as oc
        rt = oc.Runtime.connect("svc", on_client_lost="keep")
        assert rt.map("upper", ["a", "b"])[1].text == "B"
        rt.send("main", {str(gate)!r}, timeout_seconds=0)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    address = str(ray.get_runtime_context().gcs_address)
    env = {"OPENCLAW_STATE_DIR": str(cluster.place), "RAY_ADDRESS": address}
    assert run_program(client, env=env).code == -signal.SIGKILL  # type: ignore[arg-type]
    gate.wait_for(1)

    assert cluster.up("svc", "--app", cluster.app)["agents"] == row["agents"]
    listed = cluster.json("status", "--name", "svc")
    assert (listed["lifetime"], listed["runs"]["running"]) == ("service", 1)
    with oc.Runtime.connect("svc") as rt:
        theirs = [entry["pid"] for entry in rt.runs(state="running")]

    report = cluster.json("down", "--name", "svc")
    assert (report["stopped"], report["unended"]) == (1, 0)
    assert "svc" not in runtimes_alive()
    assert_gone("svc")
    eventually(lambda: owner_of(Path(row["stateDir"])) is None, 10, what="its state dir is free")
    for pid in theirs:
        eventually(lambda pid=pid: not Path(f"/proc/{pid}").exists(), 5, what="its session process is gone")
    assert cluster.command("down", "--name", "svc")[0] == 2


@pytest.mark.long
def test_what_is_kept_goes_on_at_the_next_up(cluster: Cluster, gate: Gate) -> None:
    cluster.up("kept", "--app", cluster.app)
    with oc.Runtime.connect("kept", on_client_lost="keep") as rt:
        rt.send("main", str(gate), timeout_seconds=0)
        gate.wait_for(1)
        assert cluster.json("down", "--name", "kept", "--keep")["unended"] == 1
    row = cluster.up("kept", "--app", cluster.app)
    assert row["recovered"].get("resumed") == 1
    with oc.Runtime.connect("kept") as rt:
        eventually(lambda: [run["state"] for run in rt.runs(agent="main")] == ["succeeded"], 20)
        assert rt.history("agent:main:main")[-1]["text"] == "resumed"
    assert oc.Runtime.down("kept").stopped == 0
    assert_gone("kept")


def test_one_that_a_process_owns_is_not_taken_down_nor_made_a_service(cluster: Cluster) -> None:
    with oc.Runtime.start(config=SMALL, name="owned") as rt:
        with pytest.raises(RuntimeInUse):
            oc.Runtime.down("owned")
        code, _, errors = cluster.command("up", "--name", "owned")
        assert code == 2
        assert "it is no service" in errors
        assert rt.stats().pool_max == 8
    with pytest.raises(RuntimeNotFound):
        oc.Runtime.down("owned")


def test_a_service_needs_a_name() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        oc.Runtime.start(service=True)


def test_without_a_ray_up_says_what_to_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(**_: object) -> None:
        raise RayUnreachable("auto", "none runs here")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(opening, "attach", nowhere)
    assert run(["up", "--name", "alone"]) == 2
    assert "`ray start --head` first" in capsys.readouterr().err
