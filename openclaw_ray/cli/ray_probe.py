"""``python -m openclaw_ray.cli.ray_probe``: reach the cluster at ``RAY_ADDRESS`` and say what it is, in a line of JSON.

A process of its own, so that `doctor` can give it a time limit.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys

__all__ = ["main", "versions_in"]

_CLUSTER = re.compile(r"cluster was started with:\s*Ray: (\S+)\s*Python: (\S+)")


def versions_in(text: str) -> dict[str, str]:
    """The cluster's versions as Ray's message about a mismatch tells them; empty if there are none."""
    found = _CLUSTER.search(text)
    return {"ray": found[1], "python": found[2]} if found else {}


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
        guest.leave()
    print(json.dumps(answer), file=out, flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
