"""The tools that an agent's turn may call: one module each, by the name that a model knows it by (DESIGN.md 7).

* every session: ``agents_list``, ``sessions_spawn``, ``sessions_yield``, ``subagents``;
* for agents that name them: ``read``, ``write``, ``edit`` (kept in the `workspace`), ``exec``, ``process``;
* an agent's own functions (`decorator`, `signature`, `function_tool`).

`catalog` knows which of them a turn has, `calling` is how it calls them.
"""

from openclaw_ray.agents.tools.calling import TOOLS, ToolCalls, ToolSet

__all__ = ["TOOLS", "ToolCalls", "ToolSet"]
