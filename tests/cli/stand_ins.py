"""What the tests of the command line share, and a façade where there is none yet."""

from __future__ import annotations

import time
from collections.abc import Callable

import openclaw_ray
from openclaw_ray.agents.agent_class import Agent
from openclaw_ray.agents.decorator import agent


def install() -> None:
    """Put the real thing into the façade where it does not have it yet."""
    for name, value in (("agent", agent), ("Agent", Agent)):
        if not hasattr(openclaw_ray, name):
            setattr(openclaw_ray, name, value)


def eventually(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something that no event tells is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
