"""How the end of a process that is not one's own child is seen: by its pidfd, or by what it has left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from openclaw_ray.actors.exit_watch import ExitWatch, exit_status, kernel_tells, left_behind
from openclaw_ray.actors.neighbours import Neighbours
from openclaw_ray.actors.raylets import is_raylet, name_of_parent, raylet_of
from openclaw_ray.actors.session_log import output_path
from openclaw_ray.core.death import Exit

pytestmark = [pytest.mark.faults, pytest.mark.timeout(30)]

PARENT = """
import subprocess, sys
open("/proc/self/comm", "w").write(sys.argv[1])
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
sys.stdin.read()
child.kill()
child.wait()
"""
LEAVE = """
import os, sys
from openclaw_ray.actors.exit_watch import note_exits
note_exits(sys.argv[1], "session-1")
child = os.fork()
if not child:
    os._exit(3)
os.waitpid(child, 0)
if sys.argv[2] == "leave":
    os._exit(260)
"""
REPORT = """what the program said
Fatal Python error: {word}

Thread 0x00007f (most recent call first):
  File "/x/openclaw_ray/actors/session_actor.py", line 90 in _turns
"""


@pytest.mark.skipif(not kernel_tells(), reason="needs Linux 6.15")
@pytest.mark.parametrize(("end", "seen"), [("import os; os._exit(7)", Exit(7)), ("input()", Exit(signal=9))])
def test_a_pidfd_tells_the_exit(end: str, seen: Exit) -> None:
    with subprocess.Popen([sys.executable, "-c", end], stdin=subprocess.PIPE) as process:
        pidfd = os.pidfd_open(process.pid)
        assert seen.code is not None or exit_status(pidfd, 0.0) is None
        if seen.signal:
            process.send_signal(seen.signal)
        process.wait()
        assert exit_status(pidfd, 1.0) == seen
        os.close(pidfd)


@pytest.mark.parametrize(("way", "seen"), [("leave", Exit(code=4)), ("end", None)])
def test_an_exit_is_written_down_by_the_process_and_not_by_its_forks(
    tmp_path: Path, way: str, seen: Exit | None
) -> None:
    (tmp_path / "logs").mkdir()
    subprocess.run([sys.executable, "-c", LEAVE, str(tmp_path), way], check=False)
    assert left_behind(str(tmp_path), "session-1") == seen
    watch = ExitWatch(str(tmp_path))
    assert watch.ended("session-1", wait=True) == seen
    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (REPORT.format(word="Segmentation fault"), Exit(signal=signal.SIGSEGV)),
        (REPORT.format(word="Aborted"), Exit(signal=signal.SIGABRT)),
        (REPORT.format(word="a word of tomorrow"), None),
        (REPORT.format(word="Bus error").replace("session_actor.py", "tool.py"), None),
        ("nothing of note", None),
        ("", None),
    ],
)
def test_a_crash_is_read_from_the_processs_own_report(tmp_path: Path, text: str, seen: Exit | None) -> None:
    output = output_path(tmp_path, "session-1")
    output.parent.mkdir()
    output.write_text(text)
    assert left_behind(str(tmp_path), "session-1") == seen


@contextmanager
def worker_of(name: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process of that name, which stands for a raylet or a parent of workers, and the id of its child."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        if process.poll() is None:
            process.communicate("")


def test_a_worker_belongs_to_the_raylet_that_started_it_or_whose_parent_of_workers_did() -> None:
    with worker_of("raylet") as (raylet, worker):
        assert raylet_of(worker) == raylet.pid
        assert is_raylet(raylet.pid)
        assert not is_raylet(worker)
    assert raylet_of(worker) == 0
    with worker_of(name_of_parent(4_000_000).decode()) as (parent, worker):
        assert raylet_of(worker) == 4_000_000
        assert not is_raylet(parent.pid)
    with worker_of("python") as (_, tool):
        assert raylet_of(tool) == 0


def test_a_process_of_another_parent_is_not_watched(tmp_path: Path) -> None:
    watch = ExitWatch(str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        watch.watch("session-1", process.pid)  # a worker would belong to this process's own raylet
        process.kill()
    assert watch.ended("session-1", wait=True) is None
    assert watch.starved() == 0


def test_a_client_of_another_host_is_not_taken_for_a_neighbour_of_its_number() -> None:
    here, near = socket.gethostname(), Neighbours()
    with worker_of("raylet") as (raylet, sibling), mock.patch.dict(os.environ, RAY_RAYLET_PID=str(raylet.pid)):
        clients = [("near", here, sibling), ("far", "elsewhere", sibling)]
        for client in clients:
            near.met(*client)
        assert near.ended(clients) == set()
        raylet.communicate("")  # it ends and reaps its worker before
        assert near.ended(clients) == {"near"}
        assert near.ended(clients) == set()
