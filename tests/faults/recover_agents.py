"""A service's agents: what each did is in a log, whose path is the first word of the message."""

from __future__ import annotations

import time
from pathlib import Path

import openclaw_ray as oc

__all__ = ["AGENTS", "CONFIG"]

CONFIG = {
    "agents": {"defaults": {"subagents": {"allowAgents": ["*"]}, "maxConcurrent": 2}},
    "ray": {"pool": {"prewarm": 4, "max": 8}},
}


def _say(log: str, line: str) -> None:
    with Path(log).open("a") as file:
        file.write(f"{line}\n")


@oc.agent
def boss(turn: oc.SyncTurn) -> str:
    if turn.kind == "message":
        log = turn.state["log"] = turn.text
        _say(log, "boss began")
        turn.spawn(log, agent_id="quick")
        turn.spawn(log, agent_id="slow")
        turn.yield_()
    _say(turn.state["log"], f"boss {turn.kind.value} {' '.join(done.result.status for done in turn.completions)}")
    return "composed"


@oc.agent(spawns=False)
def quick(turn: oc.SyncTurn) -> str:
    _say(turn.text, "quick began")
    return "quick is done"


@oc.agent(spawns=False)
def slow(turn: oc.SyncTurn) -> str:
    _say(turn.text, "slow began")
    time.sleep(600)
    return "slow is done"


@oc.agent(spawns=False, resumable=True)
def keeper(turn: oc.SyncTurn) -> str:
    if turn.kind == "resume":
        log = turn.text.split()[-1]
        _say(log, "keeper resume")
        return "went on"
    _say(turn.text, "keeper began")
    time.sleep(600)
    return "never interrupted"


@oc.agent(spawns=False)
def plain(turn: oc.SyncTurn) -> str:
    _say(turn.text, "plain began")
    time.sleep(600)
    return "plain is done"


@oc.agent(spawns=False)
def late(turn: oc.SyncTurn) -> str:
    _say(turn.text, "late began")
    return "late is done"


AGENTS = [boss, quick, slow, keeper, plain, late]
