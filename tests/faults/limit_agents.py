"""What is run under a rate limit; a module of its own, so that what it says goes by reference into no other."""

from __future__ import annotations

import os
import time

import openclaw_ray as oc

__all__ = ["limited"]


@oc.agent(spawns=False)
def limited(turn: oc.SyncTurn) -> str:
    """Say when it comes in and when it goes, with whose it is."""
    path, root, lasts = turn.input
    with turn.limit("api"):
        came = time.monotonic()
        time.sleep(lasts)
        gone = time.monotonic()
    line = f"{root} {came} {gone}\n".encode()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)
    return root
