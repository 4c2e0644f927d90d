"""A node is cut off from the others for 20 seconds, and healed: no run twice, none stuck (PROTOCOL.md 1.6, 3.4).

Three `ray start` in network namespaces with addresses of their own, so that what is cut is a wire, and both sides live.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_tier import HERE, Driver
from namespaces import Host, Network, why_not

from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(400, method="signal")]

CUT, ITEMS, WIDTH = 20.0, 180, 6
PATIENT: dict[str, str] = {}
"""Ray's own health checks: 20 seconds are not enough to give a node up."""
QUICK = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "6",
}
"""Ones by which it is given up after some five seconds, and hears of that when the wire is back."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for Ray, whose sockets want a short path; it goes after the hosts."""
    with tempfile.TemporaryDirectory(prefix="oc-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def network(place: Path) -> Iterator[Network]:
    if reason := why_not():
        pytest.skip(reason)
    network = Network()
    yield network
    network.end()


def ray_start(network: Network, folder: Path, more: dict[str, str]) -> list[Host]:
    """A head and two more."""
    ray = str(Path(sys.executable).with_name("ray"))
    env = {**os.environ, **more}
    env.pop("RAY_ADDRESS", None)
    hosts = [network.host() for _ in range(3)]
    head = hosts[0].address
    common = ["--num-cpus=2", "--object-store-memory=100000000", "--disable-usage-stats"]
    place = [f"--temp-dir={folder}", "--port=6379", "--include-dashboard=false"]
    hosts[0].run(ray, "start", "--head", f"--node-ip-address={head}", *place, *common, env=env)
    for host in hosts[1:]:
        host.run(ray, "start", f"--address={head}:6379", f"--node-ip-address={host.address}", *common, env=env)
    return hosts


def go_through(network: Network, folder: Path, checks: dict[str, str]) -> tuple[dict[str, Any], Host]:
    """What a driver on the head sees of a cut of the last node."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    hosts = ray_start(network, folder, {**checks, **token})
    head, last = hosts[0], hosts[-1]
    words = (f"{head.address}:6379", head.address, str(folder / "log"), str(ITEMS), str(WIDTH))
    driver = Driver(str(HERE / "partition_driver.py"), *words, before=head.command(), **token)
    try:
        while driver.line() != "under way":
            pass
        last.cut()
        time.sleep(CUT)
        last.heal()
        while not (line := driver.line()).startswith("{"):
            pass
        driver.leave()
    finally:
        driver.end()
    seen: dict[str, Any] = json.loads(line)
    print(json.dumps(seen, indent=1))
    return seen, last


def check(seen: dict[str, Any], last: Host) -> None:
    """All items have come to an end, none has begun twice, none is stuck, and the cluster works as before."""
    assert seen["indexes"] == list(range(ITEMS))
    assert seen["ok"] == ITEMS - len(seen["errors"])
    assert seen["twice"] == {}
    assert seen["stuck"] == []
    assert seen["nodes before"][seen["nodes"][last.address][0]] >= 1
    assert seen["after"] == {"ok": 3 * WIDTH}


def test_a_node_that_is_not_given_up_goes_on_after_the_cut(network: Network, place: Path) -> None:
    seen, last = go_through(network, place, PATIENT)
    check(seen, last)
    assert seen["nodes"][last.address][1], "it was never given up"
    assert seen["errors"] == []


def test_what_ran_on_a_node_that_was_given_up_says_so_and_its_processes_end(network: Network, place: Path) -> None:
    seen, last = go_through(network, place, QUICK)
    check(seen, last)
    node, alive = seen["nodes"][last.address]
    assert not alive
    assert 1 <= len(seen["errors"]) <= WIDTH
    for error in seen["errors"]:
        assert (error["cause"], error["death"]) == ("process_died", {"kind": "node", "node": node})
    eventually(lambda: not [title for title in last.titles() if "SessionActor" in title], 30, what="it has ended all")
