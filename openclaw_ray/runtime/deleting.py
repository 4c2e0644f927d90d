"""Deleting a session, as its operator does it (SPEC.md G3).

1. What may never be deleted is refused before anything is stopped.
2. The session is captured as it is, then stopped with all that is below it. What could not be stopped: nothing more is
   done.
3. The registry deletes it if it still is the captured one and has nothing un-ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from openclaw_ray.core.errors import DeleteRefused
from openclaw_ray.core.keys import main_key
from openclaw_ray.core.protocol.deleting import Deletion
from openclaw_ray.core.results import StopReport

__all__ = ["delete_session"]


class _Stop(Protocol):
    def __call__(self, key: str, *, timeout: float | None) -> StopReport: ...


def delete_session(query: Callable[..., Any], stop: _Stop, key: str, timeout: float | None) -> StopReport:
    """Stop and delete the session ``key``.

    Args:
        query: asks the registry.
        stop: `Runtime.stop`.
        key: canonical.
        timeout: seconds for the stop.

    Raises:
        KeyError: there is no such session.
        DeleteRefused: it was not deleted.
    """
    seen = query("session", key)
    if seen is None:
        raise KeyError(key)
    if key == main_key(seen["agentId"]):
        raise DeleteRefused(key, Deletion.MAIN.value)
    if key.split(":")[2] == "driver":
        raise DeleteRefused(key, Deletion.ROOT.value)
    report = stop(key, timeout=timeout)
    if report.failed:
        raise DeleteRefused(key, Deletion.BUSY.value)
    word = Deletion(query("delete", key, seen["sessionId"], seen["activations"]))
    if word is Deletion.UNKNOWN:
        raise KeyError(key)
    if word is not Deletion.DELETED:
        raise DeleteRefused(key, word.value)
    return report
