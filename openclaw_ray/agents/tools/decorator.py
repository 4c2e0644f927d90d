"""``@tool``: a typed function becomes a tool, and stays the function that it was."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from openclaw_ray.agents.info import is_async
from openclaw_ray.core.errors import ToolSignatureError

if TYPE_CHECKING:
    from openclaw_ray.agents.tools.signature import Signature

__all__ = ["TOOL_MARK", "ToolInfo", "tool", "tool_info"]

TOOL_MARK = "__openclaw_tool__"
"""The attribute of a function that holds its `ToolInfo`."""

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAKEN = ("describe",)
_RAY = (
    "accelerator_type",
    "label_selector",
    "memory",
    "num_cpus",
    "num_gpus",
    "resources",
    "runtime_env",
    "scheduling_strategy",
)


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What is known of a tool without calling it.

    Attributes:
        signature: name, description and parameters.
        waits: it is a coroutine function.
        ray: options of the Ray task that it runs as; `None` if it runs in the session's own process.
    """

    signature: Signature
    waits: bool
    ray: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """As a model calls it."""
        return self.signature.tool


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(*, name: str | None = None, ray: Mapping[str, Any] | None = None) -> Callable[[F], F]: ...


def tool(
    function: F | None = None, /, *, name: str | None = None, ray: Mapping[str, Any] | None = None
) -> F | Callable[[F], F]:
    """Make a typed function a tool, for ``@agent(tools=[…])``; usable with and without parentheses (DESIGN.md 7).

    The function is returned unchanged. Its docstring is the description, its signature the JSON schema: parameters are
    str, int, float, bool, None, lists, ``dict[str, …]``, unions, `Literal`, enumerations, dataclasses and typed dicts.
    A first parameter that is a `Turn` or `SyncTurn`, or is called ``turn``, gets the turn that calls. Plain and async
    functions are tools of both kinds of turn: a plain one is called in a thread of its own by an async turn, whose stop
    does not wait for it.

    What it returns is the result: a `str` is its text, a dict its fields, a `ToolResult` is taken as it is, anything
    else is its ``value``. What it raises is raised by ``turn.call`` as `ToolFailed`. Both are a row of the transcript.

    Args:
        name: the function's own name if not given; letters, digits and _.
        ray: options of a Ray task that it is run as, with resources of its own: ``num_cpus`` (1 if not given),
            ``num_gpus``, ``memory`` (bytes), ``resources`` and others. It is never retried, ends with the turn, and is
            given no turn. Resources that no node has are waited for, until the turn's stop or deadline.

    Raises:
        ToolSignatureError: a parameter has no type, or one that has no form in JSON.
        TypeError: no function, or an option that there is not.
        ValueError: the name cannot be one.
    """
    # types that are local to where the function is written resolve, too
    around = sys._getframe(1).f_locals

    from openclaw_ray.agents.tools.signature import signature_of  # a process without tools of its own has no use for it

    def mark(function: F) -> F:
        _check_shape(function)
        called = function.__name__ if name is None else name
        _check_name(called)
        signature = signature_of(function, called, around)
        options = None if ray is None else _checked_options(called, ray)
        if options is not None and signature.turn is not None:
            detail = "a tool that runs as a Ray task is in another process than the turn, and is given none"
            raise ToolSignatureError(called, signature.turn, detail)
        setattr(function, TOOL_MARK, ToolInfo(signature, is_async(function), options))
        return function

    return mark if function is None else mark(function)


def tool_info(function: Any) -> ToolInfo:
    """The `ToolInfo` of a function.

    Raises:
        TypeError: it has none; the text says what to do.
    """
    info = getattr(function, TOOL_MARK, None)
    if isinstance(info, ToolInfo):
        return info
    shown = getattr(function, "__qualname__", None) or repr(function)[:100]
    raise TypeError(f"{shown} is no tool: decorate the function with @tool, or name a built-in one by its name")


def _check_shape(function: Any) -> None:
    if not inspect.isfunction(function):
        what = "classes" if isinstance(function, type) else f"{type(function).__name__} objects"
        raise TypeError(f"@tool is for functions (def or async def), not for {what}")
    plain = inspect.unwrap(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise TypeError(f"{function.__qualname__} is a generator; a tool returns its result")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        raise ValueError(
            f"{name!r} cannot be a tool's name: 1 to 64 letters, digits and _, the first of them a letter, "
            f"and not {', '.join(_TAKEN)}; give one by @tool(name=…)"
        )


def _checked_options(tool: str, options: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(options, Mapping):
        raise TypeError(f"@tool(ray=…) is a dict of the task's options, not {options!r}")
    for option, value in options.items():
        if option not in _RAY:
            raise TypeError(f"@tool(ray=…) of {tool}: there is no option {option!r} (options: {', '.join(_RAY)})")
        if option in ("num_cpus", "num_gpus", "memory") and not _is_amount(value):
            raise TypeError(f"@tool(ray={{{option!r}: …}}) of {tool} is a number of 0 or more, not {value!r}")
        named = isinstance(value, Mapping) and all(isinstance(k, str) and _is_amount(v) for k, v in value.items())
        if option == "resources" and not named:
            raise TypeError(f"@tool(ray={{'resources': …}}) of {tool} is a dict of names to amounts, not {value!r}")
    return dict(options)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
