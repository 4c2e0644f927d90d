"""What runs inside a session's turn: agents, and the turn as they see it.

A session process imports this: nothing here imports Ray, numpy or pydantic before it must.
"""

from openclaw_ray.agents.agent_class import Agent
from openclaw_ray.agents.decorator import agent
from openclaw_ray.agents.session_view import SessionView, TurnEvent
from openclaw_ray.agents.sync_turn import SyncTurn
from openclaw_ray.agents.tools.decorator import tool
from openclaw_ray.agents.turn import Turn

__all__ = ["Agent", "SessionView", "SyncTurn", "Turn", "TurnEvent", "agent", "tool"]
