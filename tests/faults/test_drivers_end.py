"""However a driver ends, nothing of its runtime is alive two seconds later: no actor, no session, no tool's child."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from fault_agents import AGENTS, CONFIG
from fault_tier import HERE, Driver, Log, within

import openclaw_ray as oc
from openclaw_ray.core.errors import RuntimeClosed, RuntimeUnavailable
from openclaw_ray.testing.chaos import Victim, kill
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_at_rest, assert_gone

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(120, method="signal")]

WITHIN = 2.0
LEASE = 2  # ray.clientLeaseSeconds
PATIENCE = 4  # ray.registryTimeoutSeconds
ENDS = [("kill", -9), ("exception", 1), ("exit", 5), ("unclosed", 3), ("ctrl-c", -2), ("sigterm", 15), ("close", 0)]
RAYS_OWN = re.compile(r"/raylet/raylet|/gcs/gcs_server|/ray/_private/|/ray/dashboard/|/ray/autoscaler/|ray::\w*Agent")


def _ours(driver: Driver) -> list[str]:
    """What a driver has left alive, Ray's own processes excepted."""
    return [line for line in driver.mark.alive() if not RAYS_OWN.search(line)]


def _end(driver: Driver, way: str, code: int) -> float:
    """Have the driver end, if it does not by itself; gives the moment at which it had."""
    if way == "kill":
        driver.process.kill()
    elif way == "ctrl-c":
        driver.process.send_signal(signal.SIGINT)
    elif way == "sigterm":  # what `ray job stop` sends first
        driver.process.send_signal(signal.SIGTERM)
    assert driver.process.wait(timeout=30) == code
    return time.monotonic()


def _sessions(log: Log) -> list[psutil.Process]:
    """The session processes that have spoken, and all below them: a host's raylet started them, so they do not
    have the driver's mark."""
    tops = [psutil.Process(int(line.split()[2])) for line in log.lines()]
    return [each for top in tops for each in (top, *top.children(recursive=True))]


def _wait_for_the_end(processes: list[psutil.Process]) -> None:
    def ended() -> None:
        assert [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []

    eventually(ended, 20, every=0.01)


@pytest.mark.long
@pytest.mark.parametrize(("way", "code"), ENDS)
def test_an_end_on_a_hosts_ray(
    drivers: Callable[..., Driver], ray_here: str, tmp_path: Path, way: str, code: int
) -> None:
    log = Log(tmp_path / "log")
    driver = drivers(str(HERE / "any_driver.py"), way, log.path, RAY_ADDRESS=ray_here)
    name = driver.line().split()[1]
    sessions = _sessions(log)
    since = _end(driver, way, code)
    _wait_for_the_end(sessions)
    assert time.monotonic() - since < within(WITHIN)
    assert_gone(name, timeout=within(WITHIN))


@dataclass(frozen=True)
class KilledOwner:
    """What was seen when the owner of a runtime on a host's Ray was killed.

    Attributes:
        name: of the runtime. ``place``: its state dir, ``log`` what its sessions said.
        sessions: session processes and tools that were alive before.
        seconds: until none of them was.
        heard: what a client that waited for a result heard.
    """

    name: str
    place: Path
    log: Log
    sessions: list[psutil.Process]
    seconds: float
    heard: BaseException | None


@pytest.fixture(scope="module")
def killed(ray_here: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledOwner]:
    folder = tmp_path_factory.mktemp("killed")
    log = Log(folder / "log")
    place = folder / "state"
    owner = Driver(str(HERE / "any_driver.py"), "kill", log.path, str(place), RAY_ADDRESS=ray_here)
    try:
        name = owner.line().split()[1]

        def all_at_work() -> list[psutil.Process]:
            found = _sessions(log)
            assert len(found) == 2 * 4
            return found

        sessions = eventually(all_at_work, 20)
        with oc.Runtime.connect(name) as client, ThreadPoolExecutor() as threads:
            receipt = client.spawn(agent_id="polite", input=(log.path, "clients"))
            log.wait_for(3)
            result = threads.submit(client.result, receipt, timeout=20)
            owner.process.kill()
            since = time.monotonic()
            _wait_for_the_end(sessions)
            seconds = time.monotonic() - since
            heard = result.exception()
        yield KilledOwner(name, place, log, sessions, seconds, heard)
    finally:
        owner.end()


def test_nothing_of_a_killed_owner_on_a_hosts_ray_is_left(killed: KilledOwner) -> None:
    assert len(killed.sessions) == 2 * 4
    assert killed.seconds < within(WITHIN)
    assert_gone(killed.name, timeout=within(WITHIN))


def test_a_client_hears_that_its_runtime_has_ended(killed: KilledOwner) -> None:
    assert isinstance(killed.heard, RuntimeClosed)


def test_what_a_killed_owner_left_is_cancelled_at_the_next_start_and_never_run_again(
    killed: KilledOwner,
) -> None:
    before = killed.log.lines()
    with oc.Runtime.start(agents=AGENTS, config=CONFIG, state_dir=killed.place) as again:
        rows = again.runs()
        assert [(row["state"], row["error"]["cause"]) for row in rows] == [("cancelled", "client_gone")] * 3
        assert again.map("count", [(killed.log.path, "next", 0)])[0].ok
        assert_at_rest(again)
    assert killed.log.lines() == [*before, "next"]


@pytest.mark.long
@pytest.mark.parametrize(("way", "code"), ENDS)
def test_an_end_with_an_embedded_ray(
    drivers: Callable[..., Driver], tmp_path: Path, way: str, code: int
) -> None:
    driver = drivers(str(HERE / "any_driver.py"), way, str(tmp_path / "log"))
    assert driver.line().startswith("ready")
    _end(driver, way, code)
    _nothing_is_left(driver)


def _nothing_is_left(driver: Driver) -> None:
    since = time.monotonic()

    def of_ours() -> None:
        assert _ours(driver) == []

    def of_rays() -> None:
        assert driver.mark.alive() == []

    eventually(of_ours, 20, every=0.01)
    assert time.monotonic() - since < within(WITHIN)
    eventually(of_rays, 60, every=0.1)  # Ray's own processes go with the driver, too; its agents are late


@pytest.fixture(scope="module")
def config() -> dict[str, object]:
    return {"clientLeaseSeconds": LEASE, "registryTimeoutSeconds": PATIENCE}


def test_a_killed_client_has_its_root_stopped_after_its_lease(
    rt: oc.Runtime, ray_here: str, drivers: Callable[..., Driver], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    mine = rt.spawn(agent_id="polite", input=(str(tmp_path / "mine"), "mine"))
    client = drivers(str(HERE / "leased_client.py"), rt.name, str(log), RAY_ADDRESS=ray_here)
    root = client.line()
    other = drivers(str(HERE / "leased_client.py"), rt.name, str(tmp_path / "other"), RAY_ADDRESS=ray_here)
    others_root = other.line()
    assert len(rt.runs(root=root, state="running")) == 2
    client.process.kill()
    since = time.monotonic()
    eventually(lambda: not rt.runs(root=root, state=["queued", "running", "paused"]), 20, every=0.05)
    assert time.monotonic() - since < within(LEASE + 2)
    ends = {row["error"]["cause"] for row in rt.runs(root=root) if row["agentId"] == "polite"}
    assert ends == {"client_gone"}
    # nobody else noticed
    assert len(rt.runs(root=others_root, state="running")) == 2
    assert rt.runs(session=mine.session_key)[0]["state"] == "running"
    other.leave()
    eventually(lambda: not rt.runs(root=others_root, state=["queued", "running", "paused"]), 10)
    rt.stop(mine.session_key, timeout=10)


def test_a_client_that_is_only_slow_keeps_its_root(
    rt: oc.Runtime, ray_here: str, drivers: Callable[..., Driver], tmp_path: Path
) -> None:
    client = drivers(str(HERE / "leased_client.py"), rt.name, str(tmp_path / "log"), RAY_ADDRESS=ray_here)
    root = client.line()
    client.process.send_signal(signal.SIGSTOP)
    with pytest.raises(AssertionError):
        eventually(lambda: not rt.runs(root=root, state="running"), LEASE / 2, every=0.1)
    client.process.send_signal(signal.SIGCONT)
    with pytest.raises(AssertionError):
        eventually(lambda: not rt.runs(root=root, state="running"), LEASE, every=0.1)
    client.leave()
    eventually(lambda: not rt.runs(root=root, state="running"), 10)


def test_the_map_of_a_killed_client_is_taken_over_by_the_next_of_its_name_and_runs_nothing_twice(
    rt: oc.Runtime, ray_here: str, drivers: Callable[..., Driver], log: Log
) -> None:
    client = drivers(str(HERE / "map_driver.py"), rt.name, log.path, "taken", "30", "0.2", RAY_ADDRESS=ray_here)
    assert client.line() == "r0"
    items = [(log.path, i, 0.2) for i in range(30)]
    with pytest.raises(oc.MapInUse, match=f"'taken' is being worked on by process {client.process.pid}"):
        rt.map("count", items, map_id="taken")
    client.process.kill()
    results = rt.map("count", items, map_id="taken", width=3)
    assert [result.text for result in results] == [f"r{i}" for i in range(30)]
    assert any(result.reused for result in results)
    assert not all(result.reused for result in results)
    assert log.doubled() == {}, "what was running was waited for, and taken over"
    assert len(log.lines()) == 30


def test_a_driver_that_only_waits_hears_of_a_registry_that_hangs_and_may_ask_again(
    rt: oc.Runtime, tmp_path: Path
) -> None:
    log = Log(tmp_path / "log")
    receipt = rt.spawn(agent_id="polite", input=(log.path, "p"))
    log.wait_for(1)
    [registry] = kill(rt, Victim.REGISTRY, signal.SIGSTOP)
    since = time.monotonic()
    try:
        with pytest.raises(RuntimeUnavailable, match="registry"):
            rt.result(receipt, timeout=30)
        assert time.monotonic() - since < within(LEASE / 3 + PATIENCE + 2)
    finally:
        os.kill(registry, signal.SIGCONT)
    assert rt.stop(receipt.session_key, timeout=20).stopped == 1
    assert rt.result(receipt, timeout=10).status is oc.ResultStatus.CANCELLED


def test_the_command_line_killed_in_a_map_leaves_nothing_on_its_own_ray_either(
    drivers: Callable[..., Driver],
) -> None:
    driver = drivers("-m", "openclaw_ray.cli.main", "map", "--exec", "sleep 301; echo {}", "--shell", "-")
    assert driver.process.stdin is not None
    driver.process.stdin.write("\n".join(map(str, range(50))) + "\n")
    driver.process.stdin.close()
    eventually(lambda: [line for line in driver.mark.alive() if "sleep 301" in line], 60, every=0.1)
    _end(driver, "kill", -9)
    _nothing_is_left(driver)
