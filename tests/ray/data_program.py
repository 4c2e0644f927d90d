"""A Ray Data job that has an agent tree look at each batch.

``data_program.py rows PLACE ROWS BATCH``: one of the job's actors is killed in the middle; prints what was seen.
``data_program.py endless PLACE``: its sessions leave signs at the gate PLACE, and wait there.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
import ray.data

import openclaw_ray as oc

CONFIG = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}, "ray": {"pool": {"max": 12}}}
PARTS = 5
POOL = ray.data.ActorPoolStrategy(size=2)


@oc.agent
def lead(turn: oc.SyncTurn) -> Any:
    """The tree of one batch: a session for each part of it."""
    batch = turn.input
    parts = turn.map("leaf", np.array_split(batch["id"], PARTS))
    flags = batch["vector"].flags
    return np.concatenate([part.raise_for_status().value for part in parts]), [flags.writeable, not flags.owndata]


@oc.agent(spawns=False)
def leaf(turn: oc.SyncTurn) -> Any:
    """One part of a batch."""
    return turn.input**2


@oc.agent(spawns=False)
def waits(turn: oc.SyncTurn) -> None:
    """Until it is stopped."""
    with open(Path(turn.text) / "pids", "a") as log:
        log.write(f"{os.getpid()}\n")
    (Path(turn.text) / f"in-{turn.run_id}").touch()
    while True:
        turn.check()
        time.sleep(0.01)


class Scores:
    """Asks the agents about a batch."""

    def __init__(self, runtime: str, place: str) -> None:
        self.rt = oc.Runtime.connect(runtime)
        self.place = place

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        with open(Path(self.place) / "actors", "a") as log:
            log.write(f"{os.getpid()}\n")
        [result] = self.rt.map("lead", [batch], map_id=f"from-{batch['id'][0]}")
        found, arrays = result.raise_for_status().value
        return {
            "id": batch["id"],
            "square": found,
            "writeable": np.full(len(found), arrays[0]),
            "shared": np.full(len(found), arrays[1]),
        }


class Waits(Scores):
    """Asks agents that give no answer."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.rt.map("waits", [self.place] * 2, width=2)
        return batch


class Memory:
    """What the job's processes have in memory, twice a second."""

    def __init__(self, rt: oc.Runtime, place: str) -> None:
        self.seen: dict[str, list[int]] = {}
        self.place = Path(place)
        self.fixed = {"driver": os.getpid(), "registry": rt._query("info")["pid"]}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            time.sleep(0.5)
            for name, pid in self._parts().items():
                try:
                    self.seen.setdefault(name, []).append(psutil.Process(pid).memory_info().rss)
                except psutil.Error:
                    continue

    def _parts(self) -> dict[str, int]:
        log = self.place / "actors"
        pids = dict.fromkeys(log.read_text().split()) if log.exists() else {}
        return {**self.fixed, **{f"actor {pid}": int(pid) for pid in pids}}

    def megabytes(self) -> dict[str, tuple[float, float]]:
        """Of each process that was there for long: at a third of the time, and in the end."""
        found = {}
        for name, seen in self.seen.items():
            part = len(seen) // 3
            if part >= 5:
                early, late = (statistics.median(some) for some in (seen[part : 2 * part], seen[-5:]))
                found[name] = (round(early / 2**20, 1), round(late / 2**20, 1))
        return found


def with_vectors(batch: dict[str, Any]) -> dict[str, Any]:
    """Columns that are too large to be journaled."""
    return {"id": batch["id"], "vector": np.zeros((len(batch["id"]), 400))}


def kill_one_actor(place: str, ids: list[str]) -> None:
    """Once the actors are at work, one of them."""
    log = Path(place) / "actors"
    while not log.exists() or len(log.read_text().split()) < 3:
        time.sleep(0.01)
    pid = int(log.read_text().split()[-1])
    psutil.Process(pid).kill()
    ids.append(str(pid))


def rows(place: str, count: int, batch: int) -> None:
    killed: list[str] = []
    with oc.Runtime.start(agents=[lead, leaf], config=CONFIG) as rt:
        memory = Memory(rt, place)
        threading.Thread(target=kill_one_actor, args=(place, killed), daemon=True).start()
        data = ray.data.range(count, override_num_blocks=-(-count // batch)).map_batches(with_vectors, num_cpus=0.1)
        data = data.map_batches(
            Scores, fn_constructor_args=[rt.name, place], batch_size=batch, compute=POOL, num_cpus=0.1
        )
        began = time.monotonic()
        found = data.take_all()
        seconds = time.monotonic() - began
        trees = len(rt.runs(agent="lead", state="succeeded", limit=1_000))
    got = [row["id"] for row in found]
    print(
        json.dumps(
            {
                "rows": len(found),
                "in order": got == list(range(count)),
                "right": all(row["square"] == row["id"] ** 2 for row in found),
                "arrays": [list(pair) for pair in {(bool(r["writeable"]), bool(r["shared"])) for r in found}],
                "killed": len(killed),
                "run again": trees - -(-count // batch),
                "seconds": round(seconds, 1),
                "megabytes": memory.megabytes(),
            }
        )
    )


def endless(place: str) -> None:
    with oc.Runtime.start(agents=[waits], config=CONFIG) as rt:
        data = ray.data.range(8).map_batches(
            Waits, fn_constructor_args=[rt.name, place], batch_size=2, compute=POOL, num_cpus=0.1
        )
        data.take_all()


if __name__ == "__main__":
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    way, where, *numbers = sys.argv[1:]
    if way == "rows":
        rows(where, *map(int, numbers))
    else:
        endless(where)
