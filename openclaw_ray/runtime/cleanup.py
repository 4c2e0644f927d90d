"""Deleting and resetting a session, as its operator does it (SPEC.md G3).

1. What may never be cleared is refused before anything is stopped.
2. The session is captured as it is, then stopped with all that is below it, paused children and what waits in its queue
   included. What could not be stopped in time: nothing more is done, the conversation is as it was.
3. The registry clears it if it still is the captured one and has nothing un-ended. What it had been asked before it was
   captured, and began only then, makes no other session of it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Protocol

from openclaw_ray.core.errors import DeleteRefused, ResetRefused
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.keys import main_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.cleanup import CleanupWord
from openclaw_ray.core.results import StopReport

__all__ = ["RELEASE_WITHIN", "delete_session", "reset_session"]

RELEASE_WITHIN = 15.0
"""Seconds beyond the stop grace in which all of a session is released, if nobody says otherwise."""


class _Stop(Protocol):
    def __call__(self, key: str, *, timeout: float | None) -> StopReport: ...


def delete_session(query: Callable[..., Any], stop: _Stop, key: str, timeout: float) -> StopReport:
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
    seen = _seen(query, key)
    if key == main_key(seen["agentId"]):
        raise DeleteRefused(key, CleanupWord.MAIN.value)
    return _cleared(query, stop, seen, timeout, DeleteRefused, "delete")


def reset_session(query: Callable[..., Any], stop: _Stop, key: str, timeout: float) -> StopReport:
    """Stop the session ``key`` and begin it anew; arguments as for `delete_session`.

    Raises:
        KeyError: there is no such session.
        ResetRefused: it is as it was.
    """
    seen = _seen(query, key)
    if seen["status"] == SessionState.ARCHIVED:
        raise ResetRefused(key, CleanupWord.ARCHIVED.value)
    return _cleared(query, stop, seen, timeout, ResetRefused, "reset", RandomIds().session_id())


def _seen(query: Callable[..., Any], key: str) -> dict[str, Any]:
    seen: dict[str, Any] | None = query("session", key)
    if seen is None:
        raise KeyError(key)
    return seen


def _cleared(
    query: Callable[..., Any],
    stop: _Stop,
    seen: dict[str, Any],
    timeout: float,
    refused: Callable[[str, str], Exception],
    what: str,
    *new: str,
) -> StopReport:
    key = seen["key"]
    if key.split(":")[2] == "driver":
        raise refused(key, CleanupWord.ROOT.value)
    newest = _newest_run(query, key)
    try:
        report = stop(key, timeout=timeout)
    except FutureTimeout:
        raise refused(key, CleanupWord.BUSY.value) from None
    if report.failed:
        raise refused(key, CleanupWord.BUSY.value)
    word = CleanupWord(query(what, key, seen["sessionId"], seen["activations"], *new))
    if word is CleanupWord.CHANGED and _newest_run(query, key) == newest:
        now = _seen(query, key)
        if now["sessionId"] == seen["sessionId"]:
            word = CleanupWord(query(what, key, now["sessionId"], now["activations"], *new))
    if word is CleanupWord.UNKNOWN:
        raise KeyError(key)
    if word is not CleanupWord.DONE:
        raise refused(key, word.value)
    return report


def _newest_run(query: Callable[..., Any], key: str) -> str:
    rows = query("view", "runs", {"session": key}, 1, 0)
    return str(rows[0]["runId"]) if rows else ""
