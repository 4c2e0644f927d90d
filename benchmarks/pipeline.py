"""Rows a second of a Ray Data job that asks a session about each batch.

The same as ``openclaw-ray bench pipeline``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("pipeline"))
