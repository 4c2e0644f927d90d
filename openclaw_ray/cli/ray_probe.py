"""``python -m openclaw_ray.cli.ray_probe``: reach the cluster at ``RAY_ADDRESS`` and say what it is, in a line of JSON.

A process of its own, so that `doctor` can give it a time limit. Where there are several nodes, each is asked by a task
of its own that takes no CPU; once its worker is there, it is asked for its clock again, which then takes milliseconds.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ask_nodes", "main", "node_facts", "versions_in"]

NODE_WITHIN = 15.0
"""Seconds that the nodes have to answer, side by side: a worker may have to be started first."""
CLOCK_WITHIN = 2.0

_CLUSTER = re.compile(r"cluster was started with:\s*Ray: (\S+)\s*Python: (\S+)")


def versions_in(text: str) -> dict[str, str]:
    """The cluster's versions as Ray's message about a mismatch tells them; empty if there are none."""
    found = _CLUSTER.search(text)
    return {"ray": found[1], "python": found[2]} if found else {}


def node_facts() -> dict[str, Any]:
    """Run on a node: fields of `openclaw_ray.cli.doctor_facts.Node`. Needs nothing of this package there."""
    import platform
    import resource
    import socket
    from importlib import metadata

    import psutil
    import ray

    try:
        package = metadata.version("openclaw_ray")
    except metadata.PackageNotFoundError:
        package = ""
    address = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
    memory = psutil.virtual_memory()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return {
        "name": f"{socket.gethostname()} ({address})",
        "ray": str(ray.__version__),
        "python": platform.python_version(),
        "package": package,
        "open_files": None if hard == resource.RLIM_INFINITY else hard,
        "memory_available": memory.available,
        "memory_total": memory.total,
    }


def node_clock() -> float:
    """Run on a node: its wall clock."""
    import time

    return time.time()


def ask_nodes(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Ask each of these, rows of ``ray.nodes()``; those that do not answer have an ``error``."""
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def on(node: Mapping[str, Any], work: Any) -> Any:
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        return ray.remote(work).options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote()

    asked = [on(node, node_facts) for node in nodes]
    ray.wait(asked, num_returns=len(asked), timeout=NODE_WITHIN)
    found: list[dict[str, Any]] = []
    for node, ref in zip(nodes, asked, strict=True):
        try:
            facts = dict(ray.get(ref, timeout=0.1))
            before, its, after = time.time(), ray.get(on(node, node_clock), timeout=CLOCK_WITHIN), time.time()
            found.append({**facts, "ahead": its - (before + after) / 2, "unsure": (after - before) / 2})
        except RayError as error:
            why = "nothing in time" if isinstance(error, ray.exceptions.GetTimeoutError) else str(error).splitlines()[0]
            found.append({"name": str(node["NodeManagerAddress"]), "error": why})
    return found


def main() -> None:
    """Print fields of `openclaw_ray.cli.doctor_facts.Cluster`."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is not the answer
    answer: dict[str, object]
    try:
        from openclaw_ray.runtime.cluster import attach

        guest = attach(start=False)
    except Exception as error:  # noqa: BLE001 - told as it is
        text = str(error)
        answer = {"error": text, **versions_in(text)}
    else:
        import ray

        nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        # Ray has compared the versions, or it would have refused
        answer = {"ray": str(ray.__version__), "python": platform.python_version(), "nodes": len(nodes)}
        answer["cpus"] = sum(float(node["Resources"].get("CPU", 0)) for node in nodes)
        if len(nodes) > 1:
            answer["per_node"] = ask_nodes(nodes)
        guest.leave()
    print(json.dumps(answer), file=out, flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
