"""The driver that `openclaw_ray.bench.suite.recovery` kills: it starts a runtime, says which processes its sessions
have, and waits."""

from __future__ import annotations

import json
import sys
import time

from openclaw_ray.bench.rig import noop_agent


def main() -> None:
    """Run until killed."""
    import openclaw_ray as oc

    out, sys.stdout = sys.stdout, sys.stderr
    with oc.Runtime.start(agents=[noop_agent()], config={"ray": {"pool": {"prewarm": 2, "max": 8}}}) as rt:
        for result in rt.map("noop", ["x"] * 8, width=2):
            result.raise_for_status()
        print(json.dumps(rt._query("info")["counts"]["pids"]), file=out, flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
