"""A second driver of a runtime: stops each session whose key it reads, and says so after its stop has returned."""

from __future__ import annotations

import sys

import openclaw_ray as oc

if __name__ == "__main__":
    with oc.Runtime.connect(sys.argv[1]) as rt:
        print("connected", flush=True)
        for line in sys.stdin:
            report = rt.stop(line.strip(), timeout=30)
            print("stopped", report.stopped, report.forced, flush=True)
