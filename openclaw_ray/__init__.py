"""Trees of isolated agent sessions on a Ray cluster.

    import openclaw_ray as oc

    @oc.agent
    def worker(turn: oc.SyncTurn) -> str: ...

    with oc.Runtime.start(agents=[worker]) as rt:
        results = rt.map("worker", items)

Names are loaded when they are first used: a session process imports this package and needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openclaw_ray.agents import Agent, SessionView, SyncTurn, Turn, agent
    from openclaw_ray.core.errors import (
        AgentImportError,
        AgentNotPicklable,
        AskTimeout,
        AudienceDenied,
        Cancelled,
        CannotPlace,
        ConfigError,
        ConfigFault,
        DeleteRefused,
        DuplicateAgent,
        InboxFull,
        InvalidItem,
        JoinTimeout,
        JournalError,
        LimitHeldAbove,
        LimitTimeout,
        MapInUse,
        NotControlled,
        NothingPending,
        NotInTurn,
        OpenClawRayError,
        PatchRefused,
        PickleRefused,
        PoolTooSmall,
        ProtocolRefused,
        RayClientUnsupported,
        RayUnreachable,
        ResetRefused,
        RunCancelled,
        RunError,
        RunFailed,
        RunLost,
        RuntimeClosed,
        RunTimedOut,
        RuntimeInUse,
        RuntimeNotFound,
        RuntimeUnavailable,
        SessionForbidden,
        SpawnError,
        SpawnForbidden,
        StateDirError,
        StateTooLarge,
        Stopped,
        TaskTooLarge,
        ToolInputError,
        TurnYielded,
        UnknownAgent,
        UnknownCall,
        UnknownLimit,
        UnknownTool,
        ValueLost,
    )
    from openclaw_ray.core.events import Event
    from openclaw_ray.core.lifecycle import DeliveryState, ResultStatus, RunState
    from openclaw_ray.core.message import MessageMode, MessageSource
    from openclaw_ray.core.results import Completion, ErrorInfo, Receipt, Result, StopReport, Usage
    from openclaw_ray.core.sent import SendStatus, Sent
    from openclaw_ray.core.tool_results import ToolResult
    from openclaw_ray.runtime.async_runtime import AsyncRuntime
    from openclaw_ray.runtime.runtime import Runtime
    from openclaw_ray.runtime.stats import RuntimeStats

__version__ = "0.1.0"

_WHERE = {
    "Agent": "agents",
    "AgentImportError": "core.errors",
    "AgentNotPicklable": "core.errors",
    "AskTimeout": "core.errors",
    "AudienceDenied": "core.errors",
    "AsyncRuntime": "runtime.async_runtime",
    "Cancelled": "core.errors",
    "CannotPlace": "core.errors",
    "Completion": "core.results",
    "ConfigError": "core.errors",
    "ConfigFault": "core.errors",
    "DeliveryState": "core.lifecycle",
    "DeleteRefused": "core.errors",
    "DuplicateAgent": "core.errors",
    "ErrorInfo": "core.results",
    "Event": "core.events",
    "InboxFull": "core.errors",
    "InvalidItem": "core.errors",
    "JoinTimeout": "core.errors",
    "JournalError": "core.errors",
    "LimitHeldAbove": "core.errors",
    "LimitTimeout": "core.errors",
    "MapInUse": "core.errors",
    "MessageMode": "core.message",
    "MessageSource": "core.message",
    "NotControlled": "core.errors",
    "PatchRefused": "core.errors",
    "SessionForbidden": "core.errors",
    "NotInTurn": "core.errors",
    "NothingPending": "core.errors",
    "OpenClawRayError": "core.errors",
    "PickleRefused": "core.errors",
    "PoolTooSmall": "core.errors",
    "ProtocolRefused": "core.errors",
    "RayClientUnsupported": "core.errors",
    "RayUnreachable": "core.errors",
    "Receipt": "core.results",
    "ResetRefused": "core.errors",
    "Result": "core.results",
    "ResultStatus": "core.lifecycle",
    "RunCancelled": "core.errors",
    "RunError": "core.errors",
    "RunFailed": "core.errors",
    "RunLost": "core.errors",
    "RunState": "core.lifecycle",
    "RunTimedOut": "core.errors",
    "Runtime": "runtime.runtime",
    "RuntimeClosed": "core.errors",
    "RuntimeInUse": "core.errors",
    "RuntimeNotFound": "core.errors",
    "RuntimeStats": "runtime.stats",
    "RuntimeUnavailable": "core.errors",
    "SessionView": "agents",
    "SendStatus": "core.sent",
    "Sent": "core.sent",
    "SpawnError": "core.errors",
    "SpawnForbidden": "core.errors",
    "StateDirError": "core.errors",
    "StateTooLarge": "core.errors",
    "StopReport": "core.results",
    "Stopped": "core.errors",
    "SyncTurn": "agents",
    "TaskTooLarge": "core.errors",
    "ToolInputError": "core.errors",
    "ToolResult": "core.tool_results",
    "Turn": "agents",
    "TurnYielded": "core.errors",
    "UnknownAgent": "core.errors",
    "UnknownCall": "core.errors",
    "UnknownLimit": "core.errors",
    "UnknownTool": "core.errors",
    "Usage": "core.results",
    "ValueLost": "core.errors",
    "agent": "agents",
}

__all__ = [
    "Agent",
    "AgentImportError",
    "AgentNotPicklable",
    "AskTimeout",
    "AsyncRuntime",
    "AudienceDenied",
    "Cancelled",
    "CannotPlace",
    "Completion",
    "ConfigError",
    "ConfigFault",
    "DeleteRefused",
    "DeliveryState",
    "DuplicateAgent",
    "ErrorInfo",
    "Event",
    "InboxFull",
    "InvalidItem",
    "JoinTimeout",
    "JournalError",
    "LimitHeldAbove",
    "LimitTimeout",
    "MapInUse",
    "MessageMode",
    "MessageSource",
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
    "Receipt",
    "ResetRefused",
    "Result",
    "ResultStatus",
    "RunCancelled",
    "RunError",
    "RunFailed",
    "RunLost",
    "RunState",
    "RunTimedOut",
    "Runtime",
    "RuntimeClosed",
    "RuntimeInUse",
    "RuntimeNotFound",
    "RuntimeStats",
    "RuntimeUnavailable",
    "SendStatus",
    "Sent",
    "SessionForbidden",
    "SessionView",
    "SpawnError",
    "SpawnForbidden",
    "StateDirError",
    "StateTooLarge",
    "StopReport",
    "Stopped",
    "SyncTurn",
    "TaskTooLarge",
    "ToolInputError",
    "ToolResult",
    "Turn",
    "TurnYielded",
    "UnknownAgent",
    "UnknownCall",
    "UnknownLimit",
    "UnknownTool",
    "Usage",
    "ValueLost",
    "__version__",
    "agent",
]


if not TYPE_CHECKING:  # else a misspelt name would be `Any` to type checkers

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
