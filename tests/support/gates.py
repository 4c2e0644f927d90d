"""Gates that a test opens for agents that are threads of its process."""

from __future__ import annotations

import threading

__all__ = ["GATES"]

GATES: dict[str, threading.Event] = {}
"""By name; a module of its own, as what an agent's module holds is copied into its process."""
