"""``turn.messages()``: the messages with mode ``steer`` that came while the turn runs (SPEC.md B2)."""

from __future__ import annotations

import math
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from openclaw_ray.agents.port import TurnPort
from openclaw_ray.agents.session_view import TurnEvent
from openclaw_ray.agents.within import Within
from openclaw_ray.core.lifecycle import RunKind

__all__ = ["message_steps"]


def message_steps(port: TurnPort, timeout: float) -> Generator[Future[Any] | Within, Any, list[TurnEvent]]:
    """Those that are there; if there are none, those that come within ``timeout`` seconds.

    Raises:
        ValueError: that is no time.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or math.isnan(timeout) or timeout < 0:
        raise ValueError(f"timeout is a number of seconds, 0 for not to wait, not {timeout!r}")
    came = port.steered()
    if not came.done() and timeout > 0:
        yield Within((came,), timeout, frees_slot=True)
    found = []
    for asked in port.take_steered():
        told = yield asked
        if told is not None:
            found.append(TurnEvent(RunKind.MESSAGE, told.text, None, told.source))
    return found
