"""MaxConcurrent × maxChildrenPerAgent: queue wait, utilisation, fairness between roots.

The same as ``openclaw-ray bench lanes``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("lanes"))
