"""The tools that an agent's turn may call: one module each, by the name that a model knows it by (DESIGN.md 7)."""

from openclaw_ray.agents.tools.calling import TOOLS, ToolCalls, ToolSet

__all__ = ["TOOLS", "ToolCalls", "ToolSet"]
