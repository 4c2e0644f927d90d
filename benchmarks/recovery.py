"""Registry killed to service back; driver killed to last session process gone.

The same as ``openclaw-ray bench recovery``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("recovery"))
