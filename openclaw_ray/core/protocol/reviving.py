"""A session whose process died hears its children's ends all the same (DESIGN.md 8; PROTOCOL.md 4.4 b).

1. Its run is over, ``failed``, and its requester has been told so. What its children come to is for the *session*: it
   is activated again by a run of its own, of kind ``completion``, whose start carries all that is pending.
2. Only for an agent that takes further turns (PROTOCOL.md 5.3). A plain function would begin from its first line again;
   its children's ends go to its requester, marked as fallback.
3. The new run is where the dead one was: same requester, same parent, same lane, so that a stop from above reaches it
   and its end is announced as any other. One run gathers all that is pending, as a session has one run at a time.
4. A start that dies with what it carries counts as an attempt to deliver that. After 5, 10 and 20 seconds it is tried
   again; after the fourth it is given up: nobody's process is to die for ever of the same message.
"""

from __future__ import annotations

from dataclasses import replace

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import DeliveryState, RunKind
from openclaw_ray.core.message import heir
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State

__all__ = ["revive", "takes_further_turns"]


def takes_further_turns(s: State, session: Session) -> bool:
    """Whether a session's agent is called again for its children's ends (2)."""
    entry = s.agents.get(session.agent)
    return entry is not None and entry.follow_up


def revive(s: State, session: Session, dead: Run) -> None:
    """Have a session that has no run hear what is pending for it (1, 3)."""
    entry = s.agents[session.agent]
    above = s.runs.get(dead.parent)
    announced = dead.route == "spawn"
    seq = s.next_seq()
    run = Run(
        f"revival-{session.session_id}-{seq}",
        seq,
        session.key,
        session.session_id,
        session.agent,
        dead.route,
        dead.requester,
        above.id if above is not None else "",
        dead.root,
        dead.depth,
        dead.reserve_depth,
        dead.task,
        s.clock.wall(),
        dead.lane,
        dead.lane_width,
        dead.klass,
        timeout=dead.timeout,
        expects=dead.expects,
        label=dead.label,
        transcripts=dead.transcripts,
        client=dead.client,
        kind=RunKind.COMPLETION,
        turns=dead.turns,
        talk=heir(dead.talk),
        deliver_to=dead.requester if announced else "",
        delivery=DeliveryState.PENDING if announced and dead.expects else DeliveryState.NOT_REQUIRED,
        senders=None if dead.senders is None else replace(dead.senders, turn=0),
    )
    run.klass = s.reuse_class(entry, run.root, run.id)
    s.runs[run.id] = run
    for ended in lineage.ancestors(s.runs, run):
        if isinstance(ended, Run) and ended.terminal and not ended.live_below:
            _counts_again(s, ended)  # something lives below it once more
    lineage.born(s.runs, run.id, run)
    _counts_again(s, run)
    session.run = session.last_run = run.id
    session.revivals += 1
    session.state, session.ended = "passive", None
    s.touch(session)
    s.touch(run)
    s.event("run", run, reason="activated again for its children's ends")
    s.enqueue(run)


def _counts_again(s: State, run: Run) -> None:
    requester = s.sessions.get(run.requester)
    if requester is not None:
        requester.active += 1
