"""A message that the running turn may take: ``sessions_send`` with mode ``steer`` (SPEC.md B2; PROTOCOL.md 5.6).

1. It is a message as any other: a run of its own in line behind the turn that runs, with its exchange. A turn whose
   program never asks leaves it there, and it is the next turn.
2. The running turn is told of it over its downlink, text included, and again by a new incarnation; so is a turn that
   starts with such messages behind it. To be told of it is nothing yet.
3. The turn asks for it (`TakeSteered`) at whatever point its program looks, and its program has it only with the word
   ``taken``: the step that says so ends the message's run. Whoever comes first, the turn or the message's own start,
   has it, and nobody else: it is handled once, or lost with the turn that took it, as what a start carries is.
4. A turn that took it is of the message's chain from then on, so no ring gets past its bound. The sender is told that
   it was steered, and of no reply: what the turn says is its own run's end.
5. One that has a sender is for a turn that is for this sender, too: nobody's words get into a turn that may do more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.message import Talk
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import TAKEN, Outcome, Steered, TakeSteered, Verdict
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State

if TYPE_CHECKING:
    from openclaw_ray.core.protocol.ending import Ending
    from openclaw_ray.core.protocol.exchange import Exchange

__all__ = ["take_steered", "tell_steered"]


def tell_steered(s: State, down: Down, run: Run | None, only: str = "") -> None:
    """Tell a run's turn of the messages that it may take, or of the one with this id (2)."""
    if run is None or not run.in_turn:
        return
    for message_id in s.sessions[run.session].waiting:
        message = s.runs[message_id]
        exchange = _steers(s, message)
        if exchange is not None and only in ("", message_id) and _may_have(run, message):
            down.tell(run.activation, Steered(message_id, run.activation, message.task, exchange.source()))


def take_steered(s: State, ending: Ending, event: TakeSteered) -> Verdict:
    """A turn asks for a message (3)."""
    run, message = s.runs.get(event.run), s.runs.get(event.message)
    if run is None or message is None or not ending.is_current(run, event.activation):
        return ending.stale(event.message)
    session = s.sessions[run.session]
    exchange = _steers(s, message)
    if exchange is None or message.id not in session.waiting or not _may_have(run, message):
        return ending.stale(event.message)
    if message.talk is not None and (run.talk is None or run.talk.hops < message.talk.hops):
        run.talk = replace(run.talk or Talk(), chain=message.talk.chain, hops=message.talk.hops)
    exchange.steered = True
    message.outcome = Outcome(RunState.SUCCEEDED, missing=True)
    for record in (run, exchange):
        s.touch(record)
    ending.finish(message, RunState.SUCCEEDED)
    return Verdict(message.id, TAKEN, RunState.SUCCEEDED)


def _steers(s: State, message: Run) -> Exchange | None:
    """The exchange of a message that is to steer and waits for its turn; `None` for any other run."""
    exchange = s.exchanges.get(message.talk.exchange) if message.talk is not None else None
    if exchange is None or not exchange.steer or exchange.run != message.id or message.state is not RunState.QUEUED:
        return None
    return exchange


def _may_have(run: Run, message: Run) -> bool:
    """Whether a message's sender is among those that the turn is bound by (5)."""
    return message.senders is None or (run.senders is not None and set(message.senders.who) <= set(run.senders.who))
