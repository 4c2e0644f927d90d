"""A connected client that maps items under a name; it says so when the first has come.

    map_driver.py RUNTIME LOG MAP_ID ITEMS SECONDS
"""

from __future__ import annotations

import sys

import openclaw_ray as oc

if __name__ == "__main__":
    name, log, map_id, items, seconds = sys.argv[1:]
    with oc.Runtime.connect(name) as rt:
        each = [(log, i, float(seconds)) for i in range(int(items))]
        for result in rt.imap("count", each, map_id=map_id, width=3):
            print(result.text, flush=True)
