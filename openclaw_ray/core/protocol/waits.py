"""The wait graph of the registry: which sessions cannot go on before which others do (DESIGN.md 6).

A session waits for another one

1. if a turn of its has sent that one a message and waits for the reply;
2. if a run of its has a child there that has not settled: by join, map and yield it waits in so many words, and in any
   case a message to it is taken only after that run, which ends after its children (PROTOCOL.md 5.2, 5.6).
"""

from __future__ import annotations

from collections.abc import Iterator

from openclaw_ray.core.protocol.state import State

__all__ = ["waits_for"]


def waits_for(s: State, key: str) -> Iterator[str]:
    """The sessions that ``key`` waits for now, directly."""
    session = s.sessions.get(key)
    if session is None:
        return
    run = s.runs.get(session.run)
    if run is not None and run.route != "driver":
        for child_id in run.children:
            child = s.runs.get(child_id)
            if child is not None and not child.terminal and child.session != key:
                yield child.session
    for exchange in s.exchanges.values():
        if exchange.requester == key and exchange.waiter and not exchange.whole:
            yield exchange.target
