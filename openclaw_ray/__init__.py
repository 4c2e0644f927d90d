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
    from openclaw_ray.core.errors import OpenClawRayError
    from openclaw_ray.core.events import Event
    from openclaw_ray.core.lifecycle import DeliveryState, ResultStatus, RunState
    from openclaw_ray.core.results import Completion, ErrorInfo, Receipt, Result, StopReport, Usage
    from openclaw_ray.runtime.runtime import Runtime
    from openclaw_ray.runtime.stats import RuntimeStats

__version__ = "0.1.0"

_WHERE = {
    "Agent": "agents",
    "Completion": "core.results",
    "DeliveryState": "core.lifecycle",
    "ErrorInfo": "core.results",
    "Event": "core.events",
    "OpenClawRayError": "core.errors",
    "Receipt": "core.results",
    "Result": "core.results",
    "ResultStatus": "core.lifecycle",
    "RunState": "core.lifecycle",
    "Runtime": "runtime.runtime",
    "RuntimeStats": "runtime.stats",
    "SessionView": "agents",
    "StopReport": "core.results",
    "SyncTurn": "agents",
    "Turn": "agents",
    "Usage": "core.results",
    "agent": "agents",
}

__all__ = [
    "Agent",
    "Completion",
    "DeliveryState",
    "ErrorInfo",
    "Event",
    "OpenClawRayError",
    "Receipt",
    "Result",
    "ResultStatus",
    "RunState",
    "Runtime",
    "RuntimeStats",
    "SessionView",
    "StopReport",
    "SyncTurn",
    "Turn",
    "Usage",
    "__version__",
    "agent",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
