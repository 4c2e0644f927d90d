"""Sessions on a cluster of three nodes, of which one is lost.

node_driver.py LOG
"""

from __future__ import annotations

import json
import sys
import time

import ray
from fault_agents import AGENTS, CONFIG
from fault_tier import Log, at_rest
from ray.cluster_utils import Cluster

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

FAST = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}
HEAD = {"num_cpus": 2, "include_dashboard": False, "resources": {"near": 1}, "_system_config": FAST}


def main() -> None:
    log = Log(sys.argv[1])  # type: ignore[arg-type]
    cluster = Cluster(initialize_head=True, head_node_args=HEAD)
    lost = cluster.add_node(num_cpus=1, resources={"far": 3})
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    try:
        print(json.dumps(lose_a_node(cluster, lost, log)), flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()


def lose_a_node(cluster: Cluster, lost: object, log: Log) -> dict[str, object]:
    places = {"polite": "far", "timed": "far", "deaf": "near"}
    entries = {name: {"ray": {"resources": {place: 1}}} for name, place in places.items()}
    config = {**CONFIG, "agents": {**CONFIG["agents"], "entries": entries}}
    with oc.Runtime.start(agents=AGENTS, config=config) as rt:
        near = rt.spawn(agent_id="deaf", input=(log.path, "near"))
        there = [rt.spawn(agent_id="polite", input=(log.path, i)) for i in range(3)]
        log.wait_for(4)
        nodes = {row["agentId"]: row.get("node") for row in rt.runs(state="running")}
        queued = [rt.spawn(agent_id="timed", input=(log.path, f"q{i}", 0)) for i in range(2)]
        began = time.monotonic()
        cluster.remove_node(lost, allow_graceful=False)
        cluster.add_node(num_cpus=1, resources={"far": 3})
        ends = [rt.result(receipt, timeout=60) for receipt in there]
        after = [rt.result(receipt, timeout=60).text for receipt in queued]
        seconds = time.monotonic() - began
        still = rt.runs(session=near.session_key)[0]["state"]
        rt.stop(near.session_key, timeout=20)
        eventually(lambda: not rt.runs(state=["queued", "running", "paused"]), 20)
        at_rest(rt)
        return {
            "lost": lost.node_id,  # type: ignore[attr-defined]
            "nodes": nodes,
            "ends": [end.error.to_json() if end.error else None for end in ends],
            "queued": after,
            "sibling": still,
            "seconds": seconds,
        }


if __name__ == "__main__":
    main()
