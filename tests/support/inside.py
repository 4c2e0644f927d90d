"""Counts who is inside of something at once, for agents that are threads of the test's process."""

from __future__ import annotations

import threading
import time

__all__ = ["INSIDE", "Inside"]


class Inside:
    """How many are inside at once, over all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.times: list[float] = []

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.times.append(time.monotonic())

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.now -= 1


INSIDE: dict[str, Inside] = {}
"""By name; a module of its own, as what an agent's module holds is copied into its process."""
