"""`Agent`: the class form of an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from openclaw_ray.agents._origin import mark_source
from openclaw_ray.agents.info import check_callable

__all__ = ["Agent", "turn_method"]


class Agent:
    """Subclass it with ``async def on_turn(self, turn)`` or ``def on_turn(self, turn)`` (DESIGN.md 7).

    The class is made without arguments for each activation: ``self`` may be new at any turn, only the
    transcript and ``turn.state`` stay. Pass the class itself as agent, not an instance.

    Attributes:
        id: the agent's id; the class's own name in lower case if not given.
        resumable, spawns, follow_up: see `openclaw_ray.agents.info.AgentInfo`; a class is told of its
            children's ends by further turns unless it says otherwise. One with an `on_resume` is resumable.
        tools: what its turns may call beside the session tools, see `agent`; a subclass has those of its own, or, if
            it says nothing, its base's.

    Raises:
        TypeError: when the class is made: a method cannot be called with a turn, or is a generator; ``resumable`` is
            no bool, or denies an `on_resume` of the same class; something in ``tools`` is no tool.
        ValueError, DuplicateTool: by ``tools``, as by `agent`.
    """

    id: ClassVar[str] = ""
    resumable: ClassVar[bool] = False
    spawns: ClassVar[bool] = True
    follow_up: ClassVar[bool] = True
    tools: ClassVar[Sequence[Callable[..., Any] | str]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # not inherited: a subclass of an agent is another agent
        if "id" not in cls.__dict__:
            cls.id = cls.__name__.lower()
        for name in ("on_turn", "on_resume"):
            if name in cls.__dict__:
                check_callable(cls.__dict__[name], "self", "turn")
        if "tools" in cls.__dict__:
            from openclaw_ray.agents.tools.catalog import checked_tools

            cls.tools = checked_tools(cls.tools)
        says = cls.__dict__.get("resumable")
        if says not in (None, True, False):
            raise TypeError(f"{cls.__name__}.resumable is True or False, not {says!r}")
        if "on_resume" in cls.__dict__:
            if says is False:
                raise TypeError(f"{cls.__name__} has an on_resume, and resumable = False: leave one of them out")
            cls.resumable = True
        mark_source(cls)

    def on_turn(self, turn: Any) -> Any:
        """Take one turn: a `Turn` if this is ``async``, else a `SyncTurn`. What it returns is the outcome."""
        raise NotImplementedError(f"{type(self).__name__} has no on_turn")

    def on_resume(self, turn: Any) -> Any:
        """Take the turn of an interrupted run after a restart, ``turn.kind`` being ``resume`` (DESIGN.md 10).

        Without one of its own, a class with ``resumable = True`` gets that turn by `on_turn`. It comes after a start
        with ``recover=True``, in the same run: ``turn.state`` is that of the last turn that ended, ``turn.text`` says
        that what was done by then is done.
        """
        return self.on_turn(turn)


def turn_method(agent: type[Agent], resumes: bool) -> str:
    """The method that takes a turn."""
    return "on_resume" if resumes and agent.on_resume is not Agent.on_resume else "on_turn"
