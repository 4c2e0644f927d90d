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
from dataclasses import dataclass
from typing import Any, Protocol

from openclaw_ray.core.errors import DeleteRefused, ResetRefused, SessionForbidden
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.keys import main_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.session_asks import Asker, CleanupWord, SessionAnswer

__all__ = ["RELEASE_WITHIN", "Seen", "delete_session", "reset_session"]

RELEASE_WITHIN = 15.0
"""Seconds beyond the stop grace in which all of a session is released, if nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as who wants it cleared knows it: by id and revision, if given.

    ``asker``: the turn that asks; `None` for the operator.
    """

    session_id: str | None = None
    revision: int | None = None
    asker: Asker | None = None

    def fits(self, row: dict[str, Any]) -> bool:
        """Whether the session is that one still."""
        same = self.session_id in (None, row["sessionId"])
        return same and self.revision in (None, row.get("lifecycleRevision"))


ANY = Seen()
"""As it is found, by the operator."""


class _Stop(Protocol):
    def __call__(self, key: str, *, timeout: float | None) -> StopReport: ...


def delete_session(
    query: Callable[..., Any], stop: _Stop, key: str, timeout: float, seen: Seen = ANY
) -> StopReport:
    """Stop and delete the session ``key``.

    Args:
        query: asks the registry.
        stop: `Runtime.stop`.
        key: canonical.
        timeout: seconds for the stop.
        seen: which one it must be, and who asks.

    Raises:
        KeyError: there is no such session.
        SessionForbidden: it is not the asking session's to delete.
        DeleteRefused: it was not deleted.
    """
    row = _row(query, key, seen, "delete")
    if key == main_key(row["agentId"]):
        raise DeleteRefused(key, CleanupWord.MAIN.value)
    return _cleared(query, stop, seen, row, timeout, DeleteRefused, "delete")


def reset_session(
    query: Callable[..., Any], stop: _Stop, key: str, timeout: float, seen: Seen = ANY
) -> StopReport:
    """Stop the session ``key`` and begin it anew; arguments as for `delete_session`.

    Raises:
        KeyError: there is no such session.
        SessionForbidden: it is not the asking session's to reset.
        ResetRefused: it is as it was.
    """
    row = _row(query, key, seen, "reset")
    if row["status"] == SessionState.ARCHIVED:
        raise ResetRefused(key, CleanupWord.ARCHIVED.value)
    return _cleared(query, stop, seen, row, timeout, ResetRefused, "reset", RandomIds().session_id())


def _row(query: Callable[..., Any], key: str, seen: Seen, what: str) -> dict[str, Any]:
    if seen.asker is not None:
        answer: SessionAnswer = query("asked", seen.asker, "may", {"key": key, "what": what})
        if answer.status == "forbidden":
            raise SessionForbidden(answer.reason, answer.error, answer.path)
    row: dict[str, Any] | None = query("session", key)
    if row is None:
        raise KeyError(key)
    return row


def _cleared(
    query: Callable[..., Any],
    stop: _Stop,
    seen: Seen,
    row: dict[str, Any],
    timeout: float,
    refused: Callable[[str, str], Exception],
    what: str,
    *new: str,
) -> StopReport:
    key = row["key"]
    by = () if seen.asker is None else (seen.asker,)
    if key.split(":")[2] == "driver":
        raise refused(key, CleanupWord.ROOT.value)
    if not seen.fits(row):
        raise refused(key, CleanupWord.CHANGED.value)
    newest = _newest_run(query, key)
    try:
        report = stop(key, timeout=timeout)
    except FutureTimeout:
        raise refused(key, CleanupWord.BUSY.value) from None
    if report.failed:
        raise refused(key, CleanupWord.BUSY.value)
    word = CleanupWord(query(what, key, row["sessionId"], row["activations"], *new, *by))
    if word is CleanupWord.CHANGED and _newest_run(query, key) == newest:
        now = query("session", key)
        if now is not None and now["sessionId"] == row["sessionId"]:
            word = CleanupWord(query(what, key, now["sessionId"], now["activations"], *new, *by))
    if word is CleanupWord.UNKNOWN:
        raise KeyError(key)
    if word is not CleanupWord.DONE:
        raise refused(key, word.value)
    return report


def _newest_run(query: Callable[..., Any], key: str) -> str:
    rows = query("view", "runs", {"session": key}, 1, 0)
    return str(rows[0]["runId"]) if rows else ""
