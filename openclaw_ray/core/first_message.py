"""The first message that a sub-agent sees (SPEC.md C stage 5, N15): the task is in it and nowhere else."""

from __future__ import annotations

import json
import time
from functools import lru_cache

from openclaw_ray.core.session_facts import SessionFacts

__all__ = ["first_message"]


def first_message(
    *,
    task: str,
    depth: int,
    depth_cap: int,
    requester: str,
    agent_id: str,
    created: float,
    facts: SessionFacts | None = None,
) -> str:
    """The first visible message of a spawned session (N15).

    Args:
        created: seconds since the epoch.
    """
    runtime = [f"agent={agent_id}"]
    if facts is not None:
        named = {"model": facts.model, "thinking": facts.thinking, "cwd": facts.cwd}
        runtime += [f"{name}={value}" for name, value in named.items() if value]
    return (
        f"[{_stamp(int(created))}]\n"
        f"[Subagent Context] You are a sub-agent at depth {depth} of {depth_cap}, spawned by {requester}.\n"
        f"{_attached_line(facts)}\n"
        f"[Subagent Task]\n{task}\n\n"
        f"{_closing(facts)}\n"
        f"Runtime: {' '.join(runtime)}"
    )


def _closing(facts: SessionFacts | None) -> str:
    if facts is not None and facts.mode == "session":
        return (
            "This session stays: your answers are said to a user in a conversation of its own, and what is said there "
            "comes to you."
        )
    return "Do this task and answer with its result; your last message is handed to who asked."


@lru_cache(maxsize=4)
def _stamp(second: int) -> str:
    """Many sessions are made within one second."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(second))


def _attached_line(facts: SessionFacts | None) -> str:
    if facts is None or facts.attachments is None:
        return ""
    files = facts.attachments.files
    named = ", ".join(json.dumps(file.name, ensure_ascii=False) for file in files)
    hint = facts.attachments.mount_path
    where = f" (meant for {json.dumps(hint, ensure_ascii=False)})" if hint else ""
    return f"{len(files)} attached file{'s' if len(files) != 1 else ''}{where}: {named}\n"
