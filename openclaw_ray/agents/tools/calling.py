"""``turn.call`` and ``turn.tools``: how a program calls the tools that a model sees (DESIGN.md 7).

1. The name is looked up; there is an error for one that is not there, with those that are.
2. The session must be allowed to have it: `ToolDenied`, with the rule that says no, before anything is read or done.
   What is listed and described is what passes here (SPEC.md N8).
3. The tool reads its parameters before anything happens: `ToolInputError` if they are not as its table says.
4. Its steps run; where they wait, the turn waits as its kind does, and a stop or deadline ends the wait.
5. What a rule refuses is a result with ``status`` and ``error``; it is not raised.

The registry, which has the configuration, is asked for the `ToolView` at the turn's first look at its tools; the turn
keeps it. A turn that looks at no tool asks nothing; a configuration that changes under a turn binds the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openclaw_ray.agents._waits import SyncWait, Watch, nothing
from openclaw_ray.core.errors import ToolDenied, UnknownTool

if TYPE_CHECKING:
    from openclaw_ray.agents.port import TurnPort
    from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
    from openclaw_ray.core.policy import ToolView
    from openclaw_ray.core.tool_results import ToolResult

__all__ = ["ToolCalls", "ToolSet"]

R = TypeVar("R")


class ToolSet(Generic[R]):
    """``turn.tools``: each tool as a method; iterated over, the names of those that the session may call.

    The first look of a turn waits for the registry. In an async turn it holds the event loop for that moment, unless
    ``await turn.tool_view()`` or a call came before.
    """

    def __init__(self, call: Callable[..., R], tools: Mapping[str, Tool], view: Callable[[], ToolView]) -> None:
        self._call = call
        self._tools = tools
        self._view = view

    def __getattr__(self, name: str) -> Callable[..., R]:
        if name.startswith("_"):
            raise AttributeError(name)
        _tool(self._tools, name)
        return lambda **params: self._call(name, **params)

    def __iter__(self) -> Iterator[str]:
        return iter(self._view().listed(self._tools))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._tools and self._view().allowed(name)

    def __len__(self) -> int:
        return len(self._view().listed(self._tools))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._tools]

    def describe(self) -> list[dict[str, Any]]:
        """Name, description and JSON schema of each tool that may be called, as model APIs take them.

        Raises:
            NoToolsLeft: allow lists are set, and they leave none of the tools; so does iterating.
        """
        return [self._tools[name].describe() for name in self]


class ToolCalls(Generic[R]):
    """The part of a turn that calls tools; each kind of turn has its own ``call``."""

    call: Callable[..., R]
    check: Callable[[], None]
    _caller: Callable[[], Caller]
    _catalog: Callable[[], Mapping[str, Tool]]
    _port: TurnPort
    _tool_view: ToolView | None
    _watch: Watch

    @property
    def tools(self) -> ToolSet[R]:
        """The tools of this session: ``turn.tools.subagents()`` is ``turn.call("subagents")``."""
        # made anew each time: kept, it would keep the turn alive, and a large input with it
        return ToolSet(self.call, self._catalog(), self._view_here)

    def _steps(self, name: str, params: Mapping[str, Any]) -> Steps:
        """A call, ready to run (1).

        Raises:
            UnknownTool: there is no such tool.
        """
        return self._dispatched(_tool(self._catalog(), name), params)

    def _dispatched(self, tool: Tool, params: Mapping[str, Any]) -> Steps:
        """The one way to a tool's steps (2)."""
        if self._tool_view is None:
            self._saw((yield self._port.look("tools")))
        view = self._tool_view
        assert view is not None
        try:
            view.check(tool.name)
        except ToolDenied as denied:
            self._port.blocked(denied.tool, denied.rule)
            raise
        result: ToolResult = yield from tool.steps(self._caller(), params)
        return result

    def _saw(self, views: list[ToolView]) -> ToolView:
        """Keep the first view that came; of looks side by side, the others find it here."""
        if self._tool_view is None:
            [self._tool_view] = views
        return self._tool_view

    def _view_here(self) -> ToolView:
        """The view, waited for in this thread; a stop ends the wait."""
        if self._tool_view is not None:
            return self._tool_view
        self.check()
        wait, asked = SyncWait(), self._port.look("tools")
        self._watch.open(wait)
        try:
            asked.add_done_callback(lambda _: wait.put(nothing))
            while not asked.done():
                wait.wait(None)
                self.check()
        finally:
            self._watch.close(wait)
        return self._saw(asked.result())


def _tool(tools: Mapping[str, Tool], name: str) -> Tool:
    tool = tools.get(name)
    if tool is None:
        raise UnknownTool(name, tuple(tools))
    return tool
