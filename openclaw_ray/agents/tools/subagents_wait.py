"""``subagents wait``: wait a while for children (SPEC.md B4). It consumes nothing and cancels nothing.

1. The slot is given back meanwhile. All have ended well: ``completed``; one has not: ``attention``, at once.
2. What is not a child of this session is ``unavailable``, at once. Else, after the time: ``timeout``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_ray.agents.tools.subagents_stop import PAGE
from openclaw_ray.agents.tools.tool import Caller, Steps, Within
from openclaw_ray.core.errors import ToolInputError
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.subagent_rows import ChildFacts, child_row
from openclaw_ray.core.targets import resolve
from openclaw_ray.core.tool_results import ToolResult

__all__ = ["wait"]

_NAME = "subagents"
_SECONDS = 30
_MOST = 32
_LOOK_EVERY = 2.0
"""Ends that are told to nobody are found by looking."""


def wait(caller: Caller, values: Mapping[str, Any]) -> Steps:
    """Of ``taskIds``, or of all active children."""
    names = _names(values.get("taskIds"))
    deadline = time.monotonic() + values.get("timeoutSeconds", _SECONDS)
    children: list[ChildFacts] = yield caller.port.look("children", PAGE)
    now = round(time.time() * 1000)
    if names is None:
        meant = [facts for facts in children if facts.active]
    else:
        found = [resolve(name, children, now) for name in names]
        if missing := [each.text for each in found if each.child is None]:
            known = [each.child for each in found if each.child is not None]
            return _result("unavailable", known, error="; ".join(missing))
        meant = [each.child for each in found if each.child is not None]
    runs = list(dict.fromkeys(facts.run_id for facts in meant))
    by_run = {facts.run_id: facts for facts in meant}
    while True:
        waited = [by_run[run] for run in runs]
        open_ones = [facts for facts in waited if not RunState(facts.state).terminal]
        if any(RunState(facts.state).terminal and facts.state != RunState.SUCCEEDED for facts in waited):
            return _result("attention", waited)
        if not open_ones:
            return _result("completed", waited)
        left = deadline - time.monotonic()
        if left <= 0:
            return _result("timeout", waited)
        ends = tuple(caller.port.completion(facts.run_id) for facts in open_ones)
        yield Within(ends, min(left, _LOOK_EVERY), first=True, frees_slot=True)
        again: list[ChildFacts] = yield caller.port.look("children", PAGE)
        by_run |= {run: facts for run in by_run for facts in again if _goes_on(by_run[run], facts)}


def _goes_on(old: ChildFacts, facts: ChildFacts) -> bool:
    """Whether it is that run, or the one that goes on for it since it was steered."""
    return facts.run_id == old.run_id or old.run_id in facts.replaces


def _names(given: Sequence[Any] | None) -> list[str] | None:
    if given is None:
        return None
    if not 1 <= len(given) <= _MOST or not all(isinstance(each, str) for each in given):
        raise ToolInputError(_NAME, "taskIds", f"it is a list of 1 to {_MOST} run ids")
    return list(given)


def _result(reason: str, waited: Sequence[ChildFacts], **more: Any) -> ToolResult:
    now = round(time.time() * 1000)
    rows = [child_row(facts, index, now) for index, facts in enumerate(waited, 1)]
    return ToolResult(_NAME, {"reason": reason, "tasks": rows, **more})
