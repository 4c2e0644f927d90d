"""The tools that an agent's turn may call: one module each, by the name that a model knows it by (DESIGN.md 7).

* every session: ``agents_list``, ``sessions_spawn``, ``sessions_yield``, ``subagents``, and those that look at
  sessions, change them and send to them;
* for agents that name them: ``read``, ``write``, ``edit`` (kept in the `workspace`), ``exec``, ``process``;
* an agent's own functions (`decorator`, `signature`, `function_tool`).

`catalog` knows which of them a turn has, `calling` is how it calls them. A session process loads them with the first
look at its tools: most sessions never take one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openclaw_ray.agents.tools.catalog import TOOLS

__all__ = ["TOOLS"]


def __getattr__(name: str) -> Any:
    if name == "TOOLS":
        from openclaw_ray.agents.tools.catalog import TOOLS

        return TOOLS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
