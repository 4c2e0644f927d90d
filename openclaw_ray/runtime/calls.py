"""``rt.call(name, params)``: what OpenClaw's gateway takes as RPC, by its names, as calls of a runtime.

1. The table has each call with its parameters; names and values that are not in it are refused before anything is
   done, with the nearest name.
2. A stop is answered with the report at every entrance: counts, and a row for each session (SPEC.md G3, N7).
3. ``sessions.abort`` stops a session's run and all below; what is in line behind it goes only with ``clearQueued``.
   With ``runId`` it is that run with the children that it has spawned. ``chat.abort`` without ``runId`` is the
   session's present run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents.sending import SEND_SECONDS
from openclaw_ray.core.errors import ToolInputError, UnknownCall
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.message import MessageMode
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import refusal_text

if TYPE_CHECKING:
    from openclaw_ray.runtime.operating import Operating

__all__ = ["CALLS", "call"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its parameters, and what does it with the values, the name and a timeout in seconds."""

    parameters: tuple[Parameter, ...]
    work: Callable[[Operating, Mapping[str, Any], str, float | None], dict[str, Any]]


def call(runtime: Operating, name: str, params: Mapping[str, Any] | None, timeout: float | None) -> dict[str, Any]:
    """Do one call.

    Raises:
        UnknownCall: there is none of that name.
        ToolInputError: a parameter is unknown, missing or of another type.
    """
    found = CALLS.get(name)
    if found is None:
        raise UnknownCall(name, tuple(CALLS))
    return found.work(runtime, read_params(name, found.parameters, params or {}), name, timeout)


# --------------------------------------------------------------------------- the calls


def _sessions_abort(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    if "runId" in values:
        if values.get("clearQueued"):
            raise ToolInputError(name, "clearQueued", "it is of a session; with runId only that run is stopped")
        return _abort_run(rt, values, name, timeout)
    key = _session(values, name)
    if values.get("clearQueued"):
        return _said(rt.stop(key, timeout=timeout))
    return _said(rt._stopping(key=key, scope="session").result(timeout))


def _chat_abort(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    if "runId" in values:
        return _abort_run(rt, values, name, timeout)
    return _said(rt._stopping(key=_session(values, name), scope="run").result(timeout))


def _session(values: Mapping[str, Any], name: str) -> str:
    if "key" not in values:
        raise ToolInputError(name, "key", "it is required, unless a runId is given")
    return normalise_key(values["key"])


def _abort_run(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    """One run with what it has spawned; that it is of the session which was named, if one was, is checked first."""
    run = values["runId"]
    key = normalise_key(values["key"]) if "key" in values else None
    for kin in rt._query("view", "kin", {"requester": "", "target": run}, 1, 0):
        if kin.facts.run_id != run:
            raise ToolInputError(name, "runId", f"{run!r} is no run id")
        if key not in (None, kin.facts.session_key):
            raise ToolInputError(name, "runId", f"run {run} is of {kin.facts.session_key}, not of {key}")
    return _said(rt.stop_run(run, timeout=timeout))


def _said(report: StopReport) -> dict[str, Any]:
    stopped = [row.run_id for row in report.rows if row.outcome in ("stopped", "forced")]
    return {"ok": report.failed == 0, "aborted": bool(stopped), "runIds": stopped, "stop": report.to_json()}


def _sessions_delete(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    report = rt.delete(values["key"], timeout=timeout)
    return {"ok": True, "key": normalise_key(values["key"]), "deleted": True, "stop": report.to_json()}


def _sessions_list(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    limit, offset = values.get("limit", _LIMIT), values.get("offset", 0)
    filters = {ours: values[theirs] for theirs, ours in _FILTERS.items() if theirs in values}
    if "requester" in filters:
        filters["requester"] = normalise_key(filters["requester"])
    rows = rt.sessions(limit=limit + 1, offset=offset, **filters)
    more = len(rows) > limit
    rows = rows[:limit]
    found = {"count": len(rows), "sessions": rows, "hasMore": more, "limitApplied": limit}
    return {**found, "nextOffset": offset + limit} if more else found


def _history(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    limit, offset = values.get("limit", _LIMIT), values.get("offset", 0)
    rows = rt.history(values["key"], limit=limit + 1, offset=offset)
    more = len(rows) > limit
    rows = rows[-limit:]
    found = {"sessionKey": normalise_key(values["key"]), "messages": rows, "offset": offset, "hasMore": more}
    return {**found, "nextOffset": offset + limit} if more else found


def _sessions_send(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    from openclaw_ray.core.errors import SpawnError, SpawnForbidden

    seconds = values.get("timeoutSeconds", SEND_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise ToolInputError(name, "timeoutSeconds", f"it is a number of 0 or more, not {seconds!r}")
    try:
        sent = rt.send(
            values.get("key"),
            values["message"],
            seconds,
            label=values.get("label"),
            agent_id=values.get("agentId"),
            mode=values.get("mode"),
            requester=values.get("requesterSessionKey"),
        )
    except (SpawnError, SpawnForbidden) as error:
        receipt = error.receipt
        return {"status": receipt.status, "error": refusal_text(str(receipt.error), receipt.value, receipt.maximum)}
    except ValueError as error:
        raise ToolInputError(name, "message" if values["message"].strip() == "" else "key", str(error)) from None
    return sent.to_json()


_LIMIT = 100
_MOST = 1_000
_FILTERS = {"agentId": "agent", "spawnedBy": "requester", "status": "state"}
_KEY = Parameter("key", Kind.TEXT, also=("sessionKey", "session_key"), required=True)
_ANY_KEY = Parameter("key", Kind.TEXT, also=("sessionKey", "session_key"))
_RUN = Parameter("runId", Kind.TEXT)
_SENT = (
    _ANY_KEY,
    Parameter("label", Kind.TEXT),
    Parameter("agentId", Kind.TEXT),
    Parameter("message", Kind.TEXT, required=True),
    Parameter("timeoutSeconds", Kind.ANY),
    Parameter("mode", Kind.TEXT, words=tuple(mode.value for mode in MessageMode)),
    Parameter("requesterSessionKey", Kind.TEXT),
)
_PAGE = (
    Parameter("limit", Kind.WHOLE, least=1, most=_MOST),
    Parameter("offset", Kind.WHOLE, least=0),
)
_LISTED = (
    *_PAGE,
    Parameter("agentId", Kind.TEXT),
    Parameter("spawnedBy", Kind.TEXT),
    Parameter("status", Kind.TEXT, words=tuple(state.value for state in SessionState)),
)
CALLS: Mapping[str, Call] = {
    "chat.abort": Call((_ANY_KEY, _RUN), _chat_abort),
    "chat.history": Call((_KEY, *_PAGE), _history),
    "sessions.abort": Call((_ANY_KEY, _RUN, Parameter("clearQueued", Kind.FLAG)), _sessions_abort),
    "sessions.delete": Call((_KEY,), _sessions_delete),
    "sessions.history": Call((_KEY, *_PAGE), _history),
    "sessions.list": Call(_LISTED, _sessions_list),
    "sessions.send": Call(_SENT, _sessions_send),
}
"""The calls that there are, sorted by name."""
