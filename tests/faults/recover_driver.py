"""A driver of a service with a state dir, for a test to kill.

    recover_driver.py LOG STATE_DIR [recover]
"""

from __future__ import annotations

import json
import sys
import threading

from recover_agents import AGENTS, CONFIG

import openclaw_ray as oc

if __name__ == "__main__":
    log, place, *more = sys.argv[1:]
    with oc.Runtime.start(config=CONFIG, agents=AGENTS, state_dir=place, recover=bool(more)) as rt:
        print(json.dumps(rt.recovered), flush=True)
        for agent in sys.stdin:
            threading.Thread(target=rt.ask, args=(agent.strip(), log), daemon=True).start()
