"""Errors of runs and turns. Import them from `openclaw_ray.core.errors`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from openclaw_ray.core.errors_base import OpenClawRayError, name_list
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import Result, StopReport

__all__ = [
    "AskTimeout",
    "AudienceDenied",
    "CannotWait",
    "DeliveryRefused",
    "InvalidItem",
    "JoinTimeout",
    "NotControlled",
    "NotInTurn",
    "NothingPending",
    "PatchRefused",
    "RunCancelled",
    "RunError",
    "RunFailed",
    "RunLost",
    "RunTimedOut",
    "SessionForbidden",
    "Stopped",
    "UnknownRun",
    "ValueLost",
    "error_for_result",
]


@dataclass(eq=False, repr=False)
class RunError(OpenClawRayError):
    """A run did not succeed; base of four, one for each status.

    Attributes:
        result_json: `Result.to_json` of the run (camelCase, without the value).
    """

    result_json: dict[str, Any]
    verb: ClassVar[str] = "did not succeed"

    @property
    def status(self) -> ResultStatus:
        """How the run ended."""
        return ResultStatus(self.result_json["status"])

    @property
    def session_key(self) -> str:
        """The session that ran it."""
        return str(self.result_json.get("sessionKey", ""))

    @property
    def run_id(self) -> str:
        """The run."""
        return str(self.result_json.get("runId", ""))

    def __str__(self) -> str:
        error = self.result_json.get("error") or {}
        item = f"item {self.result_json['index']}: " if "index" in self.result_json else ""
        why = ": ".join(str(error[part]) for part in ("type", "message") if error.get(part))
        head = f"{item}run {self.run_id} of {self.session_key} {self.verb} ({self.status.value})"
        trace = f"\n{error['traceback']}" if error.get("traceback") else ""
        return (f"{head}: {why}" if why else head) + trace


class RunFailed(RunError):
    """The agent raised, or its process died."""

    verb = "failed"


class RunTimedOut(RunError):
    """The run's deadline passed."""

    verb = "timed out"


class RunCancelled(RunError):
    """A stop, kill, reset or delete reached the run."""

    verb = "was cancelled"


class RunLost(RunError):
    """Nobody knows the outcome of the run any more."""

    verb = "is lost"


_BY_STATUS: dict[ResultStatus, type[RunError]] = {
    ResultStatus.ERROR: RunFailed,
    ResultStatus.TIMEOUT: RunTimedOut,
    ResultStatus.CANCELLED: RunCancelled,
    ResultStatus.LOST: RunLost,
}


def error_for_result(result: Result[Any]) -> RunError:
    """The error that stands for a result which is not ok.

    Raises:
        ValueError: the result is ok.
    """
    if result.ok:
        raise ValueError(f"run {result.run_id} succeeded; there is no error for it")
    return _BY_STATUS[result.status](result.to_json())


@dataclass(eq=False, repr=False)
class ValueLost(OpenClawRayError):
    """A value or input over 64 KB went with the process that held it (DESIGN.md 7)."""

    run_id: str
    detail: str

    def __str__(self) -> str:
        return f"the value of run {self.run_id} is lost: {self.detail}; values up to 64 KB are journaled"


@dataclass(eq=False, repr=False, init=False)
class Stopped(RunCancelled):
    """What was waited for has been stopped by somebody; ``report`` says what else that stop has ended."""

    report: StopReport

    def __init__(self, report: StopReport, result_json: dict[str, Any] | None = None) -> None:
        self.report = report
        self.result_json = {"status": ResultStatus.CANCELLED.value, "sessionKey": report.key, **(result_json or {})}
        Exception.__init__(self, report, self.result_json)

    def __str__(self) -> str:
        r = self.report
        return (
            f"{r.key} was stopped: {r.stopped} runs stopped ({r.forced} forced), "
            f"{r.finished} had finished, {r.failed} failed to stop"
        )


@dataclass(eq=False, repr=False)
class UnknownRun(OpenClawRayError, LookupError):
    """There is no run of that id, or its record is past its retention."""

    run_id: str

    def __str__(self) -> str:
        return f"no run {self.run_id!r}; `openclaw-ray tasks list` lists the ids, which are kept for 7 days"


@dataclass(eq=False, repr=False)
class DeliveryRefused(OpenClawRayError):
    """The delivery of a run's end is not one to ``redeliver`` or ``dismiss`` (SPEC.md F6); it is as it was.

    Attributes:
        run_id: the run.
        change: ``redeliver`` or ``dismiss``.
        why: ``open``, ``not_required``, ``delivered``, ``discarded`` or ``nobody``.
    """

    run_id: str
    change: str
    why: str

    def __str__(self) -> str:
        why = {
            "open": "it has not ended",
            "not_required": "its end is announced to nobody",
            "delivered": "its end was delivered",
            "discarded": "it was dismissed, or its requester was stopped",
            "nobody": "nobody is there to be told; `openclaw-ray tasks show` has its outcome",
        }.get(self.why, self.why)
        done = "delivered again" if self.change == "redeliver" else "dismissed"
        return f"the announce of run {self.run_id} was not {done}: {why}"


@dataclass(eq=False, repr=False)
class NotControlled(OpenClawRayError, PermissionError):
    """A session asked to stop what is not below it (SPEC.md B4); nothing was stopped."""

    session_key: str
    target: str

    def __str__(self) -> str:
        return (
            f"{self.session_key} does not control {self.target}: a session stops what is below it, "
            "not itself, its requester or a sibling"
        )


@dataclass(eq=False, repr=False)
class SessionForbidden(OpenClawRayError):
    """A session asked for what it may not see or change (SPEC.md B2, G); the same words at every entrance.

    Attributes:
        reason: a `visibility.DenialReason`; ``stale`` (not the turn that runs now) or ``control`` (not below it).
        detail: the rule in words.
        path: where it is set; empty if nowhere.
    """

    reason: str
    detail: str
    path: str

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False, repr=False)
class PatchRefused(OpenClawRayError):
    """A session was not changed.

    Attributes:
        reason: ``changed``, ``label``, ``root``, ``archived`` or ``model``.
        detail: the same in words.
    """

    key: str
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"session {self.key} was not changed: {self.detail}"


@dataclass(eq=False, repr=False)
class AskTimeout(OpenClawRayError):
    """``ask`` stopped waiting; the run goes on (PROTOCOL.md 5.6)."""

    session_key: str
    run_id: str
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.session_key} has not answered within {self.seconds:g} s; run {self.run_id} goes on: "
            "ask for its result later, or stop it"
        )


@dataclass(eq=False, repr=False)
class AudienceDenied(OpenClawRayError):
    """A session has no memory audience (SPEC.md I3). ``reason`` is ``stale-lineage``, ``ineligible`` or ``unverified``,
    ``at`` the session key at which the proof failed."""

    reason: str
    at: str
    detail: str

    def __str__(self) -> str:
        return f"no memory audience ({self.reason}): {self.at}: {self.detail}"


@dataclass(eq=False, repr=False)
class JoinTimeout(OpenClawRayError):
    """``join`` stopped waiting; the unsettled children go on. ``unsettled`` has their run ids."""

    seconds: float
    unsettled: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{len(self.unsettled)} children unsettled after {self.seconds:g} s "
            f"({name_list(self.unsettled)}); they go on: join again, or stop them"
        )


@dataclass(eq=False, repr=False)
class InvalidItem(OpenClawRayError):
    """An item of a map cannot be given to an agent; ``index`` is its position."""

    index: int
    detail: str

    def __str__(self) -> str:
        return f"item {self.index}: {self.detail}"


@dataclass(eq=False, repr=False)
class NotInTurn(OpenClawRayError):
    """Something that only a running turn may do was asked for outside of one."""

    what: str

    def __str__(self) -> str:
        return f"{self.what} is only possible while a turn of this session runs"


@dataclass(eq=False, repr=False)
class NothingPending(OpenClawRayError):
    """``what`` (a yield) would wait for ever: the turn has no pending child (SPEC.md B3)."""

    what: str

    def __str__(self) -> str:
        return f"{self.what}: nothing pending; spawn children first, or return"


@dataclass(eq=False, repr=False)
class CannotWait(OpenClawRayError):
    """A top-level session yields to wait for a message: its messages are runs of their own (SPEC.md B3)."""

    session_key: str

    def __str__(self) -> str:
        return (
            f"waitFor: {self.session_key} is no sub-agent; return instead: each message to a top-level session "
            "is a run of its own, with a turn"
        )
