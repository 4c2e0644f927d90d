"""The words for where a run, its delivery, a session and an activation stand (DESIGN.md 8).

Run::

    queued → running ⇄ paused → succeeded | failed | timed_out | cancelled | lost

A terminal state is final: the first one written wins, later ones are refused.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "TERMINAL",
    "ActivationState",
    "Cause",
    "DeliveryState",
    "PauseReason",
    "ResultStatus",
    "RunKind",
    "RunState",
    "SessionState",
    "display_word",
    "result_status",
]


class RunState(StrEnum):
    """Where one run stands. Source: DESIGN.md 8, SPEC.md H2."""

    QUEUED = "queued"
    """Admitted and journaled; waits for a lane slot or an actor."""
    RUNNING = "running"
    """Granted a slot and an actor; a turn runs or is about to."""
    PAUSED = "paused"
    """Alive without a slot: its turn waits for children, or it has ended before them."""
    SUCCEEDED = "succeeded"
    """The last turn returned."""
    FAILED = "failed"
    """The agent raised, or its process died; the cause says which."""
    TIMED_OUT = "timed_out"
    """The registry's deadline for the run passed."""
    CANCELLED = "cancelled"
    """A stop, kill, reset or delete reached it."""
    LOST = "lost"
    """Nobody knows the outcome any more; the text names what died."""

    @property
    def terminal(self) -> bool:
        """True for a final state."""
        return self in TERMINAL


TERMINAL = frozenset(
    {RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED, RunState.LOST}
)


class DeliveryState(StrEnum):
    """Where the completion of a run stands on its way to the requester. Source: SPEC.md F7."""

    NOT_REQUIRED = "not_required"
    """Nobody is told by an announce: map items, ``expectsCompletionMessage: false``, killed runs."""
    PENDING = "pending"
    """Journaled, not yet consumed by the requester."""
    DELIVERED = "delivered"
    """Consumed; the transcript row was written in the same transaction."""
    FAILED = "failed"
    """No attempt can succeed: nobody is left to tell, or who is cannot hear; or it was suspended for too long."""
    SUSPENDED = "suspended"
    """Each attempt has failed; kept for 7 days, to be asked for again or dismissed."""
    DISCARDED = "discarded"
    """Dismissed by hand, or its requester was stopped."""


class SessionState(StrEnum):
    """Where a session stands. Source: DESIGN.md 8."""

    PASSIVE = "passive"
    """A record and a transcript, no process."""
    ACTIVE = "active"
    """Bound to exactly one actor."""
    ENDED = "ended"
    """Its work is done; the record stays until it is archived."""
    ARCHIVED = "archived"
    """Transcript renamed, nothing in memory."""


class ActivationState(StrEnum):
    """One session on one actor. Source: DESIGN.md 8."""

    BINDING = "binding"
    """Granted; the actor has not confirmed yet."""
    BOUND = "bound"
    """The actor confirmed that it runs this session."""
    RELEASING = "releasing"
    """Ended, but the actor still holds a value, or is on its way to be ended."""
    POOLED = "pooled"
    """The actor is free for its re-use class."""
    KILLED = "killed"
    """The process is gone."""


class PauseReason(StrEnum):
    """Why a run is paused. Source: PROTOCOL.md 5.2-5.4."""

    WAITING = "waiting"
    """A turn sits in join or map: its slot is free, its process kept."""
    YIELDED = "yielded"
    """The turn ended by ``turn.yield_()``; one wake follows when the batch is complete."""
    CHILDREN = "children"
    """The turn returned while children were unsettled; the run ends after them."""
    MESSAGE = "message"
    """The turn ended by a yield that waits for a message to its session (SPEC.md B3)."""


class RunKind(StrEnum):
    """What a turn was started for. Source: PROTOCOL.md 5.1."""

    TASK = "task"
    """A spawned task or a map item."""
    MESSAGE = "message"
    """A message from the operator or another session."""
    WAKE = "wake"
    """A yielded batch is complete."""
    COMPLETION = "completion"
    """Announces outside of a batch."""
    RESUME = "resume"
    """The synthetic message after a restart."""


class Cause(StrEnum):
    """Why a run did not succeed, as the runtime saw it; never taken from model text."""

    RAISED = "raised"
    """The agent raised an exception."""
    EXITED = "exited"
    """The agent called ``sys.exit`` or raised ``KeyboardInterrupt``."""
    UNPICKLABLE = "unpicklable"
    """The returned value could not be pickled."""
    PROCESS_DIED = "process_died"
    """The session's process died in the middle of a turn."""
    TIMEOUT = "timeout"
    """The run's deadline passed."""
    STOPPED = "stopped"
    """A stop reached it."""
    CLIENT_GONE = "client_gone"
    """Its client's lease ran out."""
    START_FAILED = "start_failed"
    """The agent's code could not be loaded or constructed in the session process."""
    CANNOT_PLACE = "cannot_place"
    """No node can ever hold what the agent asks for."""
    INTERRUPTED = "interrupted"
    """The machine or runtime went down in the middle of it."""
    ORPHANED = "orphaned"
    """Nothing had it any more that could have ended it."""
    REFUSED = "refused"
    """It was never admitted: a limit or policy said no, or the item cannot be asked for."""
    VALUE_LOST = "value_lost"
    """The process that held a large value or input died."""
    NOT_TRIED = "not_tried"
    """An item of a named map that no earlier try ran to an end, where only failed ones were to run."""


class ResultStatus(StrEnum):
    """The word in ``Result.status`` and in command-line rows. Source: DESIGN.md 8."""

    OK = "ok"
    """The run succeeded; ``missing`` is true if it delivered no output."""
    ERROR = "error"
    """The run failed."""
    TIMEOUT = "timeout"
    """The run's deadline passed."""
    CANCELLED = "cancelled"
    """The run was stopped."""
    LOST = "lost"
    """Nobody knows the outcome any more."""


_RESULT = {
    RunState.SUCCEEDED: ResultStatus.OK,
    RunState.FAILED: ResultStatus.ERROR,
    RunState.TIMED_OUT: ResultStatus.TIMEOUT,
    RunState.CANCELLED: ResultStatus.CANCELLED,
    RunState.LOST: ResultStatus.LOST,
}

_DISPLAY = {
    RunState.SUCCEEDED: "done",
    RunState.FAILED: "failed",
    RunState.TIMED_OUT: "timeout",
    RunState.CANCELLED: "killed",
    RunState.LOST: "failed",
}


def result_status(state: RunState) -> ResultStatus:
    """The `ResultStatus` of a terminal run state.

    Raises:
        ValueError: ``state`` is not terminal.
    """
    try:
        return _RESULT[state]
    except KeyError:
        raise ValueError(f"run state {state.value!r} is not terminal") from None


def display_word(state: RunState) -> str:
    """The word that lists show for a run state (``done``, ``killed``, …; DESIGN.md 8)."""
    return _DISPLAY.get(state, state.value)
