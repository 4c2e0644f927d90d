"""``turn.call`` and ``turn.tools``: how a program calls the tools that a model sees (DESIGN.md 7).

1. The name is looked up; there is an error for one that is not there, with those that are.
2. The tool reads its parameters before anything happens: `ToolInputError` if they are not as its table says.
3. Its steps run; where they wait, the turn waits as its kind does, and a stop or deadline ends the wait.
4. What a rule refuses is a result with ``status`` and ``error``; it is not raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from openclaw_ray.agents.tools.agents_list import AGENTS_LIST
from openclaw_ray.agents.tools.session_status import SESSION_STATUS
from openclaw_ray.agents.tools.sessions import SESSIONS
from openclaw_ray.agents.tools.sessions_history import SESSIONS_HISTORY
from openclaw_ray.agents.tools.sessions_list import SESSIONS_LIST
from openclaw_ray.agents.tools.sessions_send import SESSIONS_SEND
from openclaw_ray.agents.tools.sessions_spawn import SESSIONS_SPAWN
from openclaw_ray.agents.tools.sessions_yield import SESSIONS_YIELD
from openclaw_ray.agents.tools.subagents import SUBAGENTS
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import UnknownTool

__all__ = ["TOOLS", "ToolCalls", "ToolSet"]

_ALL = (
    AGENTS_LIST,
    SESSION_STATUS,
    SESSIONS,
    SESSIONS_HISTORY,
    SESSIONS_LIST,
    SESSIONS_SEND,
    SESSIONS_SPAWN,
    SESSIONS_YIELD,
    SUBAGENTS,
)
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ALL}
"""The tools that there are, sorted by name."""
R = TypeVar("R")


class ToolSet(Generic[R]):
    """``turn.tools``: each tool as a method; iterated over, its names."""

    def __init__(self, call: Callable[..., R]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., R]:
        if name.startswith("_"):
            raise AttributeError(name)
        _tool(name)
        return lambda **params: self._call(name, **params)

    def __iter__(self) -> Iterator[str]:
        return iter(TOOLS)

    def __contains__(self, name: object) -> bool:
        return name in TOOLS

    def __len__(self) -> int:
        return len(TOOLS)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TOOLS]

    def describe(self) -> list[dict[str, Any]]:
        """Name, description and JSON schema of each tool, as model APIs take them."""
        return [tool.describe() for tool in TOOLS.values()]


class ToolCalls(Generic[R]):
    """The part of a turn that calls tools; each kind of turn has its own ``call``."""

    call: Callable[..., R]
    _caller: Callable[[], Caller]

    @property
    def tools(self) -> ToolSet[R]:
        """The tools of this session: ``turn.tools.subagents()`` is ``turn.call("subagents")``."""
        # made anew each time: kept, it would keep the turn alive, and a large input with it
        return ToolSet(self.call)

    def _steps(self, name: str, params: Mapping[str, Any]) -> Steps:
        """A call, ready to run (1).

        Raises:
            UnknownTool: there is no such tool.
        """
        return _tool(name).steps(self._caller(), params)


def _tool(name: str) -> Tool:
    tool = TOOLS.get(name)
    if tool is None:
        raise UnknownTool(name, tuple(TOOLS))
    return tool
