"""A connected client with two sessions at work under its root; leaves when its input ends."""

from __future__ import annotations

import os
import sys
import time

import openclaw_ray as oc

if __name__ == "__main__":
    name, log = sys.argv[1:]
    with oc.Runtime.connect(name) as rt:
        for i in range(2):
            rt.spawn(agent_id="polite", input=(log, i))
        while not os.path.exists(log) or len(open(log).readlines()) < 2:  # noqa: SIM115
            time.sleep(0.02)
        print(rt.root_key, flush=True)
        sys.stdin.read()
