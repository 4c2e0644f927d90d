"""The run that a message is at its target (PROTOCOL.md 5.6; SPEC.md J, lane ``nested:<target>``).

1. It waits in the target's serial lane, and has the lane ``nested:<target>``: what keeps other lanes busy cannot keep
   a message from being heard.
2. A sub-agent that has ended is activated again: same key, transcript and state, one more run. It hangs where the
   session hangs in its tree, below the nearest run above that there is, so that a stop from above reaches it.
3. A run that somebody waits for counts one deeper than its waiter for the reserve rule (PROTOCOL.md 3.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import RunKind, SessionState
from openclaw_ray.core.message import Talk
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State

if TYPE_CHECKING:
    from openclaw_ray.core.policy.rules import Senders

__all__ = ["awaken", "message_run", "nested_lane", "run_above"]


def nested_lane(key: str) -> str:
    """The lane of messages to a session (1)."""
    return f"nested:{key}"


def awaken(s: State, session: Session) -> None:
    """Have a session that has ended be there again (2); harmless for one that has not."""
    s.sessions[session.key] = session
    if session.state == SessionState.ENDED:
        session.state = SessionState.PASSIVE.value
        session.ended = session.archive_at = None
        session.revivals += 1
    elif session.depth > 0:
        session.revivals += 1  # two runs: that one of them is done does not end what the other is there for


def run_above(s: State, session: Session) -> Run | None:
    """The nearest run above a sub-agent that there is (2)."""
    key = session.requester
    while key:
        above = find_session(s, key)
        if above is None:
            return None
        run = s.runs.get(above.run)
        if run is not None:
            return run
        key = above.requester
    return None


def message_run(
    s: State,
    session: Session,
    entry: AgentEntry,
    run_id: str,
    text: str,
    talk: Talk,
    *,
    client: str = "",
    waiter_depth: int = -1,
    kind: RunKind = RunKind.MESSAGE,
    senders: Senders | None = None,
) -> Run:
    """Make the run and put it in line; ``waiter_depth`` is what the waiter counts as, -1 if nobody waits (3)."""
    awaken(s, session)
    above = run_above(s, session) if session.depth > 0 else None
    own = session.depth if entry.spawns and session.depth < s.depth_cap else s.depth_cap
    run = Run(
        run_id,
        s.next_seq(),
        session.key,
        session.session_id,
        entry.id,
        "send",
        session.requester,
        above.id if above is not None else "",
        session.root,
        session.depth,
        min(s.depth_cap, max(own, waiter_depth + 1)),
        text,
        s.clock.wall(),
        nested_lane(session.key),
        1,
        s.reuse_class(entry, session.root, run_id),
        client=client,
        kind=kind,
        turns=0 if kind is RunKind.MESSAGE else 1,
        expects=False,
        talk=talk,
        senders=senders,
    )
    s.runs[run.id] = run
    session.last_run = run.id
    lineage.born(s.runs, run.id, run)
    requester = s.sessions.get(run.requester)
    if requester is not None:
        requester.active += 1
    session.aborted = False
    s.touch(session)
    s.touch(run)
    s.event("run", run)
    if session.run:
        session.waiting.append(run.id)
    else:
        session.run = run.id
        s.enqueue(run)
    return run
