"""Messages to sessions: who gets one, and the run that handles it (PROTOCOL.md 5.6; SPEC.md B2).

1. **resolve**: a session that exists, or an agent's main session, which is made by its first message; a client's
   message makes others of an agent's, too (`addressing`).
2. **authorise**: the one rule of sight and use between sessions; the operator is bound by none.
3. A wait that would close a circle is refused at once, with the circle; so is a message that its chain has no hop for.
4. **deliver**: there is room in the inbox, or the message is refused and leaves nothing behind. It is a run of its own
   in the target's serial lane: at once if no turn runs, else behind it. What follows from it is for `talking`. One to a
   sub-agent whose run waits for a message is no run: that run goes on with it (`telling`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from openclaw_ray.core import lineage
from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.keys import inspect, main_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.message import HOPS_MOST, MessageMode, SendAsk
from openclaw_ray.core.protocol.addressing import address, main_session
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.child_facts import main_facts
from openclaw_ray.core.protocol.commands import Commands
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.inbox import inbox_full
from openclaw_ray.core.protocol.message_run import awaken, run_above
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.talking import Talking, chain_of
from openclaw_ray.core.protocol.telling import tell
from openclaw_ray.core.protocol.threads import Threads
from openclaw_ray.core.protocol.waits import waits_for
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.thread_commands import command_of
from openclaw_ray.core.wait_graph import wait_cycle

__all__ = ["Messaging", "refused"]


class Messaging:
    """What becomes of a message; `Admitting` makes the run of an operator's."""

    def __init__(self, state: State, down: Down) -> None:
        self.s = state
        self.down = down
        self.talks = Talking(state, down)

    threads: Threads
    commands: Commands

    @abstractmethod
    def _new_run(
        self, client: str, session: Session, parent: Run, requester: Session, entry: AgentEntry, admit: Admit
    ) -> None: ...

    def _refuse(self, receipt: Receipt) -> Receipt:
        self.s.refused += 1
        return receipt

    # ------------------------------------------------------------------ the operator's

    def _message(self, client: str, parent: Run, requester: Session, admit: Admit) -> Receipt:
        """Route ``ask``: the end is told to the client."""
        found = self._reachable(requester, SendAsk(admit.session_key), admit, opens=True)
        if isinstance(found, Receipt):
            return self._refuse(found)
        target, entry = found
        told = tell(self.s, requester, target, admit)
        if told is not None:
            return told if told.accepted else self._refuse(told)
        awaken(self.s, target)
        above = run_above(self.s, target) if target.depth > 0 else None
        self._new_run(client, target, above or parent, requester, entry, admit)
        return Receipt("accepted", admit.run, target.key, entry.id)

    # ------------------------------------------------------------------ a user's

    def _say(self, client: str, parent: Run, requester: Session, admit: Admit) -> Receipt:
        """Route ``say``: a user's word in a conversation, by the client that serves its channel."""
        there = self.s.clients.get(client)
        if there is None or requester.client != client:
            return self._refuse(Receipt("forbidden", error="a user speaks by the client that serves the channel alone"))
        command = command_of(admit.task)
        if command is not None:
            done = self.commands.done(there, requester.agent, admit, command)
            return done if done.accepted else self._refuse(done)
        thread = self.threads.heard(there, requester.agent, admit)
        if isinstance(thread, Receipt):
            return self._refuse(thread)
        said = replace(admit, route="ask", session_key=thread.session, agent_id=None, expects=False)
        receipt = self._message(client, parent, requester, said)
        if receipt.accepted:
            self.threads.spoken(thread, receipt.run_id)
        return receipt

    # ------------------------------------------------------------------ a session's

    def _asker(self, admit: Admit) -> Session | None:
        """The session that a message is from; the operator may send for one that has ended, and have an agent's main
        session made for it."""
        s = self.s
        known = s.sessions.get(admit.requester)
        if known is not None or admit.route != "send" or admit.activation:
            return known
        ended = find_session(s, admit.requester)
        if ended is not None:
            return ended if ended.state != SessionState.ARCHIVED else None
        agent_id = inspect(admit.requester).agent_id or ""
        entry = s.agents.get(agent_id)
        if entry is None or admit.requester != main_key(agent_id):
            return None
        made = s.sessions[admit.requester] = main_session(s, entry, f"{admit.session_id}-from")
        s.touch(made)
        return made

    def _send(self, client: str, parent: Run, requester: Session, admit: Admit) -> Receipt:
        """Route ``send``: one session's message to another."""
        s, ask = self.s, admit.send
        if ask is None:
            return self._refuse(Receipt("error", error="a message without a target"))
        sender = parent if admit.activation else None
        if sender is not None and lineage.bound_by_mark(s.runs, sender):
            text = f"{requester.key} is being stopped; nothing new starts under it"
            return self._refuse(Receipt("forbidden", error=text, limit="stop"))
        found = self._reachable(requester, ask, admit)
        if isinstance(found, Receipt):
            return self._refuse(found)
        target, entry = found
        if ask.mode == MessageMode.NOTIFY:
            s.sessions[target.key] = target
            self.talks.notify(requester, target, admit)
            return Receipt("accepted", admit.run, target.key, entry.id)
        refusal = self._chain(sender, admit)
        told = None if refusal is not None else tell(s, requester, target, admit, chain_of(sender, admit.run))
        if told is not None:
            return told if told.accepted else self._refuse(told)
        refusal = (self._circle(requester, target, ask) if sender is not None else None) or refusal
        if refusal is not None:
            return self._refuse(refusal)
        self.talks.begin(client, requester, target, entry, admit, sender)
        return Receipt("accepted", admit.run, target.key, entry.id)

    def _circle(self, requester: Session, target: Session, ask: SendAsk) -> Receipt | None:
        """The refusal of a wait that would never end (3)."""
        if not ask.wait:
            return None
        circle = wait_cycle(requester.key, target.key, lambda key: waits_for(self.s, key))
        if not circle:
            return None
        text = f"nobody could answer: {' waits for '.join(circle)}; send with timeoutSeconds 0, or wait for less"
        return Receipt("error", error=text, limit="waitCycle", value=len(circle) - 1)

    def _chain(self, sender: Run | None, admit: Admit) -> Receipt | None:
        """The refusal of a message that its chain has no hop for (3)."""
        hops = chain_of(sender, admit.run).hops
        if hops <= HOPS_MOST:
            return None
        text = (
            f"chain bound: this turn is hop {hops - 1} of {HOPS_MOST} of a chain of messages that began elsewhere; "
            "answer instead of sending on"
        )
        return Receipt("forbidden", error=text, limit="chain", value=hops - 1, maximum=HOPS_MOST)

    # ------------------------------------------------------------------ both

    def _reachable(
        self, requester: Session, ask: SendAsk, admit: Admit, *, opens: bool = False
    ) -> tuple[Session, AgentEntry] | Receipt:
        """The target with its agent, if it takes a message (1, 2, 4)."""
        s = self.s
        target = address(s, requester, ask, admit.session_id, opens=opens)
        if isinstance(target, Receipt):
            return target
        if target.client:
            return Receipt("error", error=f"{target.key} is a client's root, which takes no messages")
        if target.state == SessionState.ARCHIVED:
            return Receipt("error", error=f"session {target.key} was archived; spawn a new one")
        if ask.mode == MessageMode.RESUME and not target.number:
            return Receipt("error", error=f"session {target.key} has done nothing yet: there is nothing to resume")
        entry = s.agents.get(target.agent)
        if entry is None:
            return Receipt("error", error=f"agent {target.agent!r} is not registered any more")
        if target.depth == 0:
            facts = main_facts(entry, main=target.key == main_key(entry.id))
            if isinstance(facts, Refusal):
                return refused(facts, entry.id)
            if target.key not in s.sessions:
                target.facts = facts
        full = inbox_full(s, target)
        return (target, entry) if full is None else full


def refused(refusal: Refusal, agent_id: str) -> Receipt:
    """A refusal as the answer to an admit."""
    return Receipt(
        refusal.status,
        agent_id=agent_id,
        error=refusal.error,
        limit=refusal.limit,
        value=refusal.value,
        maximum=refusal.maximum,
        path=refusal.path,
    )
