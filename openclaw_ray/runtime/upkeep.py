"""Maintenance of a runtime's ledger: what would be done, and doing it (SPEC.md H2, H4).

1. The registry ends what nothing else can end.
2. Rows are looked through page by page; those whose time is over are named to the registry, which looks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from openclaw_ray.core.ledger import expired

__all__ = ["maintain"]

_PAGE = 500


def maintain(query: Callable[..., Any], *, apply: bool) -> list[dict[str, Any]]:
    """What was done, or would be: ``action``, ``runId``, ``sessionKey`` and ``why``.

    Args:
        query: asks the registry.
        apply: do it.
    """
    done = list(query("maintain", [], apply))
    now = round(time.time() * 1000)
    old: list[str] = []
    offset = 0
    while rows := query("view", "runs", {}, _PAGE, offset):
        old += [row["runId"] for row in rows if expired(row, now)]
        offset += len(rows)
    for start in range(0, len(old), _PAGE):
        done += query("maintain", old[start : start + _PAGE], apply)
    return [{"action": each.action, "runId": each.run, "sessionKey": each.session, "why": each.why} for each in done]
