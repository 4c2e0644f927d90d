"""The registry without Ray: steps a second, CPU a step, memory, against rows in its journal.

The same as ``openclaw-ray bench registry``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("registry"))
