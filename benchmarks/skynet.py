"""A 10-way tree with a checksum, against the same tree of Ray tasks.

The same as ``openclaw-ray bench skynet``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("skynet"))
