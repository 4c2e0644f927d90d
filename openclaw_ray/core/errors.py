"""Every error this library raises, under one root (DESIGN.md 13): the one place to import them from.

Each class is a dataclass: its constructor takes the typed fields in the order they are written, by position
or by name, and hands all of them to `Exception`, so that an error comes out of a pickle with every field. The
text is made only when it is asked for; it names the limit, the value seen, the configuration path and the way
out.

`Cancelled` and `TurnYielded` are control flow, not errors: they derive from `BaseException`, outside the
root.
"""

from __future__ import annotations

from openclaw_ray.core.errors_base import (
    AgentImportError,
    AgentNotPicklable,
    ConfigError,
    ConfigFault,
    DuplicateAgent,
    OpenClawRayError,
    UnknownAgent,
)
from openclaw_ray.core.errors_limits import LimitHeldAbove, LimitTimeout, UnknownLimit
from openclaw_ray.core.errors_runs import (
    AskTimeout,
    AudienceDenied,
    DeliveryRefused,
    InvalidItem,
    JoinTimeout,
    NotControlled,
    NothingPending,
    NotInTurn,
    RunCancelled,
    RunError,
    RunFailed,
    RunLost,
    RunTimedOut,
    Stopped,
    UnknownRun,
    ValueLost,
    error_for_result,
)
from openclaw_ray.core.errors_runtime import (
    CannotPlace,
    DeleteRefused,
    InboxFull,
    JournalError,
    MapInUse,
    PickleRefused,
    PoolTooSmall,
    ProtocolRefused,
    RayClientUnsupported,
    RayUnreachable,
    ResetRefused,
    RuntimeClosed,
    RuntimeInUse,
    RuntimeNotFound,
    RuntimeUnavailable,
    SpawnError,
    SpawnForbidden,
    StateDirError,
    StateTooLarge,
    TaskTooLarge,
)
from openclaw_ray.core.errors_tools import ToolInputError, UnknownCall, UnknownTool

__all__ = [
    "AgentImportError",
    "AgentNotPicklable",
    "AskTimeout",
    "AudienceDenied",
    "Cancelled",
    "CannotPlace",
    "ConfigError",
    "ConfigFault",
    "DeleteRefused",
    "DeliveryRefused",
    "DuplicateAgent",
    "InboxFull",
    "InvalidItem",
    "JoinTimeout",
    "JournalError",
    "LimitHeldAbove",
    "LimitTimeout",
    "MapInUse",
    "NotControlled",
    "NotInTurn",
    "NothingPending",
    "OpenClawRayError",
    "PickleRefused",
    "PoolTooSmall",
    "ProtocolRefused",
    "RayClientUnsupported",
    "RayUnreachable",
    "ResetRefused",
    "RunCancelled",
    "RunError",
    "RunFailed",
    "RunLost",
    "RunTimedOut",
    "RuntimeClosed",
    "RuntimeInUse",
    "RuntimeNotFound",
    "RuntimeUnavailable",
    "SpawnError",
    "SpawnForbidden",
    "StateDirError",
    "StateTooLarge",
    "Stopped",
    "TaskTooLarge",
    "ToolInputError",
    "TurnYielded",
    "UnknownAgent",
    "UnknownCall",
    "UnknownLimit",
    "UnknownRun",
    "UnknownTool",
    "ValueLost",
    "error_for_result",
]


class Cancelled(BaseException):
    """A stop or timeout has reached the turn; raised at a safe point (PROTOCOL.md 6.5).

    Control flow: outside of `OpenClawRayError`, and a `BaseException` so that ``except Exception`` does not
    swallow it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class TurnYielded(BaseException):
    """``turn.yield_()`` ends the turn; code after it does not run (PROTOCOL.md 5.4).

    Control flow: outside of `OpenClawRayError`, and a `BaseException` so that ``except Exception`` does not
    swallow it.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message or "turn yielded"
