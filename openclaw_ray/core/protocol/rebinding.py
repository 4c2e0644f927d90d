"""Whose a conversation is: bound to another session, dropped, given another time, ended (SPEC.md B8, H6).

1. **focus**: a conversation is bound to a session there is, from the next word on. What it was bound to before is over;
   its channel has nothing to do for that. Who has done so is its binder, and nobody else binds it anew, drops it, or
   gives it another time (`thread_rules`, 5). A spawn binds in nobody's name.
2. **lasts**: users may give one binding times of its own. To do so is a word there: silence counts from it.
3. **end**: by its users or the operator, by time, with its session, or by another binding of the conversation. What was
   not said by then is said before its channel is told, but not in a conversation that is another session's by now;
   nothing new is from then on. The session lives on; one of kind ``session`` counts as ended, and is archived as any
   other.
"""

from __future__ import annotations

from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.archiving import find_session, leave
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Client, Session
from openclaw_ray.core.protocol.served import Served
from openclaw_ray.core.protocol.thread_record import Thread, ThreadKind, ThreadState
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.thread_commands import Command, Verb, lasts_text
from openclaw_ray.core.thread_rules import HOUR, ThreadEnd, binder_refusal

__all__ = ["Rebinding"]

_ENABLED = "session.threadBindings.enabled"


class Rebinding(Served):
    """Changes of bindings that there are."""

    # ------------------------------------------------------------------ by users

    def focus(self, client: Client, admit: Admit, target: Session) -> Receipt:
        """Users want a conversation to be that of a session there is (1)."""
        s = self.s
        if client.channel is None:
            return Receipt("error", error="this client serves no channel")
        channel, account, _ = client.channel
        if not s.limits.threads.of(channel, account).enabled:
            text = f"conversations are not bound here ({_ENABLED}; set it to true)"
            return Receipt("error", error=text, path=_ENABLED)
        before = self._at(channel, account, admit.conversation)
        refusal = None if before is None else self._not_its_binder(before, admit)
        if refusal is not None:
            return refusal
        if before is not None and before.session != target.key:
            self._give_up(before)
        if before is None or before.session != target.key or before.kind is ThreadKind.HOME:
            now = s.clock.wall()
            thread = Thread(
                f"focus:{admit.run}",
                channel,
                account,
                target.key,
                target.agent,
                ThreadKind.SESSION,
                now,
                now,
                ThreadState.BOUND,
                admit.conversation,
                target.requester,
                binder=_who(admit),
            )
            s.threads[thread.id] = thread
            self._event(thread, "bound", None)
            self._changed(thread)
        return Receipt("accepted", "", target.key, target.agent, note=f"bound to {target.key}")

    def unfocus(self, client: Client, admit: Admit) -> Receipt:
        """Users want a conversation to be nobody's (1)."""
        thread = self._bound_there(client, admit.conversation)
        if isinstance(thread, Receipt):
            return thread
        refusal = self._not_its_binder(thread, admit)
        if refusal is None:
            self.end(thread, ThreadEnd.UNBOUND)
        return refusal or Receipt("accepted", "", thread.session, thread.agent, note=f"unbound from {thread.session}")

    def lasts(self, client: Client, admit: Admit, command: Command) -> Receipt:
        """Users ask for a binding's time, or give it another one (2)."""
        thread = self._bound_there(client, admit.conversation)
        if isinstance(thread, Receipt):
            return thread
        now, hours = self.s.clock.wall(), command.hours
        if hours is not None:
            refusal = self._not_its_binder(thread, admit)
            if refusal is not None:
                return refusal
            thread.used = now
            if command.verb is Verb.IDLE:
                thread.idle_hours = hours
            else:
                thread.max_age_hours = hours
            self._changed(thread)
        rules = thread.lasting(self.s.limits.threads.of(thread.channel, thread.account))
        idle = command.verb is Verb.IDLE
        lasting, since = (rules.idle_hours, thread.used) if idle else (rules.max_age_hours, thread.created)
        ends_in = None if lasting <= 0 else max(0.0, lasting - (now - since) / HOUR)
        note = lasts_text(command.verb, lasting, ends_in, set_now=hours is not None)
        return Receipt("accepted", "", thread.session, thread.agent, note=note)

    def _bound_there(self, client: Client, conversation: str) -> Thread | Receipt:
        channel = client.channel
        thread = None if channel is None else self._at(channel[0], channel[1], conversation)
        if thread is None or thread.kind is ThreadKind.HOME:
            return Receipt("error", error="this conversation is bound to no session")
        return thread

    def _not_its_binder(self, thread: Thread, admit: Admit) -> Receipt | None:
        text = binder_refusal(thread.binder, _who(admit))
        return Receipt("forbidden", error=text, limit="binder") if text else None

    # ------------------------------------------------------------------ ends

    def _give_up(self, thread: Thread) -> None:
        """Its conversation is another session's from now on: the channel has nothing to do for that."""
        if thread.kind is not ThreadKind.HOME:
            self.end(thread, ThreadEnd.REPLACED)
            thread.state, thread.posts = ThreadState.OVER, ()
            self._changed(thread)
        else:
            self._drop(thread)

    def unbind(self, key: str) -> int:
        """The operator drops what a session is bound to; gives how many conversations that were."""
        own = (t for t in self.s.threads.values() if t.session == key and t.bound)
        mine = [t for t in own if t.kind is not ThreadKind.HOME]
        for thread in mine:
            self.end(thread, ThreadEnd.UNBOUND)
        return len(mine)

    def end(self, thread: Thread, why: ThreadEnd) -> None:
        """A binding is over (3)."""
        s = self.s
        kept = thread.keeps
        thread.close(why)
        self._event(thread, "unbound", why.value)
        self._changed(thread)
        session = find_session(s, thread.session) if kept else None
        if session is not None and session.state == SessionState.ENDED:
            session.ended = s.clock.wall()
            if session.key in s.sessions:
                s.touch(session)
            else:
                leave(s, session)


def _who(admit: Admit) -> str:
    return "" if admit.sender is None else admit.sender.identity()
