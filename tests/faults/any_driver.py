"""A driver that starts a runtime, has sessions with tools at work, and then ends in the way that it is told to.

    any_driver.py WAY LOG [STATE_DIR]      WAY: exception, exit, unclosed, close; kill, ctrl-c and sigterm wait for that
"""

from __future__ import annotations

import os
import sys
import time

from fault_agents import AGENTS, CONFIG

import openclaw_ray as oc

SESSIONS = 2


def main() -> None:
    way, log, *place = sys.argv[1:]
    rt = oc.Runtime.start(
        agents=AGENTS,
        config={**CONFIG, "ray": {"pool": {"prewarm": SESSIONS}}},
        state_dir=place[0] if place else None,
    )
    if way == "unclosed":
        begin(rt, log)
        print("ready", rt.name, flush=True)
        sys.exit(3)
    with rt:
        begin(rt, log)
        print("ready", rt.name, flush=True)
        if way == "exception":
            raise LookupError("the driver's own fault")
        if way == "exit":
            sys.exit(5)
        if way in ("kill", "ctrl-c", "sigterm"):
            time.sleep(600)


def begin(rt: oc.Runtime, log: str) -> None:
    """Sessions that wait for tools."""
    for i in range(SESSIONS):
        rt.spawn(agent_id="tooled", input=(log, i))
    while not os.path.exists(log) or len(open(log).readlines()) < SESSIONS:  # noqa: SIM115
        time.sleep(0.02)


if __name__ == "__main__":
    main()
