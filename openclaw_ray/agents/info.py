"""What the runtime knows of an agent without running it, and where it is written down."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["MARK", "AgentInfo", "agent_info", "check_callable", "checked_id", "is_async"]

MARK = "__openclaw_agent__"
"""The attribute of an agent function that holds its `AgentInfo`."""

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """What an agent says of itself (DESIGN.md 7).

    Attributes:
        id: ``[a-z0-9][a-z0-9_-]{0,63}``.
        resumable: an interrupted run may be given one synthetic message by a start with ``recover=True``, else it
            ends ``failed``, cause ``interrupted`` (DESIGN.md 10).
        spawns: it may have children; one that may not is placed more freely (PROTOCOL.md 3.3).
        follow_up: it wants a further turn when children that outlived its turn have settled (PROTOCOL.md 5.3)
        tools: those that it has beside the built-in ones of every session: functions that are tools, and names of
            built-in ones that it asks for.
    """

    id: str
    resumable: bool = False
    spawns: bool = True
    follow_up: bool = False
    tools: tuple[Any, ...] = ()


def checked_id(name: str) -> str:
    """``name`` if it can be an agent id.

    Raises:
        ValueError: it cannot; the text says what can.
    """
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be an agent id: 1 to 64 of a-z, 0-9, _ and -, "
            "the first of them a letter or digit; give one by id=…"
        )
    return name


def check_callable(function: Any, *arguments: str) -> None:
    """See that a function can take a turn.

    Raises:
        TypeError: it is a generator, no function, or cannot be called with those arguments.
    """
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function):
        raise TypeError(f"{name} is no function, and cannot take a turn")
    plain = inspect.unwrap(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise TypeError(f"{name} is a generator; an agent returns its outcome")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as exc:
        what = "one argument, the turn" if len(arguments) == 1 else "self and one argument, the turn"
        raise TypeError(f"{name} cannot be called with {what}: {exc}") from None


def agent_info(agent: Any) -> AgentInfo:
    """The `AgentInfo` of an agent function or `Agent` class.

    Raises:
        TypeError: it is neither; the text says what to do.
        ValueError: its id cannot be one.
    """
    from openclaw_ray.agents.agent_class import Agent

    if isinstance(agent, type) and issubclass(agent, Agent):
        if agent is Agent:
            raise TypeError("Agent itself is no agent; pass a subclass that has on_turn")
        marks = (bool(agent.resumable), bool(agent.spawns), bool(agent.follow_up))
        return AgentInfo(checked_id(agent.id), *marks, tuple(agent.tools))
    if isinstance(agent, Agent):
        kind = type(agent).__name__
        raise TypeError(f"pass the class {kind}, not an instance: each activation makes its own")
    info = getattr(agent, MARK, None)
    if isinstance(info, AgentInfo):
        return info
    name = getattr(agent, "__qualname__", None) or repr(agent)[:100]
    raise TypeError(f"{name} is no agent: decorate the function with @agent, or subclass Agent")


def is_async(function: Any) -> bool:
    """True if calling it gives a coroutine, a decorator that keeps ``__wrapped__`` seen through."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inspect.unwrap(function))
