"""Every error this library raises, under one root (DESIGN.md 13): the one place to import them from.

Each class is a dataclass: its constructor takes the typed fields in the order they are written, by position
or by name, and hands all of them to `Exception`, so that an error comes out of a pickle with every field. The
text is made only when it is asked for; it names the limit, the value seen, the configuration path and the way
out.

`Cancelled` and `TurnYielded` are control flow, not errors: they derive from `BaseException`, outside the
root.
"""

from __future__ import annotations

from openclaw_ray.core.errors_auth import CredentialStoreError, NoCredential
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
    CannotWait,
    DeliveryRefused,
    InvalidItem,
    JoinTimeout,
    NotControlled,
    NothingPending,
    NotInTurn,
    PatchRefused,
    RunCancelled,
    RunError,
    RunFailed,
    RunLost,
    RunTimedOut,
    SessionForbidden,
    Stopped,
    UnknownRun,
    ValueLost,
    error_for_result,
)
from openclaw_ray.core.errors_runtime import (
    AttachmentError,
    CannotPlace,
    DeleteRefused,
    FolderError,
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
    SandboxUnavailable,
    SpawnError,
    SpawnForbidden,
    StateDirError,
    StateTooLarge,
    TaskTooLarge,
)
from openclaw_ray.core.errors_tools import (
    DuplicateTool,
    NoToolsLeft,
    ToolDenied,
    ToolFailed,
    ToolInputError,
    ToolSignatureError,
    UnknownCall,
    UnknownTool,
)

__all__ = [
    "AgentImportError",
    "AgentNotPicklable",
    "AskTimeout",
    "AttachmentError",
    "AudienceDenied",
    "Cancelled",
    "CannotPlace",
    "CannotWait",
    "ConfigError",
    "ConfigFault",
    "CredentialStoreError",
    "DeleteRefused",
    "DeliveryRefused",
    "DuplicateAgent",
    "DuplicateTool",
    "FolderError",
    "InboxFull",
    "InvalidItem",
    "JoinTimeout",
    "JournalError",
    "LimitHeldAbove",
    "LimitTimeout",
    "MapInUse",
    "NoCredential",
    "NoToolsLeft",
    "NotControlled",
    "NotInTurn",
    "NothingPending",
    "OpenClawRayError",
    "PatchRefused",
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
    "SandboxUnavailable",
    "SessionForbidden",
    "SpawnError",
    "SpawnForbidden",
    "StateDirError",
    "StateTooLarge",
    "Stopped",
    "TaskTooLarge",
    "ToolDenied",
    "ToolFailed",
    "ToolInputError",
    "ToolSignatureError",
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
    swallow it. ``wait_for`` and ``acknowledgment`` are those of ``sessions_yield`` (SPEC.md B3).
    """

    def __init__(self, message: str | None = None, wait_for: str = "", acknowledgment: str = "") -> None:
        super().__init__(message, wait_for, acknowledgment)
        self.message = message
        self.wait_for = wait_for
        self.acknowledgment = acknowledgment

    def __str__(self) -> str:
        return self.message or "turn yielded"
