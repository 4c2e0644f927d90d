"""Agents with tools: as Ray tasks, and of the machine."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import openclaw_ray as oc
from openclaw_ray.agents.tools import command


class Sour(Exception):
    """Of this module, which tasks have not on their paths."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


@oc.tool(ray={"num_cpus": 0.25, "memory": 1 << 20})
def measure(n: int, place: str = "") -> dict[str, Any]:
    """Where it ran, and on what."""
    import ray

    if place:
        Path(place, "task").write_text(str(os.getpid()))
        time.sleep(600)
    if n < 0:
        raise Sour(n, n)
    assigned = ray.get_runtime_context().get_assigned_resources()
    return {"pid": os.getpid(), "cpus": assigned.get("CPU"), "n": n + 1}


@oc.tool(ray={"num_cpus": 0})
async def measure_later(n: int) -> int:
    await asyncio.sleep(0)
    return n + 2


@oc.agent(id="measurer", spawns=False, tools=[measure, measure_later])
def measurer(turn: oc.SyncTurn) -> dict[str, Any]:
    if turn.input:
        turn.tools.measure(n=1, place=turn.input)
    found = turn.tools.measure(n=1)
    try:
        turn.tools.measure(n=-1)
    except oc.ToolFailed as failed:
        error = [failed.kind, failed.message]
    return {**found.value, "own": os.getpid(), "later": turn.tools.measure_later(n=1).value, "error": error}


@oc.agent(id="shell", spawns=False, tools=["exec", "process", "read", "write", "edit"])
def shell(turn: oc.SyncTurn) -> dict[str, Any]:
    """Run ``turn.input`` and say what came of it."""
    done = turn.tools.exec(**turn.input)
    return {**done.to_json(), "own": os.getpid()}


TREE = """
import os, sys, time
for deep in range(3):      # eight processes
    os.fork()
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""


@oc.agent(id="grower", spawns=False, tools=["exec"])
def grower(turn: oc.SyncTurn) -> str | None:
    """Let a tree of processes grow, some of them in sessions of their own."""
    place, most = turn.input
    before, command.MOST_PROCESSES = command.MOST_PROCESSES, most
    try:
        program = [sys.executable, "-c", TREE, f"{place}/all"]
        text = f"setsid sleep 600 & echo $! >> {place}/all; exec \"$@\""
        return turn.tools.exec(command=["/bin/sh", "-c", text, "sh", *program], timeout=120).error
    finally:
        command.MOST_PROCESSES = before


ALL = (measurer, shell, grower)
