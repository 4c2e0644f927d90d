"""A message and its reply between two sessions, against two bare actors.

The same as ``openclaw-ray bench ping_pong``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("ping_pong"))
