"""Agents that look at their tools."""

from __future__ import annotations

from typing import Any

import openclaw_ray as oc

__all__ = ["POLICY_AGENTS"]


@oc.agent
async def policy_looks(turn: oc.Turn) -> dict[str, Any]:
    """What it has, what a denied call says, and what a connection of its own is told; a child's look below it."""
    listed = list(turn.tools)
    view = await turn.tool_view()
    try:
        await turn.call("subagents")
    except oc.ToolDenied as error:
        denied = (error.rule, error.path)
    else:
        denied = None
    below = None
    if turn.text == "deeper":
        receipt = await turn.spawn("look", tools={"allow": ["sessions_yield", "subagents"]})
        [done] = await turn.join([receipt])
        below = done.result.raise_for_status().value
    return {"listed": listed, "view": view, "denied": denied, "below": below}


@oc.agent
def policy_calls(turn: oc.SyncTurn) -> str:
    """Calls what it may not, and does not mind."""
    turn.call("agents_list")
    return "never"


@oc.agent
def policy_takes(turn: oc.SyncTurn) -> str:
    """What it is told while it works."""
    said: list[str] = []
    while "stop" not in said:
        said += [event.text for event in turn.messages(timeout=30)]
    return ", ".join(said)


POLICY_AGENTS = [policy_looks, policy_calls, policy_takes]
