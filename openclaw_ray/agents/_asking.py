"""What a program passes to `turn.spawn` or `turn.map`, checked and made a `SpawnRequest`."""

from __future__ import annotations

import math
from typing import Any, Final

from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.agents.text import short_repr, utf8_size
from openclaw_ray.core.errors import InvalidItem, SpawnError, SpawnForbidden, TaskTooLarge
from openclaw_ray.core.limits import TASK_MAX_BYTES
from openclaw_ray.core.results import Receipt

__all__ = ["MISSING", "accepted", "item_request", "run_timeout", "spawn_request"]


class _Missing:
    """Not given, where `None` is a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_LABEL_LIMIT = 512  # characters (SPEC.md B1)


def spawn_request(
    task: str,
    *,
    agent_id: str | None,
    agent: str | None,
    input: Any,
    label: str | None,
    run_timeout_seconds: float | None,
    expects_completion_message: bool,
) -> SpawnRequest:
    """The request of one `turn.spawn` (SPEC.md B1).

    Raises:
        InvalidItem: nothing to do, or a text that is none.
        TaskTooLarge: the task text has more than `TASK_MAX_BYTES` bytes.
        TypeError: ``agent`` and ``agent_id`` name two agents.
        ValueError: another parameter cannot be as it is.
    """
    if agent is not None:
        if agent_id not in (None, agent):
            raise TypeError(f"agent={agent!r} and agent_id={agent_id!r} are two names for one parameter")
        agent_id = agent
    if label is not None:
        label = str(label).strip() or None
        if label is not None and len(label) > _LABEL_LIMIT:
            raise ValueError(f"label has {len(label)} characters; the limit is {_LABEL_LIMIT}")
    has_input = input is not MISSING
    return SpawnRequest(
        task=_task_text(task, input, has_input, 0),
        agent_id=agent_id,
        input=input if has_input else None,
        has_input=has_input,
        label=label,
        timeout=run_timeout(run_timeout_seconds, "run_timeout_seconds"),
        expects=bool(expects_completion_message),
    )


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
    if receipt.status == "forbidden":
        raise SpawnForbidden(receipt)
    raise SpawnError(receipt)


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
