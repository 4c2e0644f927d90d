"""A message to a run that waits for one: it goes on with it, and stays who it is (SPEC.md B3).

1. Its run yielded with ``waitFor: "message"`` and has had no turn since. The message is noted with the run, in the step
   that accepts it, and no run is made for it: who sends is told the id of the run that goes on, and waits for no reply.
2. The run's next turn is of kind ``message`` and starts as soon as there is a slot and a process, in line with all
   others. What is said until it starts goes with it, up to ``ray.inbox.max`` messages.
3. Who may say it is asked before, as for any message: the operator, its requester and what else is above it, and whom
   the rules of ``sessions_send`` let. The run is of that message's chain from then on, so no ring gets past its bound.
4. What was in the session's line when its run began to wait is told at once, as it would wait behind that run for ever.
   It has no turn of its own, and ends without a reply.
5. The same message again is as the first time.
6. Its senders are the run's from then on, besides those it had. The next turn is an answer to them only if nobody else
   says anything.
"""

from __future__ import annotations

from dataclasses import replace

from openclaw_ray.core.lifecycle import RunKind, RunState
from openclaw_ray.core.message import MessageMode, Talk
from openclaw_ray.core.policy.rules import Senders
from openclaw_ray.core.protocol.batch import Told
from openclaw_ray.core.protocol.messages import Admit, Outcome
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import INBOX, Receipt

__all__ = ["take_line", "tell", "waits_to_be_told"]


def waits_to_be_told(s: State, session: Session) -> Run | None:
    """The run of ``session`` that a message would go to (1)."""
    run = s.runs.get(session.run)
    waits = None if run is None else run.waits
    return run if waits is not None and waits.message else None


def tell(s: State, requester: Session, session: Session, admit: Admit, chain: Talk | None = None) -> Receipt | None:
    """Let the run that waits in ``session`` go on with this message; `None` if none does. ``chain``: the message's."""
    run = waits_to_be_told(s, session)
    if run is None or run.waits is None or (admit.send is not None and admit.send.mode == MessageMode.NOTIFY):
        return None
    accepted = Receipt("accepted", run.id, session.key, run.agent, told=True)
    told = run.waits.told
    if any(each.id == admit.run for each in told):
        return accepted
    most = s.limits.inbox_max
    if len(told) >= most:
        text = f"the inbox of {session.key} is full: {len(told)} of {most} messages wait for its turn (ray.inbox.max)"
        return Receipt("error", error=text, limit=INBOX, value=len(told), maximum=most, path="ray.inbox.max")
    sender = "" if requester.client else requester.key
    _note(s, run, Told(admit.task, sender, admit.run, s.clock.wall()))
    _wrote(run, None if admit.sender is None else Senders((admit.sender,), 1), alone=not told)
    if chain is not None:
        run.talk = replace(run.talk or Talk(), chain=chain.chain, hops=chain.hops)
    if run.state is RunState.PAUSED and not run.interrupted:
        run.kind = RunKind.MESSAGE
        run.state = RunState.QUEUED
        run.pause = None
        run.yielded = False
        s.event("run", run, reason="a message has come")
        s.enqueue(run)
    return accepted


def take_line(s: State, run: Run, session: Session) -> list[Run]:
    """The messages in line behind a run that begins to wait for one: told; who gives their runs an end is the caller
    (4)."""
    line = [s.runs[run_id] for run_id in session.waiting if s.runs[run_id].kind == RunKind.MESSAGE]
    for message in line:
        exchange = None if message.talk is None else s.exchanges.get(message.talk.exchange)
        sender = "" if exchange is None else exchange.requester
        _wrote(run, message.senders, alone=message is line[0])
        _note(s, run, Told(message.task, sender, message.id, message.created))
        if message.talk is not None:
            run.talk = replace(run.talk or Talk(), chain=message.talk.chain, hops=message.talk.hops)
        run.post = run.post or message.post  # its answer is theirs
        message.outcome = Outcome(RunState.SUCCEEDED, missing=True)
    return line


def _note(s: State, run: Run, message: Told) -> None:
    assert run.waits is not None
    run.waits = replace(run.waits, told=(*run.waits.told, message))
    s.touch(run)


def _wrote(run: Run, senders: Senders | None, *, alone: bool) -> None:
    """Note who wrote a message for its next turn (6); ``alone``: it is the first one for that."""
    had, new = run.senders or Senders(()), senders or Senders(())
    turn = run.turns + 1
    answers = new.turn == 1 and (alone or had.turn == turn)
    who = tuple(dict.fromkeys((*had.who, *new.who)))
    run.senders = Senders(who, turn if answers else 0) if who else None
