"""A client in a process of its own, with many callers that wait for one run of another's.

    parked_client.py RUNTIME CALLERS RUN_ID SESSION_KEY AGENT         and ``RAY_ADDRESS``

Prints ``parked`` when all of them wait, and then, as JSON, what they got and how long after the first the last one did.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed

import openclaw_ray as oc


def main() -> None:
    name, callers = sys.argv[1], int(sys.argv[2])
    receipt = oc.Receipt("accepted", *sys.argv[3:6])
    with oc.Runtime.connect(name) as rt, ThreadPoolExecutor(callers) as threads:
        there = threading.Barrier(callers + 1)

        def wait() -> str:
            there.wait(60)
            return str(rt.result(receipt, timeout=110).status)

        waiting = [threads.submit(wait) for _ in range(callers)]
        there.wait(60)
        time.sleep(0.5)
        print("parked" if not any(each.done() for each in waiting) else "not parked", flush=True)
        first = None
        got: Counter[str] = Counter()
        for each in as_completed(waiting):
            first = first or time.monotonic()
            got[each.result()] += 1
        print(json.dumps({"got": got, "spread": time.monotonic() - (first or 0.0)}), flush=True)


if __name__ == "__main__":
    main()
