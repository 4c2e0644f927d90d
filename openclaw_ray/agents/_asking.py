"""What a program passes to `turn.spawn` or `turn.map`, checked and made a `SpawnRequest`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.agents.text import short_repr, utf8_size
from openclaw_ray.core.bounds import SANDBOX_BACKEND, TASK_MAX_BYTES
from openclaw_ray.core.errors import (
    InboxFull,
    InvalidItem,
    SandboxUnavailable,
    SpawnError,
    SpawnForbidden,
    TaskTooLarge,
)
from openclaw_ray.core.results import INBOX, Receipt
from openclaw_ray.core.session_facts import ChildAsk

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import AttachmentLimits
    from openclaw_ray.core.thread_rules import Bindings

__all__ = ["MISSING", "accepted", "isolated", "item_request", "run_timeout", "spawn_request"]


class _Missing:
    """Not given, where `None` is a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_NOTHING: Final = ChildAsk()


def spawn_request(
    task: str,
    *,
    agent_id: str | None,
    agent: str | None,
    input: Any,
    label: str | None,
    run_timeout_seconds: float | None,
    expects_completion_message: bool,
    task_name: str | None = None,
    params: Mapping[str, Any] | None = None,
    caller: str = "",
    transcript: bool = True,
    attachments: AttachmentLimits | None = None,
    bindings: Bindings | None = None,
) -> SpawnRequest:
    """The request of one `turn.spawn` (SPEC.md B1).

    Args:
        params: the other parameters of ``sessions_spawn``, snake_case.
        caller: agent id of the requester.
        transcript: it has a transcript that could be branched.
        attachments: bounds of what it may hand on as files, `None` where that is not enabled.
        bindings: thread bindings in force for it, `None` where there is no channel for any.

    Raises:
        InvalidItem: nothing to do, or a text that is none.
        TaskTooLarge: the task text has more than `TASK_MAX_BYTES` bytes.
        TypeError: ``agent`` and ``agent_id`` name two agents; or there is no such parameter.
        ValueError: another parameter cannot be as it is.
        SpawnForbidden, SpawnError: what the parameters mean together is refused, or not in effect yet.
        ToolInputError: a parameter is of another type.
    """
    if agent is not None:
        if agent_id not in (None, agent):
            raise TypeError(f"agent={agent!r} and agent_id={agent_id!r} are two names for one parameter")
        agent_id = agent
    has_input = input is not MISSING
    text = _task_text(task, input, has_input, 0)
    request = SpawnRequest(
        task=text,
        agent_id=agent_id,
        input=input if has_input else None,
        has_input=has_input,
        timeout=run_timeout(run_timeout_seconds, "run_timeout_seconds"),
        expects=bool(expects_completion_message),
    )
    if label is None and task_name is None and not params:
        return request
    from openclaw_ray.agents._planning import planned_request  # a plain spawn does not pay for it

    options = {**(params or {}), "agent_id": agent_id, "label": label, "task_name": task_name}
    made = planned_request(
        request, options, caller=caller, transcript=transcript, limits=attachments, bindings=bindings
    )
    if isinstance(made, Receipt):
        raise _error_of(made)
    return made


def isolated(request: SpawnRequest) -> SpawnRequest:
    """The request without the branch that it asks for (`openclaw_ray.core.branching`)."""
    ask = request.ask
    if ask is None:
        return request
    ask = replace(ask, context="isolated")
    return replace(request, ask=None if ask == _NOTHING else ask)


def item_request(agent_id: str, item: Any, index: int, timeout: float | None) -> SpawnRequest:
    """The request of one map item: a `str` is the task text, anything else the input (DESIGN.md 7).

    Raises:
        InvalidItem: an empty text, or one that is not valid Unicode.
        TaskTooLarge: a text of more than `TASK_MAX_BYTES` bytes.
    """
    is_text = isinstance(item, str)
    return SpawnRequest(
        task=_task_text(item if is_text else "", item, not is_text, index),
        agent_id=agent_id,
        input=None if is_text else item,
        has_input=not is_text,
        timeout=timeout,
        expects=False,
        route="map",
        index=index,
    )


def accepted(receipt: Receipt) -> Receipt:
    """The receipt, if its child was admitted.

    Raises:
        SpawnForbidden: a policy refused it.
        SpawnError: it cannot be done as asked.
    """
    if receipt.accepted:
        return receipt
    raise _error_of(receipt)


def _error_of(receipt: Receipt) -> SpawnError | SpawnForbidden:
    if receipt.limit == INBOX:
        return InboxFull(receipt)
    if receipt.limit == SANDBOX_BACKEND:
        return SandboxUnavailable(receipt)
    return SpawnForbidden(receipt) if receipt.status == "forbidden" else SpawnError(receipt)


def _task_text(task: Any, input: Any, has_input: bool, index: int) -> str:
    if not isinstance(task, str):
        raise InvalidItem(index, f"the task is text, not {type(task).__name__}; pass other objects as input=…")
    if not task.strip():
        if not has_input:
            raise InvalidItem(index, "an empty task and no input: there is nothing to do")
        return short_repr(input)
    try:
        size = len(task) if len(task) > TASK_MAX_BYTES else utf8_size(task)
    except UnicodeEncodeError:
        why = "the task is not valid Unicode (an undecodable file name?); pass it as input=…"
        raise InvalidItem(index, why) from None
    if size > TASK_MAX_BYTES:
        raise TaskTooLarge(len(task.encode("utf-8", "replace")), TASK_MAX_BYTES)
    return str.__str__(task)


def run_timeout(value: Any, name: str) -> float | None:
    """A run's timeout in seconds; 0 is none at all, `None` what is configured.

    Raises:
        ValueError: it is neither.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is a number of seconds, 0 for no timeout, not {short_repr(value)}")
    return value
