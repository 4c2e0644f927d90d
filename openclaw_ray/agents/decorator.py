"""``@agent``: a function becomes an agent, and stays the function that it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from openclaw_ray.agents._origin import mark_source
from openclaw_ray.agents.info import MARK, AgentInfo, check_callable, checked_id

__all__ = ["agent"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def agent(function: F, /) -> F: ...


@overload
def agent(
    *,
    id: str | None = None,
    resumable: bool = False,
    spawns: bool = True,
    follow_up: bool = False,
    tools: Sequence[Callable[..., Any] | str] = (),
) -> Callable[[F], F]: ...


def agent(
    function: F | None = None,
    /,
    *,
    id: str | None = None,
    resumable: bool = False,
    spawns: bool = True,
    follow_up: bool = False,
    tools: Sequence[Callable[..., Any] | str] = (),
) -> F | Callable[[F], F]:
    """Make a function an agent; usable with and without parentheses (DESIGN.md 7).

    The function takes one argument: a `Turn` if it is ``async``, else a `SyncTurn`. It is returned unchanged,
    so tests may call it with a turn of their own.

    Args:
        id: the agent's id; the function's name in lower case if not given.
        resumable: see `AgentInfo`; so are ``spawns`` and ``follow_up``.
        tools: what its turns may call beside the session tools: functions that are a `tool`, and the names of the
            built-in ones that touch the machine (``read``, ``write``, ``edit``, ``exec``, ``process``).

    A resumable one takes the turn of an interrupted run itself, ``turn.kind`` being ``resume``; see `AgentInfo` for
    what of it is in effect now.

    Raises:
        TypeError: not a function that can be called with a turn and returns its outcome; a setting that is no bool;
            a tool that is none.
        ValueError: the id cannot be one; there is no built-in tool of that name.
        DuplicateTool: two tools of one name.
    """

    for name, value in (("resumable", resumable), ("spawns", spawns), ("follow_up", follow_up)):
        if not isinstance(value, bool):
            raise TypeError(f"@agent({name}=…) is True or False, not {value!r}")

    own: tuple[Any, ...] = ()
    if tools:
        from openclaw_ray.agents.tools.catalog import checked_tools  # agents without tools do not pay for it

        own = checked_tools(tools)

    def mark(function: F) -> F:
        _check_shape(function)
        name = function.__name__.lower() if id is None else id
        setattr(function, MARK, AgentInfo(checked_id(name), resumable, spawns, follow_up, own))
        mark_source(function)
        return function

    return mark if function is None else mark(function)


def _check_shape(function: Any) -> None:
    if isinstance(function, type):
        raise TypeError(f"@agent is for functions; a class such as {function.__name__} subclasses Agent")
    if not inspect.isfunction(function):
        raise TypeError(f"@agent is for functions (def or async def), not for {type(function).__name__} objects")
    check_callable(function, "turn")
