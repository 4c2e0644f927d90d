"""A runtime on a cluster of three nodes, of which one is lost and to which one comes.

cluster_driver.py FOLDER SESSIONS STAGE…     prints a JSON object for each stage: its name, and what was seen
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
from cluster_agents import AGENTS, equipped, node
from fault_tier import Log
from ray.cluster_utils import Cluster

import openclaw_ray as oc
from openclaw_ray.core.placement import PROCESS_BYTES
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_at_rest

FAST = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}
LATER = {"num_cpus": 1, "resources": {"far": 2, "slot": 1}}


class Stages:
    """The cluster, the runtime, and what is seen."""

    def __init__(self, folder: Path, sessions: int) -> None:
        self.folder, self.sessions = folder, sessions
        self.most = sessions + sessions // 3 + 1
        self.log = Log(folder / "log")
        room = {"memory": sessions // 3 * PROCESS_BYTES + 1024}
        head = {"num_cpus": 2, "include_dashboard": False, "_system_config": FAST, **room}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.near = self.cluster.add_node(num_cpus=1, resources={"slot": 1}, **room)
        self.far = self.cluster.add_node(**LATER, **room)
        self.room = room
        ray.init(address=self.cluster.address, logging_level="ERROR", log_to_driver=False)
        self.head_id = node()
        entries = {
            "slotted": {"ray": {"resources": {"slot": 1}}},
            "selfish": {"ray": {"resources": {"far": 2}}, "subagents": {"allowAgents": ["selfish"]}},
            "needy": {"ray": {"num_gpus": 1, "resources": {"far": 1}}},
        }
        pool = {"max": self.most, "prewarm": 1, **({"placeSeconds": 2} if sessions < 10 else {})}
        config = {
            "agents": {"defaults": {"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}}, "entries": entries},
            "ray": {"pool": pool, "stopGraceSeconds": 2},
        }
        self.rt = oc.Runtime.start(agents=AGENTS, config=config)
        self._gates = 0

    def gated(self, count: int) -> tuple[list[oc.Receipt], Path]:
        """So many sessions at once, all at the gate but for those that wait for a process."""
        self._gates += 1
        gate, before = self.folder / f"gate-{self._gates}", len(self.log.lines())
        asked = [(self.log.path, str(gate), f"{self._gates}.{i}") for i in range(count)]
        receipts = [self.rt.spawn(agent_id="gated", input=each) for each in asked]
        self.log.wait_for(before + min(count, self.most), timeout=480)
        return receipts, gate

    def running(self) -> list[dict[str, Any]]:
        return self.rt.runs(agent="gated", state="running", limit=1_000)

    # ------------------------------------------------------------------ stages

    def spread(self) -> dict[str, Any]:
        """More sessions than the nodes have room for: where they are, what is asked for, and that this ends."""
        began = time.monotonic()
        receipts, gate = self.gated(self.most + 2)
        rows = self.running()
        eventually(demand, 10, what="demand")
        seen = {
            "by node": Counter(row["node"] for row in rows),
            "by raylet": Counter(raylet_of(row["pid"]) for row in rows),
            "raylets": {each.node_id: raylet(each) for each in (self.cluster.head_node, self.near, self.far)},
            "demand": demand(),
            "info": self.rt._query("info")["cpus_asked"],
            "owners": [self.node_of(part) for part in ("pool", "registry", "hub")],
        }
        gate.touch()
        ends = [self.rt.result(each, timeout=120) for each in receipts]
        seen["ends"] = Counter(end.status.value for end in ends)
        eventually(lambda: not demand(), 10, what="no demand")
        return {**seen, "seconds": time.monotonic() - began}

    def node_of(self, part: str) -> str:
        actor = ray.get_actor(f"{self.rt.name}/{part}", namespace="openclaw_ray")
        return str(ray._private.state.actors(actor._actor_id.hex())["Address"]["NodeID"])

    def values(self) -> dict[str, Any]:
        """Large values and inputs from and to all nodes."""
        array = ray.put(np.ones(1 << 17))
        results = self.rt.map("bulky", [(i, array) for i in range(2 * self.sessions)], width=self.sessions)
        values = [each.raise_for_status().value for each in results]
        return {
            "right": [bool((value["array"] == (1 << 17) + i).all()) for i, value in enumerate(values)],
            "copied": [bool(v["writeable"] or v["array"].flags.writeable) for v in values],
            "nodes": len({value["node"] for value in values}),
        }

    def resources(self) -> dict[str, Any]:
        """What no node has; what bosses wait for; what somebody keeps from its own child."""
        began = time.monotonic()
        needy, selfish = self.rt.spawn("do it", "needy"), self.rt.spawn("do it", "selfish")
        refused: list[float] = []
        waiting = threading.Thread(
            target=lambda: (self.rt.result(needy, timeout=30), refused.append(time.monotonic() - began))
        )
        waiting.start()
        bosses = self.rt.map("boss", [1 if self.sessions < 10 else 4] * 3, width=3, timeout=120)
        waiting.join()
        error = self.rt.result(needy).error
        return {
            "needy": [error.type, error.cause, error.message] if error else None,
            "seconds": refused[0],
            "bosses": [each.value for each in bosses],
            "with slots": [self.near.node_id, self.far.node_id],
            "selfish": self.rt.result(selfish, timeout=60).text,
        }

    def lose(self) -> dict[str, Any]:
        """A node dies in the middle of a map; every item comes to an end."""
        gate, items = self.folder / "gate-map", 3 * self.sessions
        asked = [(self.log.path, str(gate), f"item.{i}") for i in range(items)]
        results: list[oc.Result[Any]] = []
        before = len(self.log.lines())
        mapping = threading.Thread(
            target=lambda: results.extend(self.rt.map("gated", asked, width=self.sessions, timeout=480))
        )
        mapping.start()
        self.log.wait_for(before + self.sessions, timeout=480)
        there = Counter(row["node"] for row in self.running())
        began = time.monotonic()
        self.cluster.remove_node(self.far, allow_graceful=False)
        gate.touch()
        mapping.join(480)
        lost = [each.error.to_json() if each.error else None for each in results if not each.ok]
        return {
            "asked": items,
            "indexes": [each.index for each in results],
            "ok": sum(each.ok for each in results),
            "at work there": there[self.far.node_id],
            "lost": lost,
            "node": self.far.node_id,
            "left": sorted({str(each.text) for each in results if each.ok} - {self.head_id, self.near.node_id}),
            "twice": self.log.doubled(),
            "seconds": time.monotonic() - began,
        }

    def late(self) -> dict[str, Any]:
        """A node that comes later gets what those that are warm elsewhere cannot do."""
        new = self.cluster.add_node(**LATER, **self.room)
        began = time.monotonic()
        receipts, gate = self.gated(self.most)
        there = Counter(row["node"] for row in self.running())
        gate.touch()
        ends = [self.rt.result(each, timeout=120).text for each in receipts]
        return {"new": new.node_id, "there": there, "ends": Counter(ends), "seconds": time.monotonic() - began}

    def carried(self) -> dict[str, Any]:
        """Code and variables that a ``runtime_env`` brings to each node."""
        place = self.folder / "elsewhere" / "cargo"
        place.mkdir(parents=True)
        (place / "__init__.py").write_text("NAME = 'carried'\n")
        env = {"py_modules": [str(place)], "env_vars": {"CARGO": "aboard"}}
        config = {"ray": {"pool": {"max": 6, "prewarm": 6}}}
        with oc.Runtime.start(agents=[equipped], config=config, runtime_env=env) as rt:
            found = [each.raise_for_status().value for each in rt.map("equipped", ["x"] * 18, width=6)]
        brought = sorted({(name, variable) for name, variable, _ in found})
        return {"found": brought, "nodes": len({there for *_, there in found})}

    def end(self) -> None:
        assert_at_rest(self.rt, timeout=20)
        self.rt.close()


def demand() -> int:
    """CPUs that Ray's autoscaler is asked for."""
    from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
    from ray.experimental.internal_kv import _internal_kv_get

    asked = json.loads(_internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL) or "[]")
    return int(sum(each["CPU"] for each in asked))


def raylet(there: Any) -> int:
    """Process id of a node's raylet."""
    return int(there.all_processes["raylet"][0].process.pid)


def raylet_of(pid: int) -> int:
    """Process id of the raylet that a worker was started by, as the system says."""
    return next((each.pid for each in psutil.Process(pid).parents() if each.name() == "raylet"), 0)


def main() -> None:
    folder, sessions, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    began = time.monotonic()
    stages = Stages(folder, sessions)
    try:
        print(json.dumps({"start": {"took": time.monotonic() - began}}), flush=True)
        for name in names:
            began = time.monotonic()
            seen = getattr(stages, name)()
            print(json.dumps({name: {**seen, "took": time.monotonic() - began}}), flush=True)
        stages.end()
        print(json.dumps({"end": True}), flush=True)
    finally:
        ray.shutdown()
        stages.cluster.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    main()
