"""``rt.call(name, params)``: what OpenClaw's gateway takes as RPC, by its names, as calls of a runtime.

1. The table has each call with its parameters; names and values that are not in it are refused before anything is
   done, with the nearest name.
2. A stop is answered with the report at every entrance: counts, and a row for each session (SPEC.md G3, N7).
3. ``sessions.abort`` stops a session's run and all below; what is in line behind it goes only with ``clearQueued``.
   With ``runId`` it is that run with the children that it has spawned. ``chat.abort`` without ``runId`` is the
   session's present run alone.
4. Sessions are looked at and changed by the steps of the tools, so that what those refuse is refused here, in the same
   words. A list has no more than 64 KiB of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents.sending import SEND_SECONDS
from openclaw_ray.agents.tools.session_steps import list_sessions, read_history
from openclaw_ray.agents.tools.session_tables import CHANGED, HISTORY, LINEAGE, LISTED
from openclaw_ray.agents.tools.sessions_list import list_filters
from openclaw_ray.core.errors import ToolInputError, UnknownCall
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.message import MessageMode
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.session_rows import STATUS_WORDS
from openclaw_ray.core.tool_params import Kind, Parameter, read_params
from openclaw_ray.core.tool_results import refusal_text
from openclaw_ray.runtime.session_port import RuntimePort, done_or_raised, driven

if TYPE_CHECKING:
    from openclaw_ray.runtime.operating import Operating

__all__ = ["CALLS", "call"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its parameters, and what does it with the values, the name and a timeout in seconds."""

    parameters: tuple[Parameter, ...]
    work: Callable[[Operating, Mapping[str, Any], str, float | None], dict[str, Any]]
    refused: Mapping[str, str] = field(default_factory=dict)


def call(runtime: Operating, name: str, params: Mapping[str, Any] | None, timeout: float | None) -> dict[str, Any]:
    """Do one call.

    Raises:
        UnknownCall: there is none of that name.
        ToolInputError: a parameter is unknown, missing or of another type.
    """
    found = CALLS.get(name)
    if found is None:
        raise UnknownCall(name, tuple(CALLS))
    return found.work(runtime, read_params(name, found.parameters, params or {}, found.refused), name, timeout)


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
    by = "" if rt._asker is None else rt._asker.session
    for kin in rt._query("view", "kin", {"requester": by, "target": run}, 1, 0, *rt._bound):
        if kin.facts.run_id != run:
            raise ToolInputError(name, "runId", f"{run!r} is no run id")
        if key not in (None, kin.facts.session_key):
            raise ToolInputError(name, "runId", f"run {run} is of {kin.facts.session_key}, not of {key}")
    return _said(rt.stop_run(run, timeout=timeout))


def _said(report: StopReport) -> dict[str, Any]:
    stopped = [row.run_id for row in report.rows if row.outcome in ("stopped", "forced")]
    return {"ok": report.failed == 0, "aborted": bool(stopped), "runIds": stopped, "stop": report.to_json()}


def _sessions_delete(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    report = rt.delete(values["key"], timeout=timeout, **_seen(values))
    return {"ok": True, "key": normalise_key(values["key"]), "deleted": True, "stop": report.to_json()}


def _sessions_reset(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    report = rt.reset(values["key"], timeout=timeout, **_seen(values))
    new = (rt.session(values["key"]) or {}).get("sessionId")
    return {"ok": True, "key": normalise_key(values["key"]), "sessionId": new, "stop": report.to_json()}


def _sessions_patch(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    entry = rt.patch(values["key"], label=values["label"], **_seen(values))
    return {"ok": True, "key": entry["key"], "entry": entry}


def _seen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"session_id": values.get("sessionId"), "lifecycle_revision": values.get("lifecycleRevision")}


def _sessions_list(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    given = list_filters(name, values)
    if given.get("status") in _STATES:
        given["state"] = [given.pop("status")]
    return done_or_raised(driven(list_sessions(RuntimePort(rt), given)))


def _history(rt: Operating, values: Mapping[str, Any], name: str, timeout: float | None) -> dict[str, Any]:
    raw = bool(values.get("includeRaw"))
    if raw and rt._asker is not None:
        raise ToolInputError(name, "includeRaw", "what is stored is shown to the operator alone")
    return done_or_raised(driven(read_history(RuntimePort(rt), name, values, raw=raw)), values["sessionKey"])


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
            sender=values.get("sender"),
        )
    except (SpawnError, SpawnForbidden) as error:
        receipt = error.receipt
        return {"status": receipt.status, "error": refusal_text(str(receipt.error), receipt.value, receipt.maximum)}
    except ValueError as error:
        about = "message" if values["message"].strip() == "" else "sender" if str(error)[:6] == "sender" else "key"
        raise ToolInputError(name, about, str(error)) from None
    return sent.to_json()


_STATES = tuple(state.value for state in SessionState)
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
    Parameter("sender", Kind.ANY),
)
_LISTED = (
    *(parameter for parameter in LISTED if parameter.name != "limit"),
    Parameter("limit", Kind.WHOLE, least=1, most=1_000),
    Parameter("status", Kind.TEXT, words=(*_STATES, *STATUS_WORDS)),
)
_READ = (*HISTORY, Parameter("includeRaw", Kind.FLAG))
CALLS: Mapping[str, Call] = {
    "chat.abort": Call((_ANY_KEY, _RUN), _chat_abort),
    "chat.history": Call(_READ, _history),
    "sessions.abort": Call((_ANY_KEY, _RUN, Parameter("clearQueued", Kind.FLAG)), _sessions_abort),
    "sessions.delete": Call(CHANGED["delete"], _sessions_delete),
    "sessions.history": Call(_READ, _history),
    "sessions.list": Call(_LISTED, _sessions_list),
    "sessions.patch": Call(CHANGED["patch"], _sessions_patch, LINEAGE),
    "sessions.reset": Call(CHANGED["reset"], _sessions_reset),
    "sessions.send": Call(_SENT, _sessions_send),
}
"""The calls that there are, sorted by name."""
