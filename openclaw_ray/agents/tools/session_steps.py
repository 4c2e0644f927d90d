"""What the session tools do, whoever calls: a turn's tool, the gateway's names, the command line (SPEC.md B5-B7, G3).

Each is a generator that yields the futures it waits for and returns the JSON object of its answer. Who may see and
change what, the registry says in each answer; nothing is decided here. A refusal is an object with ``status`` and
``error``.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias

from openclaw_ray.agents.tools.tool import Within
from openclaw_ray.core.errors import DeleteRefused, NotControlled, ResetRefused, ToolInputError
from openclaw_ray.core.history import view
from openclaw_ray.core.keys import main_key
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.session_asks import CleanupWord, SessionAnswer
from openclaw_ray.core.session_rows import LIST_DEFAULT, SessionPage, envelope, state_version, status_card
from openclaw_ray.core.transcript_pages import TranscriptPage, history_json, message_of

__all__ = ["SessionPort", "change_session", "list_sessions", "read_history", "refused", "session_status"]

_HISTORY_DEFAULT = 100
_WITHIN = 15.0
_MESSAGES_FROM = 4  # rows read for each message that is shown: tool rows are passed over
_LAST_MAX = 200

SessionSteps: TypeAlias = Generator[Future[Any] | Within, Any, dict[str, Any]]


class SessionPort(Protocol):
    """The part of `TurnPort` that this needs; an operator has one, too."""

    def asked(self, what: str, given: Mapping[str, Any]) -> Future[SessionAnswer]:
        """See `TurnPort.asked`."""

    def patch(self, key: str, label: str, session_id: str | None, revision: int | None) -> Future[SessionAnswer]:
        """See `TurnPort.patch`."""

    def clear(self, what: str, key: str, session_id: str, revision: int) -> Future[str]:
        """See `TurnPort.clear`."""

    def stop_session(self, key: str) -> Future[StopReport]:
        """See `TurnPort.stop_session`."""

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """See `TurnPort.transcript`."""


def refused(answer: SessionAnswer) -> dict[str, Any]:
    """A refusal as an object."""
    path = {"path": answer.path} if answer.path else {}
    return {"status": answer.status, "error": answer.error, "reason": answer.reason, **path}


# --------------------------------------------------------------------------- looking


def list_sessions(port: SessionPort, values: Mapping[str, Any]) -> SessionSteps:
    """``sessions_list``."""
    answer: SessionAnswer = yield port.asked("list", values)
    if not answer.ok:
        return refused(answer)
    page: SessionPage = answer.value
    rows = [dict(row) for row in page.rows]
    wanted = values.get("messageLimit", 0)
    last = bool(values.get("includeLastMessage"))
    if wanted or last:
        count = max(wanted, 1)
        pages = [port.transcript(row, count * _MESSAGES_FROM) for row in rows]
        yield Within(tuple(pages), _WITHIN)
        for row, future in zip(rows, pages, strict=True):
            if future.done() and future.exception() is None:
                seen = view([message_of(each) for each in future.result().rows]).messages[-count:]
                if wanted:
                    row["messages"] = seen
                if last and seen:
                    row["lastMessage"] = str(seen[-1]["content"])[:_LAST_MAX]
    return envelope(page, rows, limit=values.get("limit", LIST_DEFAULT), offset=values.get("offset", 0))


def read_history(port: SessionPort, tool: str, values: Mapping[str, Any], *, raw: bool = False) -> SessionSteps:
    """``sessions_history``; ``raw`` is the operator's.

    Raises:
        ToolInputError: parameters that do not go together.
    """
    anchor = values.get("messageId", "")
    if anchor and "sessionId" not in values:
        raise ToolInputError(tool, "messageId", "it comes with the sessionId of the transcript that it is in")
    if anchor and "offset" in values:
        raise ToolInputError(tool, "offset", "the page is the one around messageId: leave one of them out")
    answer: SessionAnswer = yield port.asked("session", {"key": values["sessionKey"]})
    if not answer.ok:
        return refused(answer)
    session = answer.value
    if values.get("sessionId", session["sessionId"]) != session["sessionId"]:
        text = f"the transcript of {session['key']} is that of {session['sessionId']} now, not of {values['sessionId']}"
        return {"status": "error", "error": text, "reason": "changed"}
    limit, offset = values.get("limit", _HISTORY_DEFAULT), values.get("offset", 0)
    page: TranscriptPage = yield port.transcript(session, limit, offset, anchor)
    if not page.found:
        text = f"there is no message {anchor!r} in the transcript of {session['key']}"
        return {"status": "error", "error": text, "reason": "unknown"}
    return history_json(page, session, include_tools=bool(values.get("includeTools")) or raw, raw=raw)


def session_status(port: SessionPort, tool: str, values: Mapping[str, Any]) -> SessionSteps:
    """``session_status``: a card of text, and what tells one state from the next."""
    answer: SessionAnswer = yield port.asked("session", {"key": values["sessionKey"]})
    if not answer.ok:
        return refused(answer)
    row = answer.value
    if (model := values.get("model", "").strip()) and model.casefold() != "default":
        text = (
            f"model: there is nothing that {model!r} could govern: agent {row['agentId']} is a program, and asks no "
            "model by this runtime; nothing was recorded"
        )
        return {"status": "error", "error": text, "reason": "model"}
    version = state_version(row)
    head = {"status": "ok", "sessionKey": row["key"], "stateVersion": version}
    if values.get("changesSince") == version:
        return {**head, "changed": False, "text": "nothing has changed"}
    changed = {"changed": True} if "changesSince" in values else {}
    return {**head, **changed, "text": status_card(row, round(time.time() * 1000)), "session": row}


# --------------------------------------------------------------------------- changing


def change_session(port: SessionPort, what: str, values: Mapping[str, Any], within: float = _WITHIN) -> SessionSteps:
    """``patch`` a label, ``reset`` or ``delete``: of the session that was seen, if its ids are given.

    Args:
        within: seconds in which all of it is to be stopped.
    """
    session_id, revision = values.get("sessionId"), values.get("lifecycleRevision")
    answer: SessionAnswer
    if what == "patch":
        answer = yield port.patch(values["key"], values["label"].strip(), session_id, revision)
        if not answer.ok:
            return refused(answer)
        answer = yield port.asked("session", {"key": answer.value})
        return refused(answer) if not answer.ok else {"status": "ok", "key": answer.value["key"], "entry": answer.value}
    answer = yield port.asked("may", {"key": values["key"], "what": what})
    if not answer.ok:
        return refused(answer)
    seen = answer.value
    word = _never(what, seen)
    if (session_id or seen["sessionId"], seen["lifecycleRevision"] if revision is None else revision) != _ids(seen):
        word = CleanupWord.CHANGED
    if word is not None:
        return _not_cleared(what, seen, word)
    return (yield from _clear(port, what, seen, within))


def _ids(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["sessionId"], row["lifecycleRevision"]


def _captured(row: Mapping[str, Any]) -> tuple[str, str, int]:
    """What a session is captured by: one that has been activated since is another one."""
    return row["key"], row["sessionId"], row["activations"]


def _never(what: str, row: Mapping[str, Any]) -> CleanupWord | None:
    """What is never cleared, before anything is stopped."""
    if row["key"].split(":")[2] == "driver":
        return CleanupWord.ROOT
    if what == "delete":
        return CleanupWord.MAIN if row["key"] == main_key(row["agentId"]) else None
    return CleanupWord.ARCHIVED if row["archived"] else None


def _clear(port: SessionPort, what: str, seen: Mapping[str, Any], within: float) -> SessionSteps:
    """Stop it, then clear what was seen; what it had been asked before, and began only then, makes it no other."""
    stop = port.stop_session(seen["key"])
    yield Within((stop,), within)
    if not stop.done():
        return _not_cleared(what, seen, CleanupWord.BUSY)
    if isinstance(error := stop.exception(), NotControlled):
        return {"status": "forbidden", "error": str(error), "reason": "control"}
    report: StopReport = stop.result()
    if report.failed:
        return _not_cleared(what, seen, CleanupWord.BUSY)
    word = CleanupWord((yield port.clear(what, *_captured(seen))))
    if word is CleanupWord.CHANGED:
        again: SessionAnswer = yield port.asked("may", {"key": seen["key"], "what": what})
        if again.ok and (again.value["sessionId"], again.value.get("runId")) == (seen["sessionId"], seen.get("runId")):
            word = CleanupWord((yield port.clear(what, *_captured(again.value))))
    if word is not CleanupWord.DONE:
        return _not_cleared(what, seen, word)
    done = {"status": "ok", "key": seen["key"], "stop": report.to_json()}
    if what == "delete":
        return {**done, "deleted": True}
    now: SessionAnswer = yield port.asked("session", {"key": seen["key"]})
    new = {"sessionId": now.value["sessionId"]} if now.ok else {}
    return {**done, **new, "previousSessionId": seen["sessionId"]}


def _not_cleared(what: str, seen: Mapping[str, Any], word: CleanupWord) -> dict[str, Any]:
    refusal = DeleteRefused if what == "delete" else ResetRefused
    status = "forbidden" if word is CleanupWord.FORBIDDEN else "error"
    text = str(refusal(seen["key"], word.value))
    return {"status": status, "error": text, "reason": word.value, "what": what, "key": seen["key"]}
