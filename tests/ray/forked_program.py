"""Run by test_ray_forking: an embedded Ray in a process of its own; with ``kill``, its parent of workers is killed.

Prints one JSON object: for each map, how each of its processes was started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import ray

import openclaw_ray as oc
from openclaw_ray.actors.raylets import own_raylet, raylet_of
from openclaw_ray.testing.eventually import eventually


@oc.agent
def where(turn: oc.Turn) -> tuple[int, str, bool]:
    """This process, what its parent is called, and whether it knows its raylet."""
    place, count = turn.input
    Path(place, f"in-{os.getpid()}").touch()
    eventually(lambda: len(list(Path(place).glob("in-*"))) >= count, 60)  # all at once: each has a process of its own
    name = Path(f"/proc/{os.getppid()}/comm").read_text().strip().partition(":")[0]
    return os.getpid(), name, raylet_of(os.getpid()) in (own_raylet(), 0)


def started(rt: oc.Runtime, place: Path, count: int) -> list[tuple[int, str, bool]]:
    place.mkdir()
    return [result.raise_for_status().value for result in rt.map("where", [(str(place), count)] * count, width=count)]


def parent_here() -> int:
    """The parent of this program's workers."""
    node = ray._private.worker.global_worker.node
    assert node is not None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            forks = (process / "comm").read_text().startswith("forks:")
            if forks and node.session_name in (process / "cmdline").read_text():
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("there is no parent of workers")


if __name__ == "__main__":
    place, kill = Path(sys.argv[1]), "kill" in sys.argv
    with oc.Runtime.start(agents=[where], config={"ray": {"pool": {"max": 8, "prewarm": 1}}}) as rt:
        said = {"first": started(rt, place / "first", 1)}
        if kill:
            parent = parent_here()
            os.kill(parent, signal.SIGKILL)
            eventually(lambda: not Path(f"/proc/{parent}").exists(), 10)
            said["more"] = started(rt, place / "more", 2)
    print(json.dumps(said))
