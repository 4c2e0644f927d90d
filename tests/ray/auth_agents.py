"""Agents for the tests of credentials."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import openclaw_ray as oc

__all__ = ["ALL", "fails", "gets", "holds", "lead", "shut"]


@oc.agent(id="main")
def lead(turn: oc.SyncTurn) -> dict[str, Any]:
    """A tree: one child with a key of its own, one with the fallback, one that fails with what it got in its hands."""
    got = turn.auth.get("anthropic")
    turn.append("assistant", f"I have {got} and {got!r}")
    turn.progress(f"with {got}")
    for agent in ("gets", "b", "fails"):
        turn.spawn("anthropic", agent_id=agent)
    ends = {done.agent_id: done.result for done in turn.join()}
    turn.auth.succeeded(got)
    return {"own": len(got.secret), **{agent: end.value for agent, end in ends.items()}, "failed": ends["fails"].error}


@oc.agent(spawns=False)
def gets(turn: oc.SyncTurn) -> dict[str, Any]:
    """What it got, without the secret: its length stands for it."""
    got = turn.auth.get(turn.text)
    ran = subprocess.run(["env"], capture_output=True, text=True, check=True)
    told = {"id": got.profile_id, "source": got.source.value, "length": len(got.secret)}
    return {**told, "pid": os.getpid(), "env": ran.stdout}


class B(oc.Agent):
    """The same, with a store of its own."""

    id = "b"
    spawns = False

    async def on_turn(self, turn: oc.Turn) -> dict[str, Any]:
        got = await turn.auth.get(turn.text)
        return {"id": got.profile_id, "source": got.source.value, "length": len(got.secret), "pid": os.getpid()}


@oc.agent(spawns=False)
def fails(turn: oc.SyncTurn) -> None:
    got = turn.auth.get(turn.text)
    turn.auth.failed(got, cooldown=0.001, reason="auth")
    raise ValueError("refused", got)


@oc.agent(spawns=False)
def holds(turn: oc.SyncTurn) -> int:
    """Has it in its hands until the door, a file, is there."""
    place, _, provider = turn.text.partition(" ")
    got = turn.auth.get(provider).secret
    Path(place, "held").write_text(str(os.getpid()))
    while not Path(place, "open").exists():
        turn.check()
        time.sleep(0.01)
    return len(got)


@oc.agent(spawns=False)
def shut(turn: oc.SyncTurn) -> int:
    """Has nothing in reach."""
    try:
        turn.auth.get("anthropic")
    except oc.NoCredential:
        return os.getpid()
    raise AssertionError("it got one")


ALL = [lead, gets, B, fails, holds, shut]
