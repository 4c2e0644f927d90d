"""Tools of a test's own in the place of an agent's: their calls are read as the real ones', and then answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from openclaw_ray.agents.tools.catalog import catalog
from openclaw_ray.agents.tools.function_tool import result_of
from openclaw_ray.agents.tools.rows import note_call
from openclaw_ray.agents.tools.tool import Caller, Steps, Tool
from openclaw_ray.core.errors import ToolFailed

__all__ = ["stubbed_catalog"]


def stubbed_catalog(stubs: Mapping[str, Any]) -> Callable[[tuple[Any, ...]], Mapping[str, Tool]]:
    """The `catalog` of a turn some of whose tools are answered by the test.

    Args:
        stubs: by name, what a call returns, an exception that it raises, or a function that is given the call's
            parameters by name and returns or raises either.

    Raises:
        TypeError: by the catalogue, if the agent has no tool of such a name.
    """

    def made(tools: tuple[Any, ...]) -> Mapping[str, Tool]:
        real = catalog(tools)
        for name in stubs:
            if name not in real:
                raise TypeError(f"tools={{{name!r}: …}}: the agent has no such tool; there are {', '.join(real)}")
        return {name: _stub(tool, stubs[name]) if name in stubs else tool for name, tool in real.items()}

    return made


def _stub(tool: Tool, answer: Any) -> Tool:
    return replace(tool, steps=partial(_steps, tool, answer))


def _steps(tool: Tool, answer: Any, caller: Caller, given: Mapping[str, Any]) -> Steps:
    values = tool.read(given)
    yield from ()  # a tool's steps are a generator
    try:
        returned = answer(**values) if callable(answer) and not isinstance(answer, type) else answer
        if isinstance(returned, BaseException) or (isinstance(returned, type) and issubclass(returned, BaseException)):
            raise returned
    except AssertionError:
        raise
    except Exception as error:
        note_call(caller, tool.name, given, "error", f"{type(error).__name__}: {error}")
        raise ToolFailed(tool.name, type(error).__name__, str(error)) from error
    result = result_of(tool.name, returned)
    note_call(caller, tool.name, given, result.status, result.fields)
    return result
