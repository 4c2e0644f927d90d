"""A runtime as the session tools' steps need it: the operator's, or that of the turn it is bound to (SPEC.md B5-B7).

The steps are those of the tools: what is refused there is refused here, for the same reason and in the same words.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents.tools.tool import Within
from openclaw_ray.core.errors import DeleteRefused, PatchRefused, ResetRefused, SessionForbidden
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.session_asks import SessionAnswer
from openclaw_ray.core.transcript_pages import TranscriptPage

if TYPE_CHECKING:
    from openclaw_ray.runtime.requests import Requests

__all__ = ["RuntimePort", "done_or_raised", "driven"]


class RuntimePort:
    """`SessionPort` over a runtime; each call waits, and gives a future that is done."""

    def __init__(self, runtime: Requests) -> None:
        self._runtime = runtime
        self._asker = runtime._asker

    def asked(self, what: str, given: Mapping[str, Any]) -> Future[SessionAnswer]:
        """See `SessionPort.asked`."""
        return _done(self._runtime._query("asked", self._asker, what, dict(given)))

    def patch(self, key: str, label: str, session_id: str | None, revision: int | None) -> Future[SessionAnswer]:
        """See `SessionPort.patch`."""
        return _done(self._runtime._query("patch", self._asker, key, label, session_id, revision))

    def clear(self, what: str, key: str, session_id: str, revision: int) -> Future[str]:
        """See `SessionPort.clear`."""
        new = (RandomIds().session_id(),) if what == "reset" else ()
        return _done(self._runtime._query(what, key, session_id, revision, *new, self._asker))

    def stop_session(self, key: str) -> Future[StopReport]:
        """See `SessionPort.stop_session`."""
        return self._runtime._clearing_stop(key)

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """See `SessionPort.transcript`."""
        return _done(self._runtime._transcript(session, limit, offset, anchor))


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def driven(steps: Generator[Future[Any] | Within, Any, dict[str, Any]]) -> dict[str, Any]:
    """What the steps come to, waited for in this thread."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            waits = steps.send(value) if error is None else steps.throw(error)
        except StopIteration as end:
            answer: dict[str, Any] = end.value
            return answer
        value = error = None
        if isinstance(waits, Within):
            wait_for(waits.futures, waits.seconds)
            continue
        try:
            value = waits.result()
        except Exception as failed:  # noqa: BLE001 - it is the steps' affair
            error = failed


def done_or_raised(answer: dict[str, Any], key: str = "") -> dict[str, Any]:
    """An answer of the steps; a refusal is raised, as programs hear of it.

    Raises:
        SessionForbidden: who asks may not see, or change, that session.
        KeyError: there is no such session.
        DeleteRefused, ResetRefused, PatchRefused: it is as it was.
    """
    if answer.get("status") not in ("error", "forbidden"):
        return answer
    reason, error = str(answer.get("reason", "")), str(answer["error"])
    if answer["status"] == "forbidden":
        raise SessionForbidden(reason, error, str(answer.get("path", "")))
    if reason == "unknown":
        raise KeyError(key or error)
    if (what := answer.get("what")) in ("delete", "reset"):
        raise (DeleteRefused if what == "delete" else ResetRefused)(str(answer["key"]), reason)
    raise PatchRefused(key, reason, error)

