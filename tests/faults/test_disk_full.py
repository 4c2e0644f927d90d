"""A full disk under the journal: refused by name in bounded time, nothing lost or done twice, and on it goes."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_agents import AGENTS, CONFIG
from fault_tier import Log, at_rest, within

import openclaw_ray as oc
from openclaw_ray.core.errors import RuntimeUnavailable, StateDirError
from openclaw_ray.testing.chaos import Victim, kill
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]

PATIENCE = 5  # ray.registryTimeoutSeconds


class Disk:
    """A small file system of its own that can be filled to the last page."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (1 << 20, 1 << 16, 1 << 12, 1):
                try:
                    while True:
                        ballast.write(bytes(size))
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    place = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield Disk(place)
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="module")
def shared(ray_here: str, disk: Disk) -> Iterator[oc.Runtime]:
    ours = {"registryTimeoutSeconds": PATIENCE, "clientLeaseSeconds": 6}
    place = disk.path / "state"
    with oc.Runtime.start(agents=AGENTS, config={**CONFIG, "ray": ours}, state_dir=place) as runtime:
        yield runtime


@pytest.fixture
def rt(shared: oc.Runtime, disk: Disk) -> Iterator[oc.Runtime]:
    yield shared
    disk.free()
    at_rest(shared)


@pytest.mark.long
def test_a_map_is_refused_by_the_journals_name_and_the_next_one_works(
    rt: oc.Runtime, disk: Disk, log: Log
) -> None:
    with ThreadPoolExecutor() as threads:
        mapping = threads.submit(rt.map, "count", [(log.path, i, 0.01) for i in range(400)], width=4)
        log.wait_for(40)
        disk.fill()
        since = time.monotonic()
        with pytest.raises(RuntimeUnavailable, match=r"journal refuses: .*registry\.sqlite"):
            mapping.result(timeout=60)
        assert time.monotonic() - since < within(PATIENCE + 5)
    assert log.doubled() == {}
    disk.free()
    results = rt.map("count", [(log.path, f"after {i}", 0) for i in range(40)], width=4)
    assert all(result.ok for result in results)
    # what the refused map had admitted is stopped or has ended; nothing of it was done twice
    eventually(lambda: not rt.runs(state=["queued", "running", "paused"]), 20)
    assert log.doubled() == {}


@pytest.mark.long
def test_a_short_shortage_is_not_noticed(rt: oc.Runtime, disk: Disk, log: Log) -> None:
    items = 300
    with ThreadPoolExecutor() as threads:
        mapping = threads.submit(rt.map, "count", [(log.path, i, 0.01) for i in range(items)], width=4)
        log.wait_for(30)
        disk.fill()
        threading.Event().wait(PATIENCE / 2)
        disk.free()
        results = mapping.result(timeout=60)
    assert [result.text for result in results] == [f"r{i}" for i in range(items)]
    assert log.doubled() == {}
    assert len(log.lines()) == items


@pytest.mark.long
def test_a_death_while_the_disk_is_full_is_told_when_there_is_room(
    rt: oc.Runtime, disk: Disk, log: Log
) -> None:
    receipts = [rt.spawn(agent_id="polite", input=(log.path, i)) for i in range(2)]
    pids = [int(line.split()[2]) for line in log.wait_for(2)]
    disk.fill()
    os.kill(pids[0], 9)
    threading.Event().wait(1)
    assert eventually(lambda: kill(rt, Victim.REGISTRY), 20)
    threading.Event().wait(1)
    disk.free()

    def states() -> list[str]:
        try:
            return sorted(row["state"] for row in rt.runs(agent="polite"))
        except RuntimeUnavailable:  # it is being started again, and this runtime has little patience
            return []

    eventually(lambda: states() == ["failed", "running"], 30)
    assert sum(rt.stop(receipt.session_key, timeout=20).stopped for receipt in receipts) == 1


def test_a_start_on_a_full_disk_is_refused_at_once(ray_here: str, disk: Disk) -> None:
    disk.fill()
    since = time.monotonic()
    with pytest.raises(StateDirError):
        oc.Runtime.start(agents=AGENTS, config=CONFIG, state_dir=disk.path / "another")
    assert time.monotonic() - since < within(10)
    disk.free()
