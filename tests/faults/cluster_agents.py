"""What sessions on several nodes run."""

from __future__ import annotations

import os
import time
from typing import Any

import ray
from fault_agents import say

import openclaw_ray as oc


def node() -> str:
    """The node that this runs on."""
    return str(ray.get_runtime_context().get_node_id())


@oc.agent(spawns=False)
def gated(turn: oc.SyncTurn) -> str:
    """Say who runs where, wait for a file, and give the node."""
    log, gate, name = turn.input
    say(log, name)
    while not os.path.exists(gate):
        turn.check()
        time.sleep(0.02)
    return node()


@oc.agent(spawns=False)
def slotted(turn: oc.SyncTurn) -> str:
    """Hold a slot for a moment."""
    time.sleep(0.05)
    return node()


@oc.agent
def boss(turn: oc.SyncTurn) -> list[str | None]:
    """Have children hold slots, and wait for them."""
    for _ in range(turn.input):
        turn.spawn(task="hold a slot", agent_id="slotted")
    return [done.result.text for done in turn.join()]


@oc.agent
def selfish(turn: oc.SyncTurn) -> str:
    """Hold a slot, and wait for a child that needs one, too."""
    if turn.session.depth > 1:
        return "there were two"
    turn.spawn(task="more", agent_id="selfish")
    [done] = turn.join()
    return str(done.result.error.message if done.result.error else done.result.text)


@oc.agent(spawns=False)
def bulky(turn: oc.SyncTurn) -> Any:
    """A megabyte, and the node where it was made; the input names an array that lies elsewhere."""
    import numpy as np

    index, there = turn.input
    array = ray.get(there)
    made = np.full(1 << 17, int(array.sum()) + index, dtype=np.float64)
    return {"array": made, "node": node(), "writeable": bool(array.flags.writeable)}


@oc.agent(spawns=False)
def needy(turn: oc.SyncTurn) -> None:
    """Asks for what no node has."""


@oc.agent(spawns=False)
def equipped(turn: oc.SyncTurn) -> list[str]:
    """What it has of a ``runtime_env``, and where."""
    import cargo  # type: ignore[import-not-found]

    return [cargo.NAME, os.environ["CARGO"], node()]


AGENTS = [gated, slotted, boss, selfish, bulky, needy]
