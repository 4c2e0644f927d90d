"""``subagents cancel`` and ``subagents kill``: stop a child with all that is below it (SPEC.md B4, G1, G2).

1. A target is looked for among one's own children; a session key or run id may also be of what is further below.
2. What is there but not below is refused as ``forbidden``: oneself, one's requester, a sibling, a stranger.
3. Children are stopped side by side. The verdict is the journal's: the rows of the stop's report, not what was seen
   before. What had ended meanwhile was not killed.
4. What cannot be confirmed as ended within 15 seconds is an error; the stop stays in force.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias

from openclaw_ray.agents.tools.tool import Caller, Steps, Within
from openclaw_ray.core.errors import NotControlled, ToolInputError
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.results import StopReport
from openclaw_ray.core.subagent_rows import ChildFacts, KinFacts, shown_label
from openclaw_ray.core.targets import resolve
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["PAGE", "cancel", "kill", "targets"]

PAGE = 200
"""Ended children that are looked at."""
_NAME = "subagents"
_WITHIN = 15.0
_ALL = ("all", "*")
_DOES = {"steer": "steers"}
_KIN = {
    "itself": "that is this session itself",
    "above": "that is the session that this one works for",
    "other": "it is not below this session",
}

_Finding: TypeAlias = Generator[Future[Any] | Within, Any, "list[ChildFacts] | ToolResult"]


@dataclass(frozen=True, slots=True)
class _Stopped:
    """What became of the stops."""

    killed: list[ChildFacts]
    over: list[ChildFacts]
    """They had ended before."""
    cascade: int
    """Runs below them that were stopped, too."""
    failed: list[str]
    reports: list[StopReport]


def cancel(caller: Caller, values: Mapping[str, Any]) -> Steps:
    """``cancelled``, ``error`` or ``forbidden``."""
    found = yield from targets(caller, "cancel", values)
    if isinstance(found, ToolResult):
        return found
    done = yield from _stop(caller, found)
    common = _common(done)
    if done.failed:
        return _error("; ".join(done.failed), **common)
    if not done.killed and not done.cascade:
        ended = ", ".join(f"{facts.run_id} ({facts.state})" for facts in done.over) or "no child is active"
        return _error(f"nothing to cancel: {ended}", **common)
    one = found[0] if len(found) == 1 else None
    named = {} if one is None else {"taskId": one.run_id, "runId": one.run_id, "sessionKey": one.session_key}
    return ToolResult(_NAME, {"status": "cancelled", **named, **common, "text": _text("cancelled", done)})


def kill(caller: Caller, values: Mapping[str, Any]) -> Steps:
    """``ok``, ``done``, ``error`` or ``forbidden``."""
    found = yield from targets(caller, "kill", values)
    if isinstance(found, ToolResult):
        return found
    done = yield from _stop(caller, found)
    common = _common(done)
    if done.failed:
        return _error("; ".join(done.failed), errors=done.failed, **common)
    over = bool(found) and not done.killed
    return ToolResult(_NAME, {"status": "done" if over else "ok", **common, "text": _text("killed", done)})


def _common(done: _Stopped) -> dict[str, Any]:
    return {
        "killed": len(done.killed),
        "labels": [shown_label(facts) for facts in done.killed],
        "cascadeKilled": done.cascade,
        "forced": sum(report.forced for report in done.reports),
        "finished": sum(report.finished for report in done.reports),
        "failed": len(done.failed),
        "sessions": [row.to_json() for report in done.reports for row in report.rows],
    }


def _text(word: str, done: _Stopped) -> str:
    parts = [f"{word} {len(done.killed)}" if done.killed else f"nothing to be {word}"]
    if done.cascade:
        parts.append(f"{done.cascade} below were stopped with it")
    parts += [f"{shown_label(facts)}: already {facts.state}" for facts in done.over]
    return "; ".join(parts)


def _error(text: str, **more: Any) -> ToolResult:
    return ToolResult(_NAME, {"status": "error", "error": text, **more})


def targets(caller: Caller, action: str, values: Mapping[str, Any], *, all_words: bool = True) -> _Finding:
    """The runs that a call means (1, 2), or its refusal; ``all`` is one that is meant by no name without ``all_words``.
    """
    given = [str(values[name]) for name in ("taskId", "target") if name in values]
    if len(given) > 1:
        raise ToolInputError(_NAME, "target", "it comes with no taskId or runId: one of them says which child")
    word = given[0].strip() if given else ""
    children: list[ChildFacts] = yield caller.port.look("children", PAGE)
    if word.casefold() in _ALL and all_words:
        return [facts for facts in children if facts.active]
    found = resolve(word, children, round(time.time() * 1000))
    if found.child is not None:
        return [found.child]
    if found.error in ("unknown", "unknown_session"):
        name = normalise_key(word) if ":" in word else word
        kin: list[KinFacts] = yield caller.port.look("kin", 1, name)
        if kin and kin[0].kinship == "below":
            return [kin[0].facts]
        if kin:
            does = _DOES.get(action, "stops")
            text = f"{action} {word}: {_KIN[kin[0].kinship]}; a session {does} only what is below it"
            return ToolResult(_NAME, {"status": "forbidden", "error": text})
    return _error(f"{action}: {found.text}", reason=found.error)


def _stop(caller: Caller, targets: Sequence[ChildFacts]) -> Generator[Future[Any] | Within, Any, _Stopped]:
    """Stop them side by side, and read what the journal says (3, 4)."""
    stops = caller.port.stop([facts.run_id for facts in targets])
    yield Within(tuple(stops), _WITHIN)
    done = _Stopped([], [], 0, [], [])
    cascade = 0
    for facts, stop in zip(targets, stops, strict=True):
        if not stop.done():
            done.failed.append(f"{facts.run_id} is still active after {_WITHIN:g} s; its stop is in force: ask again")
            continue
        if (error := stop.exception()) is not None:
            if not isinstance(error, NotControlled):
                raise error
            done.failed.append(str(error))
            continue
        report: StopReport = stop.result()
        done.reports.append(report)
        words = {row.run_id: row.outcome for row in report.rows}
        ended = [run for run, word in words.items() if word in ("stopped", "forced")]
        cascade += sum(run != facts.run_id for run in ended)
        done.failed.extend(f"{run} could not be confirmed as ended" for run, word in words.items() if word == "failed")
        if facts.run_id in ended:
            done.killed.append(facts)
        elif facts.run_id not in words or words[facts.run_id] == "finished":
            done.over.append(facts)
    return _Stopped(done.killed, done.over, cascade, done.failed, done.reports)
