"""What the runtime tells watchers: one small record per transition, numbered by the journal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from openclaw_ray.core.compact import compact

__all__ = ["Event"]


@compact
@dataclass(frozen=True, slots=True)
class Event:
    """One transition, as the registry journaled it.

    Attributes:
        seq: the journal's number of this event; strictly rising, also over a registry restart.
        at: wall-clock seconds since the epoch.
        kind: ``run`` (a run changed its state), ``progress``, ``session``, ``pool``, ``warning``, ``exchange``
            (a message between sessions and what followed from it is over: ``reason``, ``done`` turns of ``total``),
            ``thread`` (a session was bound to the conversation ``text``, or is no more: ``reason``).
        session_key, run_id, agent_id, requester_key, root_key, label: who, where known.
        depth: spawn depth of the session (a root is 0).
        state: the new state word (`openclaw_ray.core.lifecycle`), or of the pool.
        reason: why a run waits or how it ended, e.g. ``waiting for a slot (8 of 8)``.
        text: progress text or a warning; bounded.
        done, total: progress counts, where the agent gave them.
        node, pid: the process that holds the session, where there is one.
        warm: whether the activation found a warm actor (``running`` events only).
    """

    seq: int
    at: float
    kind: str
    session_key: str | None = None
    run_id: str | None = None
    agent_id: str | None = None
    requester_key: str | None = None
    root_key: str | None = None
    depth: int = 0
    label: str | None = None
    state: str | None = None
    reason: str | None = None
    text: str | None = None
    done: float | None = None
    total: float | None = None
    node: str | None = None
    pid: int | None = None
    warm: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The event as JSON-ready dict with camelCase names; absent values left out."""
        from openclaw_ray.core.results import camel_dict

        return camel_dict(asdict(self))
