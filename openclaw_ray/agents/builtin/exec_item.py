"""The agent behind ``openclaw-ray map --exec``: one session, one command, its output as the answer."""

from __future__ import annotations

from typing import cast

from openclaw_ray.agents.builtin.command import run_command
from openclaw_ray.agents.decorator import agent
from openclaw_ray.agents.sync_turn import SyncTurn

__all__ = ["exec_item"]


@agent(id="exec", spawns=False)
def exec_item(turn: SyncTurn) -> str:
    """Run ``turn.input["argv"]`` in the folder ``turn.input["cwd"]``; returns its standard output.

    Raises:
        CommandFailed: it could not start, or ended with a status other than 0.
    """
    job = cast("dict[str, object]", turn.input)
    argv = cast("list[str]", job["argv"])
    return run_command(argv, cwd=cast("str | None", job.get("cwd")), check=turn.check)
