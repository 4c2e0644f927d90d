"""What comes back: results, completions, receipts and usage, as typed objects.

Their JSON form (``to_json``) has OpenClaw's camelCase names.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openclaw_ray.core.compact import compact
from openclaw_ray.core.death import Death
from openclaw_ray.core.lifecycle import ResultStatus

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import Attached

__all__ = ["INBOX", "Completion", "ErrorInfo", "Receipt", "Result", "StopReport", "StopRow", "Usage", "camel_dict"]

T = TypeVar("T", covariant=True)
INBOX = "inbox"
"""``Receipt.limit`` of a message that found a full inbox."""


def camel_dict(fields: dict[str, Any]) -> dict[str, Any]:
    """``fields`` with camelCase names and without the absent ones (`None`)."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None:
            continue
        head, *rest = name.split("_")
        out[head + "".join(part.capitalize() for part in rest)] = value
    return out


@compact
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of a run or a subtree. Unknown is `None`, never zero.

    Attributes:
        input_tokens, output_tokens: counts, or `None` where nobody reported them.
        cost: in the currency of the configured prices, or `None`.
        partial: True if a part of the subtree did not report.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    partial: bool = False

    def plus(self, other: Usage) -> Usage:
        """The sum of two reports of one run: what one side did not say is as the other side has it."""

        def add(a: Any, b: Any) -> Any:
            return a if b is None else b if a is None else a + b

        return Usage(
            add(self.input_tokens, other.input_tokens),
            add(self.output_tokens, other.output_tokens),
            add(self.cost, other.cost),
            self.partial or other.partial,
        )

    def with_part(self, part: Usage) -> Usage:
        """This sum over a subtree with one more part of it; one that reported nothing makes it partial."""
        if part.unknown:
            return self if self.partial else replace(self, partial=True)
        return self.plus(part)

    def with_below(self, below: Usage) -> Usage:
        """This run's own usage with the sum over what is below it, which is ``Usage()`` where nothing is."""
        return self if below == Usage() else below.with_part(self)

    @property
    def unknown(self) -> bool:
        """True if nothing was reported at all."""
        return self.input_tokens is None and self.output_tokens is None and self.cost is None

    def to_json(self) -> dict[str, Any]:
        """JSON form; unknown values are left out."""
        return camel_dict(asdict(self))


@compact
@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why a run did not succeed.

    Attributes:
        type: exception class name, or the runtime's cause word (`openclaw_ray.core.lifecycle.Cause`).
        message: one readable line or more, never empty.
        traceback: the agent's traceback as text, bounded; `None` if there is none.
        cause: the runtime's cause word.
        death: how the process ended, if that is the cause (``process_died``).
    """

    type: str
    message: str
    traceback: str | None = None
    cause: str = "raised"
    death: Death | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        death = None if self.death is None else self.death.to_json()
        return camel_dict({**asdict(self), "death": death})


@compact
@dataclass(frozen=True)  # no slots: ``Result[str](…)`` sets an attribute of typing's own
class Result(Generic[T]):
    """The outcome of one run (DESIGN.md 7). An agent may also return one to set its fields itself.

    Attributes:
        status: `ResultStatus`; from the runtime, never from the agent's text.
        text: the text handed up; `None` if there is none. Cut at 102,400 bytes with `text_truncated`.
        value: the Python object that the agent returned, or `None`.
        error: `ErrorInfo` if the status is not ``ok``.
        usage: tokens and cost of the run's subtree.
        missing: True if the run succeeded without delivering any output.
        partial: the last progress text of a run that timed out, was stopped or lost; never an answer.
        run_id, session_key: who ran it.
        runtime_ms: milliseconds from the first start to the end, 0 if it never started.
        index: position of the item in its map, or `None`.
        reused: True if it was taken from the journal of an earlier try (``map_id``).
    """

    status: ResultStatus = ResultStatus.OK
    text: str | None = None
    value: T | None = None
    error: ErrorInfo | None = None
    usage: Usage = field(default_factory=Usage)
    missing: bool = False
    text_truncated: bool = False
    partial: str | None = None
    run_id: str = ""
    session_key: str = ""
    runtime_ms: int = 0
    index: int | None = None
    reused: bool = False

    @property
    def ok(self) -> bool:
        """True if the run succeeded."""
        return self.status is ResultStatus.OK

    def raise_for_status(self) -> Result[T]:
        """Return self if ok.

        Raises:
            RunFailed, RunTimedOut, RunCancelled, RunLost: by status, each carrying this result's ids and error.
        """
        from openclaw_ray.core.errors import error_for_result

        if self.ok:
            return self
        raise error_for_result(self)

    def to_json(self) -> dict[str, Any]:
        """JSON form without ``value`` (any Python object)."""
        return camel_dict(
            {
                "index": self.index,
                "status": self.status.value,
                "text": self.text,
                "error": self.error.to_json() if self.error else None,
                "usage": None if self.usage.unknown else self.usage.to_json(),
                "missing": self.missing or None,
                "text_truncated": self.text_truncated or None,
                "partial": self.partial,
                "run_id": self.run_id,
                "session_key": self.session_key,
                "runtime_ms": self.runtime_ms,
                "reused": self.reused or None,
            }
        )


@compact
@dataclass(frozen=True, slots=True)
class Completion:
    """A child's end as its requester hears it (SPEC.md F2). Text is data from the child, never instruction.

    Attributes:
        key: idempotency key ``announce:v1:<childSessionKey>:<runId>``.
        result: the frozen outcome.
        child_session_key, child_session_id, run_id, agent_id, label: the child.
        status_label: readable status, made by the runtime.
        stats_line: runtime and tokens (SPEC.md F4).
        fallback: True if the requester itself was gone and this came to its requester.
        created_at: seconds since the epoch; batches are ordered by it.
        replaces: runs that were steered into this one, oldest first (SPEC.md G4).
    """

    key: str
    result: Result[Any]
    child_session_key: str
    child_session_id: str
    run_id: str
    agent_id: str
    label: str | None
    status_label: str
    stats_line: str
    fallback: bool = False
    created_at: float = 0.0
    replaces: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The result text, ``(no output)`` if there is none."""
        return self.result.text or "(no output)"

    def to_json(self) -> dict[str, Any]:
        """JSON form (``type: task_completion``); its word for a lost run is ``unknown`` (DESIGN.md 8)."""
        lost = self.result.status is ResultStatus.LOST
        return camel_dict(
            {
                "type": "task_completion",
                "source": "subagent",
                "announce_type": "subagent task",
                "child_session_key": self.child_session_key,
                "child_session_id": self.child_session_id,
                "run_id": self.run_id,
                "agent_id": self.agent_id,
                "task_label": self.label,
                "status": "unknown" if lost else self.result.status.value,
                "status_label": self.status_label,
                "result": self.text,
                "stats_line": self.stats_line,
                "fallback": self.fallback or None,
                "replaces": list(self.replaces) or None,
            }
        )


@compact
@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a spawn (SPEC.md B1).

    Attributes:
        status: ``accepted``, ``forbidden`` (a policy said no) or ``error`` (cannot be done as asked).
        run_id, session_key: the child, if accepted.
        error: what refused it: limit, value seen, config path, way out.
        limit, value, maximum, path: the refusing limit in parts, where one refused.
        retry_after: seconds after which asking again may help; `None` where it will not by itself.
        told: a message that went to a run which waited for it: ``run_id`` is that run, whose end is its requester's.
        model: the child's model as it is applied; `None` if nobody named one.
        context: ``fork`` if it begins with a branch of the requester's transcript, ``isolated`` if not; `None` where
            nothing was asked for or configured, which is ``isolated``, too.
        attachments: what is told of the files that went along.
        note: the answer to a user's command in a conversation, which starts no run (SPEC.md B8).
    """

    status: str
    run_id: str = ""
    session_key: str = ""
    agent_id: str = ""
    error: str | None = None
    limit: str | None = None
    value: int | None = None
    maximum: int | None = None
    path: str | None = None
    retry_after: float | None = None
    told: bool = False
    model: str | None = None
    context: str | None = None
    attachments: Attached | None = None
    note: str | None = None

    @property
    def accepted(self) -> bool:
        """True if the child was admitted; its run is journaled."""
        return self.status == "accepted"

    @property
    def provider(self) -> str | None:
        """The provider in front of the model's first slash, if there is one."""
        return self.model.split("/", 1)[0] if self.model is not None and "/" in self.model else None

    def to_json(self) -> dict[str, Any]:
        """JSON form (``childSessionKey``, ``runId``)."""
        return camel_dict(
            {
                "status": self.status,
                "run_id": self.run_id or None,
                "child_session_key": self.session_key or None,
                "error": self.error,
                "context": self.context,
                "resolved_model": self.model,
                "resolved_provider": self.provider,
                "attachments": None if self.attachments is None else self.attachments.to_json(),
            }
        )


@compact
@dataclass(frozen=True, slots=True)
class StopRow:
    """One run of a stopped subtree: ``outcome`` is ``stopped``, ``forced``, ``finished`` or ``failed``."""

    session_key: str
    run_id: str
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return camel_dict(asdict(self))


@compact
@dataclass(frozen=True, slots=True)
class StopReport:
    """What a stop did, counted from the journal alone (PROTOCOL.md 6.7).

    Attributes:
        key: the top of the stopped subtree.
        stopped: runs that were cancelled, the forced ones included.
        forced: runs whose process had to be ended.
        finished: runs that were already terminal when the mark was written.
        failed: runs that could not be confirmed as ended; 0 in a clean stop.
        rows: one `StopRow` a run; of those that were terminal before, for the ones that somebody was still to hear of
            or that had something living below.
    """

    key: str
    stopped: int
    forced: int
    finished: int
    failed: int
    rows: tuple[StopRow, ...] = ()

    @property
    def total(self) -> int:
        """Runs under the mark."""
        return self.stopped + self.finished + self.failed

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "key": self.key,
            "stopped": self.stopped,
            "forced": self.forced,
            "finished": self.finished,
            "failed": self.failed,
            "sessions": [row.to_json() for row in self.rows],
        }
