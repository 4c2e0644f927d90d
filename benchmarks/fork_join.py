"""No-op sessions by rt.map and turn.map against Ray's own; payloads, widths.

The same as ``openclaw-ray bench fork_join``, with one JSON object for it alone; ``--help`` lists its sizes.
"""

from openclaw_ray.bench.script import main

if __name__ == "__main__":
    raise SystemExit(main("fork_join"))
