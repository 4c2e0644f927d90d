"""Stop of trees by size, cooperative and with a deaf session.

The same as ``openclaw-ray bench stop``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("stop"))
