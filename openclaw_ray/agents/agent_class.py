"""`Agent`: the class form of an agent."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["Agent"]


class Agent:
    """Subclass it with ``async def on_turn(self, turn)`` or ``def on_turn(self, turn)`` (DESIGN.md 7).

    The class is made without arguments for each activation: ``self`` may be new at any turn, only the
    transcript and ``turn.state`` stay. Pass the class itself as agent, not an instance.

    Attributes:
        id: the agent's id; the class's own name in lower case if not given.
        resumable, spawns, follow_up: see `openclaw_ray.agents.info.AgentInfo`; a class is told of its
            children's ends by further turns unless it says otherwise.
    """

    id: ClassVar[str] = ""
    resumable: ClassVar[bool] = False
    spawns: ClassVar[bool] = True
    follow_up: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # not inherited: a subclass of an agent is another agent
        if "id" not in cls.__dict__:
            cls.id = cls.__name__.lower()

    def on_turn(self, turn: Any) -> Any:
        """Take one turn: a `Turn` if this is ``async``, else a `SyncTurn`. What it returns is the outcome."""
        raise NotImplementedError(f"{type(self).__name__} has no on_turn")
