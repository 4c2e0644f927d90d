"""Workers of an embedded Ray are forks, each a worker like any other; without its parent Ray starts them itself."""

from __future__ import annotations

import marshal
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.actors.raylets import raylet_of
from openclaw_ray.forking import SWITCH, launch
from openclaw_ray.testing.eventually import eventually

HERE = Path(__file__).parent
FORKED = os.environ.get(SWITCH) != "0"

pytestmark = [pytest.mark.ray, pytest.mark.skipif(not FORKED, reason="switched off")]


@ray.remote(num_cpus=0)
class Worker:
    def facts(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "parent": Path(f"/proc/{os.getppid()}/comm").read_text().strip(),
            "raylet": int(os.environ["RAY_RAYLET_PID"]),
            "own": Path("/proc/self/comm").read_text().strip(),
            "leads": os.getpgid(0) == os.getpid(),
            "niceness": os.getpriority(os.PRIO_PROCESS, 0),
            "oom": Path("/proc/self/oom_score_adj").read_text().strip(),
            "folder": os.getcwd(),
            "path": sys.path[0],
            "variable": os.environ.get("OF_ITS_OWN", ""),
            "chance": (random.random(), uuid.uuid4().hex),
            "object": ray.put(1).hex(),
        }


@pytest.fixture
def facts(rt: oc.Runtime) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """What so many workers, started with these options, say of themselves."""
    workers: list[Any] = []

    def ask(count: int, **options: Any) -> list[dict[str, Any]]:
        actor: Any = Worker.options(**options) if options else Worker
        new = [actor.remote() for _ in range(count)]
        workers.extend(new)
        return ray.get([worker.facts.remote() for worker in new])

    yield ask
    for worker in workers:
        ray.kill(worker)


def test_a_fork_is_a_worker_like_any_other(facts: Callable[..., list[dict[str, Any]]]) -> None:
    forks = facts(2)
    [own] = facts(1, runtime_env={"env_vars": {"OF_ITS_OWN": "x"}})
    for fork in forks:
        assert fork["parent"] == f"forks:{fork['raylet']}"
        assert raylet_of(fork["pid"]) == fork["raylet"] == own["raylet"]
    assert (own["parent"], own["variable"]) == ("raylet", "x")
    assert raylet_of(own["pid"]) == own["raylet"]
    same = ("own", "leads", "niceness", "oom", "folder", "path")
    assert [[fork[name] for name in same] for fork in forks] == [[own[name] for name in same]] * 2
    assert [fork["variable"] for fork in forks] == ["", ""]
    for name in ("chance", "object"):
        assert forks[0][name] != forks[1][name]
    for one, other in zip(forks[0]["chance"], forks[1]["chance"], strict=True):
        assert one != other


def test_a_worker_of_before_has_ended_when_its_process_has(facts: Callable[..., list[dict[str, Any]]]) -> None:
    [fact] = facts(1)
    os.kill(fact["pid"], signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{fact['pid']}").exists(), 10, what="reaped by its parent")


def test_without_their_parent_sessions_go_on_and_new_ones_start_by_themselves(tmp_path: Path) -> None:
    said = run_program(HERE / "forked_program.py", str(tmp_path), "kill").answer()
    first, more = ({pid: (name, knows) for pid, name, knows in said[part]} for part in ("first", "more"))
    assert set(first.values()) == {("forks", True)}
    assert set(first) < set(more)
    assert [more[pid] for pid in more if pid not in first] == [("raylet", True)]


@pytest.mark.long
def test_it_can_be_switched_off(tmp_path: Path) -> None:
    said = run_program(HERE / "forked_program.py", str(tmp_path), env={SWITCH: "0"}).answer()
    assert {(name, knows) for _, name, knows in said["first"]} == {("raylet", True)}


class Parent:
    """A parent of workers by itself, with a process that stands for the raylet."""

    def __init__(self, place: Path) -> None:
        self.path = str(place / "forks")
        self.errors = place / "errors"
        self.raylet = subprocess.Popen(["sleep", "600"])
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen()
        self.environment = {**os.environ, "RAY_RAYLET_PID": str(self.raylet.pid)}
        program = str(Path(launch.__file__).with_name("parent.py"))
        self.process = subprocess.Popen(
            [sys.executable, program, str(listener.fileno())], env=self.environment, pass_fds=[listener.fileno()]
        )
        listener.close()

    def ready(self) -> socket.socket:
        """A launcher's connection, when the parent has given its word."""
        wire = socket.socket(socket.AF_UNIX)
        wire.settimeout(60)
        wire.connect(self.path)
        assert wire.recv(1) == b"r"
        return wire

    def send(self, wire: socket.socket, *, all_of_it: bool = True, **changes: str) -> None:
        """What a launcher sends: it is no worker's arguments, which the fork will say on its standard error."""
        body = marshal.dumps(
            {
                "argv": ["--no-worker"],
                "environment": {**self.environment, **changes},
                "folder": "/",
                "niceness": os.getpriority(os.PRIO_PROCESS, 0),
                "oom": "0",
                "session": False,
                "group": True,
            }
        )
        with self.errors.open("w") as errors:
            socket.send_fds(wire, [struct.pack("!I", len(body))], [errors.fileno()] * 3)
        wire.sendall(body if all_of_it else body[:-1])

    def end(self) -> None:
        for process in (self.raylet, self.process):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    parent = Parent(tmp_path_factory.mktemp("parent"))
    yield parent
    parent.end()


def test_what_a_launcher_has_sent_is_what_the_fork_is(parent: Parent) -> None:
    with parent.ready() as wire:
        parent.send(wire)
        assert wire.recv(1) == b"f"
    eventually(lambda: "arguments are required" in parent.errors.read_text(), 30)


@pytest.mark.parametrize("variable", ["RAY_LOG_TO_STDERR", "PYTHONPATH", "ANY"])
def test_with_another_environment_the_launcher_goes_on_itself(parent: Parent, variable: str) -> None:
    with parent.ready() as wire:
        parent.send(wire, **{variable: "other"})
        assert wire.recv(1) == b""
    assert parent.errors.read_text() == ""


def test_a_job_of_its_own_is_no_other_environment(parent: Parent) -> None:
    with parent.ready() as wire:
        parent.send(wire, RAY_JOB_ID="01000000")
        assert wire.recv(1) == b"f"


def test_a_launcher_that_ends_too_soon_holds_nobody_up_and_leaves_no_fork(parent: Parent) -> None:
    with parent.ready() as wire:
        parent.send(wire, all_of_it=False)
    with parent.ready() as wire:
        wire.sendall(b"\0")
    with parent.ready() as wire:
        parent.send(wire)
        assert wire.recv(1) == b"f"
    eventually(lambda: "arguments are required" in parent.errors.read_text(), 30)
    assert parent.errors.read_text().count("arguments are required") == 1


def test_it_ends_with_its_raylet(tmp_path: Path) -> None:
    parent = Parent(tmp_path)
    try:
        with parent.ready():
            parent.raylet.kill()
            parent.raylet.wait()
        parent.process.wait(10)
    finally:
        parent.end()


def became_rays_own(place: Path) -> bool:
    """Whether a launcher goes on as Ray's worker program, which then misses its arguments."""
    program = [sys.executable, str(launch.__file__), f"--raylet-name={place}/raylet"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    return done.returncode == 2 and "arguments are required" in done.stderr


@pytest.mark.parametrize("word", [b"", b"n"])
def test_a_launcher_that_hears_no_word_goes_on_itself(tmp_path: Path, word: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "forks"))
        listener.listen()

        def answer() -> None:
            with listener.accept()[0] as wire:
                wire.sendall(word)

        answering = threading.Thread(target=answer)
        answering.start()
        assert became_rays_own(tmp_path)
        answering.join()


def test_a_launcher_whose_parent_is_gone_goes_on_itself(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "forks"))
    assert became_rays_own(tmp_path)


def test_a_launcher_that_cannot_have_a_parent_goes_on_itself(tmp_path: Path) -> None:
    assert became_rays_own(tmp_path / "missing")
