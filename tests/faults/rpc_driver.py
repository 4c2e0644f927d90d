"""Maps, trees, yields, large values and stops on a Ray whose calls between processes fail at random.

    rpc_driver.py LOG ITEMS STOPS         and ``RAY_testing_rpc_failure``

Each kind of call of the protocol is among them: step, start, notify, poll, deliver, stop, die_if, take, park, hold,
report, grow and kill.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from fault_agents import AGENTS, CONFIG
from ray.exceptions import RayError

import openclaw_ray as oc
from openclaw_ray.testing.leaks import find_leaks


def main() -> None:
    log, items, stops = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with oc.Runtime.start(agents=AGENTS, config=CONFIG) as rt:
        with ThreadPoolExecutor() as threads:
            asked = [
                threads.submit(rt.map, "count", [(log, i, 0) for i in range(items)], width=2),
                threads.submit(rt.map, "parent", [(log, f"p{i}", 3, 0) for i in range(2)], width=1),
                threads.submit(rt.map, "yielder", [(log, 3, 0)] * 2, width=1),
                threads.submit(rt.map, "hoarder", [(log, f"h{i}", 3) for i in range(2)], width=1),
            ]
            stopping = threads.submit(lambda: [stop_one(rt, log, i) for i in range(stops)])
        results, trees, woken, hoards = (each.result() for each in asked)
        stopped = stopping.result()
        until = time.monotonic() + 20
        leaks: list[str] = ["not known"]
        while leaks and time.monotonic() < until:
            with contextlib.suppress(RayError):  # the question itself may fall
                leaks = find_leaks(rt)
            time.sleep(0.1)
        found = {
            "texts": [result.text for result in results],
            "errors": [str(r.error) for r in (*results, *trees, *woken, *hoards) if r.error],
            "trees": [result.value for result in trees],
            "woken": [result.text for result in woken],
            "hoards": [result.text for result in hoards],
            "stopped": stopped,
            "leaks": leaks,
        }
    print(json.dumps(found), flush=True)


def stop_one(rt: oc.Runtime, log: str, number: int) -> tuple[int, int, list[str]]:
    """Stop a small tree as soon as its leaves are at work; what the report and the journal say."""
    top = rt.spawn(agent_id="parent", input=(log, f"s{number}", 3, 60))
    while len(rt.runs(requester=top.session_key, state="running")) < 3:
        time.sleep(0.02)
    report = rt.stop(top.session_key, timeout=60)
    rows = rt.runs(requester=top.session_key)
    return report.stopped, report.failed, sorted(row["state"] for row in rows)


if __name__ == "__main__":
    main()
