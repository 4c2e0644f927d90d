"""What an agent returned or raised, as an `Outcome` that the registry can judge (DESIGN.md 7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from openclaw_ray.agents.pickling import Unpicklable, pickle_value
from openclaw_ray.agents.text import bounded, cut_utf8, describe, said
from openclaw_ray.agents.traces import agent_traceback
from openclaw_ray.core.errors import Cancelled, TurnYielded
from openclaw_ray.core.lifecycle import Cause, ResultStatus, RunState
from openclaw_ray.core.protocol.messages import TEXT_LIMIT, Outcome
from openclaw_ray.core.results import ErrorInfo, Result

__all__ = ["MESSAGE_LIMIT", "control_flow", "failed", "outcome_of_exception", "outcome_of_return"]

MESSAGE_LIMIT = 4_000
"""Characters of an error message that are kept."""

_CONTROL_FLOW = (TurnYielded, Cancelled, asyncio.CancelledError)
_STATES = {
    ResultStatus.OK: RunState.SUCCEEDED,
    ResultStatus.ERROR: RunState.FAILED,
    ResultStatus.TIMEOUT: RunState.TIMED_OUT,
    ResultStatus.CANCELLED: RunState.CANCELLED,
    ResultStatus.LOST: RunState.LOST,
}


def failed(kind: str, message: str, cause: Cause, traceback: str | None = None) -> Outcome:
    """The outcome of a failed turn; ``kind`` is an exception's class name or a cause word."""
    error = ErrorInfo(type=kind, message=bounded(message, MESSAGE_LIMIT) or kind, traceback=traceback, cause=cause)
    return Outcome(state=RunState.FAILED, error=error)


def outcome_of_return(returned: Any) -> tuple[Outcome, Any]:
    """The outcome of an agent that returned, and the object to keep if its pickle is too large to travel.

    `str` is text; `None` is no output; a `Result` counts as it is; anything else is the value, with a bounded
    JSON or repr of it as text. A value that cannot be pickled makes the turn failed, with cause
    ``unpicklable``.
    """
    if returned is None:
        return Outcome(state=RunState.SUCCEEDED, missing=True), None
    if isinstance(returned, str):
        text, cut = cut_utf8(returned, TEXT_LIMIT)
        return Outcome(state=RunState.SUCCEEDED, text=text, text_truncated=cut), None
    if isinstance(returned, Result):
        return _of_result(returned)
    return _with_value(RunState.SUCCEEDED, None, returned, None)


def outcome_of_exception(exc: BaseException, cancelled: str | None) -> Outcome:
    """The outcome of an agent that raised.

    Args:
        exc: what came out of the agent.
        cancelled: the reason for which the turn was told to end (``timeout``, ``stopped``), or `None`.
    """
    exc = control_flow(exc)
    if isinstance(exc, TurnYielded):
        text = None if exc.message is None else cut_utf8(str(exc.message), TEXT_LIMIT)[0]
        return Outcome(state=RunState.SUCCEEDED, text=text, missing=text is None)
    if cancelled is not None and isinstance(exc, Cancelled | asyncio.CancelledError):
        return _cancelled(cancelled)
    if isinstance(exc, SystemExit):
        code = 0 if exc.code is None else exc.code
        return failed("SystemExit", f"the agent called sys.exit({said(code, 200)})", Cause.EXITED)
    if isinstance(exc, KeyboardInterrupt):
        return failed("KeyboardInterrupt", "the agent raised KeyboardInterrupt (exit code 130)", Cause.EXITED)
    kind = type(exc).__name__
    message = said(exc, MESSAGE_LIMIT)
    if isinstance(exc, Cancelled | asyncio.CancelledError):
        message = f"{message}: raised although nobody had stopped the run"
    return failed(kind, message, Cause.RAISED, agent_traceback(exc))


def control_flow(exc: BaseException) -> BaseException:
    """The cancel or yield that ``exc`` is, also if a task group has wrapped it; else ``exc`` itself."""
    if isinstance(exc, BaseExceptionGroup):
        leaves = [control_flow(leaf) for leaf in exc.exceptions]
        if all(isinstance(leaf, _CONTROL_FLOW) for leaf in leaves):
            return next((leaf for leaf in leaves if isinstance(leaf, TurnYielded)), leaves[0])
    return exc


def _cancelled(reason: str) -> Outcome:
    if reason == Cause.TIMEOUT:
        error = ErrorInfo(type=reason, message="the run's deadline passed", cause=Cause.TIMEOUT)
        return Outcome(state=RunState.TIMED_OUT, error=error)
    error = ErrorInfo(type=reason, message=f"the run was ended: {reason}", cause=Cause.STOPPED)
    return Outcome(state=RunState.CANCELLED, error=error)


def _of_result(result: Result[Any]) -> tuple[Outcome, Any]:
    try:
        status = ResultStatus(result.status)
    except ValueError:
        message = f"the agent returned a Result whose status is {describe(result.status, 0, 100)}"
        return failed("ValueError", message, Cause.RAISED), None
    error = result.error
    if status is not ResultStatus.OK and error is None:
        error = ErrorInfo(
            type=status, message=f"the agent returned a Result with status {status!s}", cause=Cause.RAISED
        )
    text = None if result.text is None else str(result.text)
    outcome, kept = _with_value(_STATES[status], text, result.value, error)
    if result.text_truncated and not outcome.text_truncated:  # a child's result, handed on
        outcome = replace(outcome, text_truncated=True)
    return outcome, kept


def _with_value(state: RunState, text: str | None, value: Any, error: ErrorInfo | None) -> tuple[Outcome, Any]:
    data, held = None, 0
    if value is not None:
        try:
            pickled = pickle_value(value)
        except Unpicklable as exc:
            return failed("Unpicklable", str(exc), Cause.UNPICKLABLE), None
        data = pickled.data
        held = 0 if data is not None else pickled.size
        text = describe(value, pickled.size) if text is None else text
    text, cut = (None, False) if text is None else cut_utf8(text, TEXT_LIMIT)
    outcome = Outcome(
        state=state,
        text=text,
        text_truncated=cut,
        missing=state is RunState.SUCCEEDED and text is None,
        value=data,
        held=held,
        error=error,
    )
    return outcome, value if held else None
