"""What is asked for, by names: agents, sessions, runs."""

from __future__ import annotations

from typing import Any

from openclaw_ray.core.limits import AgentLimits
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.state import AgentEntry

__all__ = ["admit", "agent", "key_of", "root_of"]


def agent(name: str, *, bundle: str = "b1", spawns: bool = True, **limits: Any) -> AgentEntry:
    """An agent of the runtime; ``limits`` go into its `AgentLimits`."""
    return AgentEntry(name, bundle, "here", "hash", spawns, False, False, AgentLimits(name, **limits))


def root_of(client: str) -> str:
    """The key of a client's root."""
    return f"agent:w:driver:{client}"


def key_of(session: str) -> str:
    """A session's key, from the name of its run."""
    return session if session.startswith("agent:") else f"agent:w:subagent:{session}"


def admit(run: str, requester: str, **options: Any) -> Admit:
    """What a courier asks for: a session of its own for the run, named after it."""
    asked = {"session_key": key_of(run), "session_id": f"s-{run}", "route": "spawn", "task": run, **options}
    return Admit(run=run, requester=requester, **asked)
