"""Chains of sessions, against chains of bare actors.

The same as ``openclaw-ray bench depth``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("depth"))
