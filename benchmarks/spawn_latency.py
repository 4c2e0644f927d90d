"""Spawn to accepted, first turn, announced: warm, cold, first contact, re-activated.

The same as ``openclaw-ray bench spawn_latency``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("spawn_latency"))
