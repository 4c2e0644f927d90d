"""A map and a tree on a Ray whose calls between processes fail at random (``RAY_testing_rpc_failure``).

    rpc_driver.py LOG ITEMS
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

from fault_agents import AGENTS, CONFIG
from ray.exceptions import RayError

import openclaw_ray as oc
from openclaw_ray.testing.leaks import find_leaks


def main() -> None:
    log, items = sys.argv[1], int(sys.argv[2])
    with oc.Runtime.start(agents=AGENTS, config=CONFIG) as rt:
        results = rt.map("count", [(log, i, 0) for i in range(items)], width=4)
        trees = rt.map("parent", [(log, f"p{i}", 3, 0) for i in range(2)], width=2)
        until = time.monotonic() + 20
        leaks: list[str] = ["not known"]
        while leaks and time.monotonic() < until:
            with contextlib.suppress(RayError):  # the question itself may fall
                leaks = find_leaks(rt)
            time.sleep(0.1)
        found = {
            "texts": [result.text for result in results],
            "errors": [str(r.error) for r in (*results, *trees) if r.error],
            "trees": [result.value for result in trees],
            "leaks": leaks,
        }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
