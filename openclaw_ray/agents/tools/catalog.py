"""Which tools a turn has: the built-in ones of every session, and those that its agent names (DESIGN.md 7).

1. Every session has the session tools. What touches the machine (`OPT_IN`) is there only for an agent that asks for it
   by name: ``@agent(tools=["read", "write"])``.
2. An agent's own tools are functions that `tool` has marked. A name that is taken is refused when the agent is made
   and when it is registered, with both origins.
3. What of it a session may call is the policy's affair, not the catalogue's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from openclaw_ray.agents._origin import origin_of
from openclaw_ray.agents.tools.agents_list import AGENTS_LIST
from openclaw_ray.agents.tools.decorator import tool_info
from openclaw_ray.agents.tools.session_status import SESSION_STATUS
from openclaw_ray.agents.tools.sessions import SESSIONS
from openclaw_ray.agents.tools.sessions_history import SESSIONS_HISTORY
from openclaw_ray.agents.tools.sessions_list import SESSIONS_LIST
from openclaw_ray.agents.tools.sessions_send import SESSIONS_SEND
from openclaw_ray.agents.tools.sessions_spawn import SESSIONS_SPAWN
from openclaw_ray.agents.tools.sessions_yield import SESSIONS_YIELD
from openclaw_ray.agents.tools.subagents import SUBAGENTS
from openclaw_ray.agents.tools.tool import Tool
from openclaw_ray.core.errors import DuplicateTool

__all__ = ["OPT_IN", "TOOLS", "catalog", "checked_tools", "tool_name"]

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
"""The tools of every session, sorted by name."""
OPT_IN = ("edit", "exec", "process", "read", "write")
"""The built-in tools that an agent has to ask for by name; the module of each is loaded then."""
_ALIASES = {"bash": "exec", "cron": "automations"}


def tool_name(tool: Any) -> str:
    """The name of a tool as an agent lists it: a text, or a function that is one.

    Raises:
        TypeError: it is neither.
    """
    return tool if isinstance(tool, str) else tool_info(tool).name


def checked_tools(tools: Iterable[Any]) -> tuple[Any, ...]:
    """An agent's list of tools, each once (2).

    Raises:
        TypeError: something in it is no tool.
        ValueError: a text names no built-in tool.
        DuplicateTool: a name is taken.
    """
    if isinstance(tools, str | Mapping):
        raise TypeError(f"tools=… is a list of tools, not {tools!r}")
    taken = {name.casefold(): f"the built-in tool {name}" for name in (*TOOLS, *OPT_IN)}
    taken |= {alias: f"another name of the built-in tool {name}" for alias, name in _ALIASES.items()}
    found: dict[str, Any] = {}
    for tool in tools:
        if isinstance(tool, str):
            if tool not in OPT_IN:
                known = "is there without being named" if tool in TOOLS else f"there are {', '.join(OPT_IN)}"
                raise ValueError(f"tools=[{tool!r}]: a built-in tool is named by its name, and {known}")
            found[tool] = tool
            continue
        name = tool_info(tool).name
        if found.get(name.casefold()) is tool:
            continue
        origin = str(origin_of(tool))
        if name.casefold() in taken:
            raise DuplicateTool(name, taken[name.casefold()], origin)
        taken[name.casefold()], found[name.casefold()] = origin, tool
    return tuple(found.values())


def catalog(tools: tuple[Any, ...]) -> Mapping[str, Tool]:
    """The tools of an agent that has listed these, sorted by name."""
    if not tools:
        return TOOLS
    from openclaw_ray.agents.tools.function_tool import function_tool

    own = {tool_name(tool): _built_in(tool) if isinstance(tool, str) else function_tool(tool) for tool in tools}
    return dict(sorted({**TOOLS, **own}.items()))


def _built_in(name: str) -> Tool:
    found: Tool = getattr(import_module(f"openclaw_ray.agents.tools.{name}"), name.upper())
    return found
