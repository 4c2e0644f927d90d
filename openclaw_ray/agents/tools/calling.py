"""``turn.call`` and ``turn.tools``: how a program calls the tools that a model sees (DESIGN.md 7).

1. The name is looked up; there is an error for one that is not there, with those that are.
2. The tool reads its parameters before anything happens: `ToolInputError` if they are not as its table says.
3. Its steps run; where they wait, the turn waits as its kind does, and a stop or deadline ends the wait.
4. What a rule refuses is a result with ``status`` and ``error``; it is not raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from openclaw_ray.agents.tools.catalog import TOOLS
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import UnknownTool

__all__ = ["TOOLS", "ToolCalls", "ToolSet"]

R = TypeVar("R")


class ToolSet(Generic[R]):
    """``turn.tools``: each tool as a method; iterated over, its names."""

    def __init__(self, call: Callable[..., R], tools: Mapping[str, Tool] = TOOLS) -> None:
        self._call = call
        self._tools = tools

    def __getattr__(self, name: str) -> Callable[..., R]:
        if name.startswith("_"):
            raise AttributeError(name)
        _tool(self._tools, name)
        return lambda **params: self._call(name, **params)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._tools]

    def describe(self) -> list[dict[str, Any]]:
        """Name, description and JSON schema of each tool, as model APIs take them."""
        return [tool.describe() for tool in self._tools.values()]


class ToolCalls(Generic[R]):
    """The part of a turn that calls tools; each kind of turn has its own ``call``."""

    call: Callable[..., R]
    _caller: Callable[[], Caller]
    _catalog: Callable[[], Mapping[str, Tool]]

    @property
    def tools(self) -> ToolSet[R]:
        """The tools of this session: ``turn.tools.subagents()`` is ``turn.call("subagents")``."""
        # made anew each time: kept, it would keep the turn alive, and a large input with it
        return ToolSet(self.call, self._catalog())

    def _steps(self, name: str, params: Mapping[str, Any]) -> Steps:
        """A call, ready to run (1).

        Raises:
            UnknownTool: there is no such tool.
        """
        return _tool(self._catalog(), name).steps(self._caller(), params)


def _tool(tools: Mapping[str, Tool], name: str) -> Tool:
    tool = tools.get(name)
    if tool is None:
        raise UnknownTool(name, tuple(tools))
    return tool
