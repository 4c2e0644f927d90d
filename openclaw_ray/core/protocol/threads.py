"""Conversations of sessions: bound, spoken in, answered, ended (SPEC.md B8, C stage 3, F5, H6; PROTOCOL.md 3.6).

1. **ask**: a spawn with ``thread`` that breaks no rule is reserved and not admitted: its requester's count has it, and
   there is no session and no run. The client that serves the channel is told to bind a conversation; the receipt is
   open.
2. **bound**: with the conversation in hand the reservation is given back and the spawn admitted, by all rules anew: in
   one transaction there is a child with a thread, or neither. What failed, or is refused now, leaves nothing: its
   channel is told to unbind, and the receipt says why. One that is not answered within `BIND_WITHIN` has failed; so
   has one whose requester is stopped meanwhile: nothing that was asked for before a stop is born after it.
3. The receipt goes down to who asked, until it is got; what that waits for is in the record, and so outlives a crash.
4. **heard**: a user's word in a bound conversation is a message to its session; elsewhere to the main session of the
   channel's default agent, which has the conversation until it was answered, or is bound to another session.
5. **ended**: what a run that a conversation began, or was made for, comes to is said there: its text, or in one line
   how it failed; nothing for one that was stopped or says it has nothing to say. It is kept until it was said.
   A child of kind ``session`` is announced to nobody else, and holds up nobody's end.
6. A binding ends by its users or the operator, by time, with its session, or by another binding of the conversation
   (`rebinding`).
7. A channel is served by one client, the newest that said so. While none serves it, bindings stay.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.keys import main_key
from openclaw_ray.core.lifecycle import DeliveryState, RunState
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import (
    BINDING,
    Admit,
    Admitted,
    BindThread,
    DownMessage,
    Outcome,
    Post,
    Posted,
    ThreadBound,
    ThreadOver,
    Unbind,
)
from openclaw_ray.core.protocol.rebinding import Rebinding
from openclaw_ray.core.protocol.records import Client, Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import Thread, ThreadKind, ThreadState, home_thread
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.thread_rules import ThreadEnd, binding_refusal, end_of
from openclaw_ray.core.tokens import TokenContext, silence

__all__ = ["BIND_WITHIN", "Threads", "answer_text"]

BIND_WITHIN = 60.0
"""Seconds that a channel has for binding a conversation (SPEC.md C, stage 7)."""
_SWEEP_EVERY = 1.0


class Threads(Rebinding):
    """All conversations of one registry incarnation.

    Args:
        admit: admits the child of a thread, by all rules.
    """

    def __init__(self, state: State, down: Down, admit: Callable[[str, Admit, str], Receipt]) -> None:
        super().__init__(state)
        self.down = down
        self._admit = admit
        self._next_sweep = 0.0

    # ------------------------------------------------------------------ spawns

    def refusal(self, parent: Run, admit: Admit) -> Refusal | None:
        """Why a spawn may not bind its child, if it asks for that."""
        if admit.ask is None or not admit.ask.thread:
            return None
        channel = self._channel_of(parent)
        return binding_refusal(self.bindings(parent), "" if channel is None else channel[0])

    def ask(self, client: str, requester: Session, parent: Run, agent: str, admit: Admit) -> Receipt:
        """Reserve, and have a conversation bound (1)."""
        s = self.s
        channel = self._channel_of(parent)
        assert channel is not None
        assert admit.ask is not None
        now = s.clock.wall()
        at = s.threads.get(parent.post)
        thread = Thread(
            admit.run,
            channel[0],
            channel[1],
            admit.session_key,
            agent,
            ThreadKind.SESSION if admit.ask.mode == ThreadKind.SESSION else ThreadKind.RUN,
            now,
            now,
            requester=requester.key,
            admit=admit,
            client=client,
            waiter=admit.activation or client,
            current="" if at is None else at.conversation,
        )
        s.threads[thread.id] = thread
        requester.active += 1
        self._changed(thread)
        return Receipt(BINDING, admit.run, admit.session_key, agent)

    def bound(self, event: ThreadBound) -> None:
        """The channel's answer (2)."""
        thread = self.s.threads.get(event.thread)
        if thread is None or thread.state is not ThreadState.BINDING:
            late = thread is None or thread.conversation != event.conversation
            if event.conversation and late:
                self._unbind_stray(event)
            return
        if event.error:
            self._refused(thread, event.error)
            return
        thread.conversation = event.conversation
        self._decide(thread)

    def _unbind_stray(self, event: ThreadBound) -> None:
        """Bound too late, for a child that was given up."""
        host = self._host(event.channel, event.account)
        if host is not None:
            why = ThreadEnd.SPAWN_FAILED.value
            self.down.tell(host.id, Unbind(event.thread, event.conversation, "", why))

    def _decide(self, thread: Thread) -> None:
        """Admit the child, with its conversation (2)."""
        s, admit = self.s, thread.admit
        assert admit is not None
        taken = self._at(thread.channel, thread.account, thread.conversation)
        if taken is not None and taken.kind is not ThreadKind.HOME:
            thread.conversation = ""
            self._refused(thread, f"conversation {taken.conversation!r} is bound to {taken.session} already")
            return
        self._unreserve(thread)
        receipt = self._admit(thread.client, admit, thread.id)
        thread.receipt, thread.admit = receipt, None
        if not receipt.accepted:
            thread.close(ThreadEnd.SPAWN_FAILED)
            self._changed(thread)
            return
        if taken is not None:
            self._give_up(taken)
        thread.state, thread.used = ThreadState.BOUND, s.clock.wall()
        run = s.runs[receipt.run_id]
        run.post = thread.id
        if thread.kind is ThreadKind.SESSION:
            run.expects, run.delivery = False, DeliveryState.NOT_REQUIRED
            if not s.sessions[thread.requester].client:  # a program may ask for its result
                run.deliver_to = ""
        s.touch(run)
        self._event(thread, "bound", None)
        self._changed(thread)

    def stopped(self, keys: Container[str]) -> None:
        """Sessions were stopped: what they wait for is not born any more (2). A child goes by its run's id, too."""
        for thread in list(self.s.threads.values()):
            named = thread.requester in keys or thread.session in keys or thread.id in keys
            if named and thread.state is ThreadState.BINDING:
                self._refused(thread, "it was stopped before a conversation was there")

    def _refused(self, thread: Thread, why: str) -> None:
        """There is no conversation, and so no child (2)."""
        self._unreserve(thread)
        text = f"thread: {why}"
        thread.receipt = Receipt("error", agent_id=thread.agent, error=text[:1_000], limit="thread")
        thread.admit = None
        thread.state = ThreadState.OVER
        self._changed(thread)

    def _unreserve(self, thread: Thread) -> None:
        requester = self.s.sessions.get(thread.requester)
        if requester is not None and requester.active > 0:
            requester.active -= 1

    def heard_receipt(self, run: str) -> None:
        """Who asked has the receipt (3)."""
        thread = self.s.threads.get(run)
        if thread is not None:
            thread.waiter = ""
            self._changed(thread)

    # ------------------------------------------------------------------ what is said

    def heard(self, client: Client, agent: str, admit: Admit) -> Thread | Receipt:
        """The thread that a user has spoken in (4), or why nobody hears."""
        if client.channel is None or not admit.conversation:
            return Receipt("error", error="this client serves no channel: nobody can have spoken there")
        channel, account, _ = client.channel
        thread = self._at(channel, account, admit.conversation)
        if thread is None:
            thread = home_thread(channel, account, admit.conversation, main_key(agent), agent, self.s.clock.wall())
        return thread

    def spoken(self, thread: Thread, run_id: str) -> None:
        """A user's word is on its way to the session, as ``run_id`` or part of it."""
        thread.used = self.s.clock.wall()
        self.s.threads[thread.id] = thread
        run = self.s.runs.get(run_id)
        if run is not None and not run.post:
            run.post = thread.id
            self.s.touch(run)
        self._changed(thread)

    def ended(self, run: Run) -> None:
        """A run of a conversation has ended: its answer is said there (5)."""
        thread = self.s.threads.get(run.post)
        text = answer_text(run.state, run.outcome)
        if thread is None or not thread.bound:
            return
        thread.say(run.id, text, self.s.clock.wall())
        self._changed(thread)

    def posted(self, event: Posted) -> None:
        """It was said there (5)."""
        thread = self.s.threads.get(event.thread)
        if thread is not None:
            thread.posts = tuple(post for post in thread.posts if post[0] != event.run)
            self._changed(thread)

    # ------------------------------------------------------------------ ends

    def over(self, event: ThreadOver) -> None:
        """Users say that they are done with a conversation, or its channel that it has done what it was told (6)."""
        if not event.thread:
            thread = self._at(event.channel, event.account, event.conversation)
            if thread is not None and thread.kind is not ThreadKind.HOME:
                self.end(thread, ThreadEnd.UNBOUND)
            return
        told = self.s.threads.get(event.thread)
        if told is not None and told.state is ThreadState.ENDING:
            told.state, told.posts = ThreadState.OVER, ()
            self._changed(told)

    def sweep(self, now: float) -> None:
        """What time does (2, 6); ``now``: monotonic."""
        s = self.s
        if not s.threads or now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_EVERY
        wall = s.clock.wall()
        answering = {run.post for run in s.runs.values() if run.post and not run.terminal}
        for thread in list(s.threads.values()):
            if thread.waiter and thread.waiter not in s.receivers:
                thread.waiter = ""
                self._changed(thread)
            if thread.state is ThreadState.BINDING and wall >= thread.created + BIND_WITHIN:
                self._refused(thread, f"channel {thread.channel!r} did not bind a conversation in {BIND_WITHIN:g} s")
            elif thread.kind is ThreadKind.HOME:
                if not thread.posts and thread.id not in answering:
                    self._drop(thread)  # the next word there begins another
            elif thread.bound:
                rules = thread.lasting(s.limits.threads.of(thread.channel, thread.account))
                why = end_of(rules, thread.created, thread.used, wall)
                if why is not None:
                    self.end(thread, why)

    # ------------------------------------------------------------------ telling

    def flush(self) -> None:
        """Say what this transaction has made to be said; at the end of each."""
        s = self.s
        while s.thread_news:
            thread = s.threads.get(next(iter(s.thread_news)))
            del s.thread_news[next(iter(s.thread_news))]
            if thread is not None:
                self._tell(thread)

    def _tell(self, thread: Thread) -> None:
        host = self._host(thread.channel, thread.account)
        if thread.state is ThreadState.BINDING and host is None:
            self._refused(thread, f"channel {thread.channel!r} is gone")
        if thread.state is ThreadState.ENDING and host is None:
            thread.state = ThreadState.OVER  # nobody is there to be told
            self.s.touch(thread)
        if host is not None:
            for what, message in self._due(thread):
                self._once(thread, what, host.id, message)
        if thread.receipt is not None and thread.waiter:
            self._once(thread, "receipt", thread.waiter, Admitted(thread.id, thread.receipt))
        if thread.state is ThreadState.OVER and not thread.waiter:
            self._drop(thread)

    def _due(self, thread: Thread) -> list[tuple[str, DownMessage]]:
        """What the channel is to be told now, each with a name of its own."""
        if thread.state is ThreadState.BINDING:
            admit = thread.admit
            assert admit is not None
            wish = BindThread(
                thread.id, thread.session, thread.agent, thread.requester, admit.task, admit.label, thread.current
            )
            return [("bind", wish)]
        found: list[tuple[str, DownMessage]] = [
            (f"post:{run}", Post(thread.id, thread.conversation, thread.session, run, text))
            for run, text in thread.posts
        ]
        if thread.state is ThreadState.ENDING and not found:  # what is sent two ways may come in any order
            found.append(("unbind", Unbind(thread.id, thread.conversation, thread.session, thread.why)))
        return found

    def _once(self, thread: Thread, what: str, receiver: str, message: DownMessage) -> None:
        if what not in thread.said and receiver in self.s.receivers:
            thread.said.add(what)
            self.down.tell(receiver, message)


def answer_text(state: RunState, outcome: Outcome | None) -> str:
    """What users are told of the end of a run (5); empty for nothing."""
    if state is RunState.CANCELLED or outcome is None:
        return ""
    if state is RunState.SUCCEEDED:
        text = outcome.text or ""
        return "" if silence(text, TokenContext.ANNOUNCE).token is not None else text
    why = outcome.error.message if outcome.error is not None else ""
    return f"[{state.value}] {why}".strip()[:2_000]
