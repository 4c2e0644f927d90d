"""A message to a run that waits for one: it goes on with it, and stays who it is (SPEC.md B3).

1. Its run yielded with ``waitFor: "message"`` and has had no turn since. The message is noted with the run, in the step
   that accepts it, and no run is made for it: who sends is told the id of the run that goes on.
2. The run's next turn is of kind ``message`` and starts as soon as there is a slot and a process, in line with all
   others. What is said until it starts goes with it, up to ``ray.inbox.max`` messages.
3. It may be told by the operator and by any session above it: its requester, and that one's. What a session that does
   not control it may say to it is for the rules of ``sessions_send`` to decide, as for one that does not wait.
4. The same message again is as the first time.
"""

from __future__ import annotations

from dataclasses import replace

from openclaw_ray.core.lifecycle import RunKind, RunState
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.control import controls
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import INBOX, Receipt

__all__ = ["tell", "waits_to_be_told"]


def waits_to_be_told(s: State, session: Session) -> Run | None:
    """The run of ``session`` that a message would go to (1)."""
    run = s.runs.get(session.run)
    waits = None if run is None else run.waits
    return run if waits is not None and waits.message else None


def tell(s: State, requester: Session, admit: Admit) -> Receipt | None:
    """Let the run that waits in the session of ``admit`` go on with its message; `None` if that is none of it."""
    session = s.sessions.get(admit.session_key)
    run = None if session is None else waits_to_be_told(s, session)
    if session is None or run is None or run.waits is None:
        return None
    operator = bool(requester.client)
    if not operator and not controls(s, requester.key, session.key):
        return None
    accepted = Receipt("accepted", run.id, session.key, run.agent, told=True)
    told = run.waits.told
    if any(each.id == admit.run for each in told):
        return accepted
    most = s.limits.inbox_max
    if len(told) >= most:
        text = f"the inbox of {session.key} is full: {len(told)} of {most} messages wait for its turn (ray.inbox.max)"
        return Receipt("error", error=text, limit=INBOX, value=len(told), maximum=most, path="ray.inbox.max")
    message = Told(admit.task, "" if operator else requester.key, admit.run, s.clock.wall())
    run.waits = replace(run.waits, told=(*told, message))
    if run.state is RunState.PAUSED and not run.interrupted:
        run.kind = RunKind.MESSAGE
        run.state = RunState.QUEUED
        run.pause = None
        run.yielded = False
        s.event("run", run, reason="a message has come")
        s.enqueue(run)
    s.touch(run)
    return accepted
