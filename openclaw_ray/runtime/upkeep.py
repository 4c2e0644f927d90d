"""Maintenance of a runtime's ledger: what would be done, and doing it at once (SPEC.md H2, H4).

1. The registry ends what nothing else can end.
2. One whole round of its retention is gone through, a look at a time; by itself it does the same every hour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openclaw_ray.core.protocol.retention import Cursor
from openclaw_ray.core.protocol.upkeep import Done

__all__ = ["maintain"]


def maintain(query: Callable[..., Any], *, apply: bool) -> list[dict[str, Any]]:
    """What was done, or would be: ``action``, ``runId``, ``sessionKey`` and ``why``.

    Args:
        query: asks the registry.
        apply: do it.
    """
    done: list[Done] = list(query("maintain", [], apply))
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        more, cursor = query("retain", cursor, apply)
        done += more
    return [{"action": each.action, "runId": each.run, "sessionKey": each.session, "why": each.why} for each in done]
