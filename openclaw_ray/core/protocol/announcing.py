"""The last word of an exchange in a conversation of users (SPEC.md B2, step 5).

1. It is said in the conversation that the target is bound to, the one last spoken in if there are several; else in that
   which the turn that sent the first message answered in, if it is still the requester's; else in one that the
   requester is bound to. Without any it is told to the requester alone, as it is in any case.
2. A conversation that belongs to nobody is the requester's until it was said, as it was when a user spoke there.
3. The turns before it are said nowhere. Nor is an announce of nothing (``ANNOUNCE_SKIP``).
4. It is written in the transaction that ends the announce's turn, and stays until the channel has said it (`threads`).
"""

from __future__ import annotations

from openclaw_ray.core.protocol.exchange import Exchange
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import Thread, ThreadKind, home_thread

__all__ = ["announce", "place_of"]


def place_of(s: State, sender: Run | None) -> tuple[str, ...]:
    """Where the turn that sends a message answers users; empty for nowhere."""
    thread = s.threads.get(sender.post) if sender is not None and sender.post else None
    return () if thread is None or not thread.bound else (thread.channel, thread.account, thread.conversation)


def announce(s: State, exchange: Exchange, run_id: str) -> None:
    """Have the announce of ``exchange``, which ``run_id`` came to, be said where users are told of it (1)."""
    if exchange.announce is None:
        return
    thread = _bound_to(s, exchange.target) or _where_it_was_asked(s, exchange) or _bound_to(s, exchange.requester)
    if thread is not None:
        thread.say(run_id, exchange.announce, s.clock.wall())
        s.threads[thread.id] = thread
        s.touch(thread)
        s.thread_news[thread.id] = None


def _bound_to(s: State, key: str) -> Thread | None:
    own = [t for t in s.threads.values() if t.session == key and t.bound and t.kind is not ThreadKind.HOME]
    return max(own, key=lambda thread: thread.used) if own else None


def _where_it_was_asked(s: State, exchange: Exchange) -> Thread | None:
    if not exchange.at:
        return None
    channel, account, conversation = exchange.at
    there = (t for t in s.threads.values() if t.bound and (t.channel, t.account, t.conversation) == exchange.at)
    now = next(there, None)
    if now is not None:
        return now if now.session == exchange.requester else None
    session = s.sessions.get(exchange.requester)
    if session is None or session.depth > 0:
        return None  # a child's conversation was unbound meanwhile
    return home_thread(channel, account, conversation, session.key, session.agent, s.clock.wall())
