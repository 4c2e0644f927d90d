"""What sessions run that are stopped in the middle of something: races, breeding trees, families of all sorts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from typing import Any

from fault_agents import say

import openclaw_ray as oc
from openclaw_ray.core.errors import SpawnError, SpawnForbidden

LASTS = 0.03
NEAR = 0.005


@oc.agent(spawns=False)
def spell(turn: oc.SyncTurn) -> str:
    """Last so many seconds; say when it began and ended."""
    path, name, seconds = turn.input
    say(path, name, "begins", time.monotonic_ns())
    try:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            turn.check()
            time.sleep(min(left, 0.001))
    finally:
        say(path, name, "ends", time.monotonic_ns())
    return "ended by itself"


@oc.agent
def racing(turn: oc.SyncTurn) -> list[dict[str, Any]]:
    """Rounds of a child that ends by itself at the moment in which it is stopped, or its time is over; a second child
    wants the only slot after it."""
    path, how, seed, numbers = turn.input
    rounds = []
    earlier = 0.0  # how long a stop is on its way: found out by how the rounds end
    for number in range(*numbers):
        chance = random.Random(f"{seed} {number}")
        off = chance.uniform(-NEAR, NEAR)
        timeout = LASTS + off if how == "timeout" else None
        first = turn.spawn(
            agent_id="spell", input=(path, f"{number}.first", LASTS), run_timeout_seconds=timeout, label="first"
        )
        second = turn.spawn(agent_id="spell", input=(path, f"{number}.second", 0))
        word = ""
        if how == "stop":
            _wait_for(path, f"{number}.first begins")
            time.sleep(max(0.0, LASTS + off - earlier))
            say(path, f"{number}.first", "asked", time.monotonic_ns())
            word = str(turn.call("subagents", action="kill", taskId=first.run_id)["status"])
        ends = {done.run_id: done for done in turn.join([first, second])}
        one = ends[first.run_id].result
        earlier += NEAR / 5 if one.ok else -NEAR / 5
        rounds.append(
            {
                "run": first.run_id,
                "status": one.status.value,
                "text": one.text,
                "word": word,
                "second": ends[second.run_id].result.status.value,
            }
        )
    return rounds


def _wait_for(path: str, line: str) -> None:
    while True:
        with contextlib.suppress(FileNotFoundError), open(path) as file:
            if line in file.read():
                return
        time.sleep(0.001)


@oc.agent
def breeder(turn: oc.SyncTurn) -> None:
    """Say that it is there, then spawn as fast as it can, for as long as it lives."""
    path, name = turn.input
    say(path, name, time.time_ns())
    while True:
        try:
            turn.spawn(agent_id="breeder", input=(path, name))
        except (SpawnForbidden, SpawnError):
            turn.check()
            time.sleep(0.002)


@oc.agent
def link(turn: oc.SyncTurn) -> None:
    """A chain: one child, with the rest of it; then wait until it is told to end."""
    path, depth, timeouts = turn.input
    say(path, depth, "pid", os.getpid(), turn.session.key)
    if timeouts:
        turn.spawn(agent_id="link", input=(path, depth + 1, timeouts[1:]), run_timeout_seconds=timeouts[0])
    while True:
        turn.check()
        time.sleep(0.002)


@oc.agent
async def nursery(turn: oc.Turn) -> None:
    """Ten children: eight that listen, one that spawns and spawns, one that is deaf."""
    path = turn.input
    for number in range(8):
        await turn.spawn(agent_id="listening", label=f"listens {number}", input=(path, f"listens {number}"))
    await turn.spawn(agent_id="spawning", label="spawns", input=path)
    await turn.spawn(agent_id="unhearing", label="deaf", input=path)
    await turn.join()


@oc.agent(spawns=False)
async def listening(turn: oc.Turn) -> None:
    """Last until cancelled."""
    path, name = turn.input
    say(path, name)
    await asyncio.sleep(600)


@oc.agent
def spawning(turn: oc.SyncTurn) -> None:
    """Spawn one short-lived child after the other."""
    say(turn.input, "spawns")
    while True:
        turn.spawn(agent_id="spell", label=f"late {time.time_ns()}", input=(os.devnull, "late", 0.02))
        turn.join()


@oc.agent(spawns=False)
def unhearing(turn: oc.SyncTurn) -> None:
    """Sit in a call that hears nothing."""
    say(turn.input, "deaf")
    time.sleep(600)


AGENTS = [spell, racing, breeder, link, nursery, listening, spawning, unhearing]
