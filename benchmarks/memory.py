"""A session process, a passive session, 1,000 records.

The same as ``openclaw-ray bench memory``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("memory"))
