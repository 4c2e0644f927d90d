"""A session that takes too much memory, on a Ray whose memory monitor allows little.

memory_driver.py LOG
"""

from __future__ import annotations

import json
import os
import sys

import psutil

ROOM = 3 << 30
"""Bytes that this Ray's node may take beyond what the machine uses now; the session takes half as much again."""


def main() -> None:
    memory = psutil.virtual_memory()
    allowed = (memory.total - memory.available + ROOM) / memory.total
    os.environ |= {"RAY_memory_usage_threshold": str(allowed), "RAY_memory_monitor_refresh_ms": "100"}
    from fault_agents import AGENTS, CONFIG
    from fault_tier import Log

    import openclaw_ray as oc

    log = Log(sys.argv[1])  # type: ignore[arg-type]
    with oc.Runtime.start(agents=AGENTS, config=CONFIG) as rt:
        sibling = rt.spawn(agent_id="timed", input=(log.path, "sibling", 6))
        log.wait_for(1)
        hog = rt.spawn(agent_id="hog", input=(log.path, "hog", ROOM * 3 // 2))
        result = rt.result(hog, timeout=60)
        [row] = rt.runs(session=hog.session_key)
        other = rt.result(sibling, timeout=60)
        found = {
            "error": result.error.to_json() if result.error else None,
            "row": row["error"],
            "sibling": other.text,
            "announced": str(rt.history(rt.root_key)),
        }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
