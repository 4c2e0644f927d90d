"""What dies comes back, or takes along what it should: from SIGKILL of the registry to the next answered call, from
SIGKILL of a driver to the end of its last session process.

The call that is answered is a spawn with its result; it is made right after the blow, and tries by itself until the
registry is back. The driver is a process of its own on the same Ray.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.bench.figures import Better, of_rounds
from openclaw_ray.bench.result import Measured, Skipped
from openclaw_ray.bench.rig import noop_agent, wait_until

if TYPE_CHECKING:
    from openclaw_ray.bench.rig import Rig
    from openclaw_ray.runtime.runtime import Runtime

__all__ = ["FULL", "QUICK", "measure"]

FULL = {"rounds": 10, "drivers": 5, "records": 2_000}
QUICK = {"rounds": 3, "drivers": 2, "records": 500}
_GONE_WITHIN = 30.0


def measure(rig: Rig, config: Mapping[str, Any]) -> Measured:
    """All figures of one run."""
    found = Measured()
    with rig.runtime([noop_agent()], ray={"pool": {"prewarm": 4, "max": 8}}) as rt:
        rig.settled(rt, 4)
        rt.map("noop", ["x"] * int(config["records"]), width=4)
        back = [_registry(rt) for _ in range(int(config["rounds"]))]
        rig.look(rt)
    found.figures["registry_back"] = of_rounds(back, "s", Better.LESS)
    found.budget["registry_back_s"] = found.figures["registry_back"].median
    rig.say(f"  registry back after {found.figures['registry_back'].median:.2f} s")
    gone = [_driver(rig.address) for _ in range(int(config["drivers"]))]
    found.figures["driver_killed"] = of_rounds(gone, "s", Better.LESS)
    found.budget["driver_killed_s"] = found.figures["driver_killed"].median
    rig.say(f"  session processes gone after {found.figures['driver_killed'].median:.2f} s")
    return found


def _registry(rt: Runtime) -> float:
    info = rt._query("info")
    began = time.perf_counter()
    try:
        os.kill(info["pid"], signal.SIGKILL)
    except ProcessLookupError:
        raise Skipped("the registry is on another host: it cannot be killed from here") from None
    rt.result(rt.spawn(task="x", agent_id="noop")).raise_for_status()
    lasted = time.perf_counter() - began
    assert rt.stats().registry_incarnation > info["incarnation"]
    return lasted


def _driver(address: str) -> float:
    import psutil

    program = subprocess.Popen(
        [sys.executable, "-m", "openclaw_ray.bench.killed_driver"],
        env={**os.environ, "RAY_ADDRESS": address},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stdout is not None
        line = program.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver that was to be killed ended by itself, with {program.wait(30)}")
        processes = []
        for pid in json.loads(line):
            with contextlib.suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(pid))
        if not processes:
            raise Skipped("no session process of the driver is on this host")
        began = time.perf_counter()
        program.kill()
        if not wait_until(lambda: not any(_alive(each) for each in processes), _GONE_WITHIN, every=0.002):
            raise RuntimeError(f"session processes live on {_GONE_WITHIN:g} s after their driver was killed")
        return time.perf_counter() - began
    finally:
        program.kill()
        program.wait(30)
        if program.stdout is not None:
            program.stdout.close()


def _alive(process: Any) -> bool:
    import psutil

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
