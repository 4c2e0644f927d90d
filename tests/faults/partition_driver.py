"""A map over the nodes of a cluster while one of them is cut off; told by a line when that is to begin.

partition_driver.py ADDRESS OWN LOG ITEMS WIDTH     prints "under way", then one JSON object
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from typing import Any

import ray
from cluster_agents import gated
from fault_agents import AGENTS, CONFIG
from fault_tier import Log

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually
from openclaw_ray.testing.leaks import assert_at_rest

SECONDS = 1.5
"""How long each session lasts."""


def main() -> None:
    address, own, path, items, width = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    ray.init(address=address, _node_ip_address=own, logging_level="ERROR", log_to_driver=False)
    config = {**CONFIG, "ray": {"stopGraceSeconds": 2, "pool": {"max": width + 1, "prewarm": width}}}
    with oc.Runtime.start(agents=[*AGENTS, gated], config=config) as rt:
        print(json.dumps(cut_in_the_middle(rt, Log(path), items, width)), flush=True)  # type: ignore[arg-type]


def cut_in_the_middle(rt: oc.Runtime, log: Log, items: int, width: int) -> dict[str, Any]:
    results: list[oc.Result[Any]] = []
    asked = [(log.path, f"item.{i}", SECONDS) for i in range(items)]
    began = time.monotonic()
    mapping = threading.Thread(target=lambda: results.extend(rt.map("timed", asked, width=width)))
    mapping.start()
    log.wait_for(2 * width, timeout=120)
    before = Counter(row["node"] for row in rt.runs(state="running"))
    print("under way", flush=True)
    mapping.join(300)
    took = time.monotonic() - began
    stuck = [row["runId"] for row in rt.runs(state=["queued", "running", "paused"])]
    done = len(log.lines())
    after = rt.map("gated", [(log.path, "/", f"after.{i}") for i in range(3 * width)], width=width, timeout=120)
    eventually(lambda: not rt.runs(state=["queued", "running", "paused"]), 20)
    assert_at_rest(rt, timeout=30)
    return {
        "indexes": [each.index for each in results],
        "ok": sum(each.ok for each in results),
        "errors": [each.error.to_json() if each.error else None for each in results if not each.ok],
        "begun": done,
        "twice": log.doubled(),
        "stuck": stuck,
        "nodes before": before,
        "after": Counter(each.status.value for each in after),
        "nodes after": Counter(each.text for each in after),
        "nodes": {each["NodeManagerAddress"]: [each["NodeID"], each["Alive"]] for each in ray.nodes()},
        "seconds": took,
    }


if __name__ == "__main__":
    main()
