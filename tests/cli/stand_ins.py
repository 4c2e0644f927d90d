"""Stand-ins for parts of the library that the command line is tested without."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import openclaw_ray
from openclaw_ray import agents

Function = Callable[..., Any]


def _agent(id: str, **_options: bool) -> Callable[[Function], Function]:
    def mark(function: Function) -> Function:
        function.__openclaw_agent__ = SimpleNamespace(id=id)  # type: ignore[attr-defined]
        return function

    return mark


def install() -> None:
    """Put a stand-in wherever the façade does not have the real thing yet."""
    for module in (agents, openclaw_ray):
        for name, value in (("agent", _agent), ("SyncTurn", object)):
            if not hasattr(module, name):
                setattr(module, name, value)
