"""Agents that wait for a word, and agents that are interrupted."""

from __future__ import annotations

import asyncio
from typing import Any

import openclaw_ray as oc


@oc.agent(id="yield_waits")
async def waits(turn: oc.Turn) -> str:
    """Waits for a word, and says what it was."""
    if turn.kind == "message":
        return f"told {turn.text} after {turn.state['before']}"
    turn.state["before"] = turn.text
    turn.yield_(wait_for="message")
    return "never"


@oc.agent(id="yield_digs", spawns=False)
async def digs(turn: oc.Turn) -> str:
    """For ever, unless it is told something else."""
    if turn.kind == "message":
        return f"{turn.text} with {turn.input}"
    turn.progress("at work")
    await asyncio.sleep(3600)
    return "never"


@oc.agent(id="yield_steers")
async def steers(turn: oc.Turn) -> Any:
    """Steers its child, and joins it or yields for it."""
    if turn.kind == "wake":
        return [done.text for done in turn.completions]
    child = await turn.spawn(task="dig", agent_id="yield_digs", input=7)
    while not any(row["execution"].get("progress") for row in (await turn.call("subagents"))["active"]):
        await asyncio.sleep(0.01)
    steered = await turn.call("subagents", action="steer", target="last", message="fill it in")
    if turn.text == "yield":
        turn.yield_()
    [done] = await turn.join([child])
    return [done.text, done.run_id == steered["runId"], list(done.replaces) == [child.run_id]]


AGENTS = [waits, digs, steers]
