"""Messages between sessions in the registry: begun, answered, talked over, heard (DESIGN.md 6; SPEC.md B2).

1. **begin**: in the step that asks, all or nothing: the message's run is in line at its target, and an `Exchange` is
   journaled with it. A sender that waits is its *waiter*.
2. **turn_ended**: in the transaction that ends the run whose turn it is, the next one is in line: `negotiation` says
   whose. So a registry that dies in between finds either both or none.
3. **told**: the waiter is told of the first reply over its downlink, until it confirms. It confirms that its program
   has the reply, or that its time was over before: one of the two, once (`SendOver`). A turn that ends without either
   has not heard it.
4. **heard**: what no waiter has heard, and the end of a ping-pong, is news for the requester: it goes into the start of
   its next turn, once, with a row of the transcript. A top-level session of an agent that takes further turns gets a
   turn for it; no other is called again for that (PROTOCOL.md 5.3).
5. **stopped**: a stop of either side ends it. The turn that the other side has goes on, and nothing follows from it.
6. **unstick**: when every process there may be is held by a turn that waits, and one of them waits for a reply that has
   no process to come from, the newest such wait ends at once, as if its time were over: nobody waits for ever.
7. The turn that runs at the target may take a message with mode ``steer`` (`steered`): that is the end of it, which
   wakes nobody.
8. A plain function that has spawned is not called with a reply: it would spawn again (PROTOCOL.md 5.3). To it a message
   is one way.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from openclaw_ray.core.lifecycle import RunKind, RunState, SessionState
from openclaw_ray.core.message import HOPS_MOST, MessageMode, Talk
from openclaw_ray.core.policy.rules import Senders
from openclaw_ray.core.protocol.announcing import announce, place_of
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.exchange import Exchange
from openclaw_ray.core.protocol.message_run import message_run
from openclaw_ray.core.protocol.messages import Admit, Replied, SendOver
from openclaw_ray.core.protocol.negotiation import Action, Move, Phase, Said, Why, heard_text, next_move
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.steered import tell_steered
from openclaw_ray.core.sent import SendStatus
from openclaw_ray.core.tokens import TokenContext, silence

__all__ = ["Talking"]


class Talking:
    """All exchanges of one registry incarnation."""

    def __init__(self, state: State, down: Down) -> None:
        self.s = state
        self.down = down

    # ------------------------------------------------------------------ begin

    def notify(self, requester: Session, target: Session, admit: Admit) -> None:
        """A notice: news for the target's next turn."""
        exchange = self._exchange(requester, target, admit, Talk(chain=admit.run, hops=1), None)
        exchange.notice, exchange.phase, exchange.hearer = True, Phase.OVER, target.key
        self.s.touch(target)
        self._news(exchange)

    def begin(
        self, client: str, requester: Session, target: Session, entry: AgentEntry, admit: Admit, sender: Run | None
    ) -> Exchange:
        """The message is in line at its target (1)."""
        talk = chain_of(sender, admit.run)
        exchange = self._exchange(requester, target, admit, talk, sender)
        assert admit.send is not None
        depth = -1
        if admit.send.wait:
            exchange.waiter = admit.activation or client
            exchange.whole = not admit.activation
            depth = -1 if sender is None else sender.reserve_depth
        exchange.run = admit.run
        on = replace(talk, exchange=exchange.id)
        senders = None if admit.sender is None else Senders((admit.sender,), 1)
        message_run(
            self.s, target, entry, admit.run, admit.task, on, client=client, waiter_depth=depth, senders=senders
        )
        exchange.steer = admit.send.mode == MessageMode.STEER
        if exchange.steer:
            tell_steered(self.s, self.down, self.s.runs.get(target.run), admit.run)
        return exchange

    def _exchange(
        self, requester: Session, target: Session, admit: Admit, talk: Talk, sender: Run | None
    ) -> Exchange:
        s = self.s
        exchange = Exchange(
            admit.run,
            talk.chain,
            talk.hops,
            requester.key,
            target.key,
            admit.task,
            self._limit(requester, target),
            s.clock.wall(),
            sender.id if sender is not None else "",
            hearer="" if requester.client else requester.key,
        )
        if sender is not None and sender.senders is not None:
            exchange.who = sender.senders.who
        exchange.at = place_of(s, sender)
        exchange.one_way = exchange.limit < 0
        exchange.limit = max(0, exchange.limit)
        s.exchanges[exchange.id] = exchange
        s.touch(exchange)
        return exchange

    def _limit(self, requester: Session, target: Session) -> int:
        """Turns of replies that these two may take, -1 if there is no ping-pong between them."""
        limits = self.s.limits
        subagents = requester.depth > 0 or target.depth > 0
        if requester.client or requester.key == target.key or (subagents and not limits.ping_pong_with_subagents):
            return -1
        return limits.sessions.max_ping_pong_turns

    # ------------------------------------------------------------------ turns

    def turn_ended(self, run: Run) -> None:
        """A run has ended: if it was a turn of an exchange, what follows from it (2)."""
        exchange = self.s.exchanges.get(run.talk.exchange) if run.talk is not None and run.talk.exchange else None
        if exchange is None or exchange.over or exchange.run != run.id:
            return
        said = Said(run.state, run.outcome.text if run.outcome is not None else None)
        if exchange.steered:
            exchange.why = Why.STEERED.value
            self._over(exchange)
            self._tell(exchange)
            self._settle(exchange)
            return
        self._note(exchange, run, said)
        left = HOPS_MOST - exchange.hops - exchange.turns
        move = next_move(exchange.phase, exchange.turns, exchange.limit, left, said)
        if exchange.one_way and move.why == Why.LIMIT:
            move = Move(move.action, Why.ONE_WAY)
        elif move.action is Action.REQUESTER and exchange.turns == 0 and not self._takes_replies(exchange):
            move = Move(Action.OVER, Why.ONE_WAY)
        exchange.why = exchange.why or (None if move.why is None else str(move.why))
        match move.action:
            case Action.OVER:
                self._over(exchange)
            case Action.ANNOUNCE:
                exchange.phase = Phase.ANNOUNCE
                self._next(exchange, exchange.target, f"{exchange.id}.announce")
            case Action.REQUESTER | Action.TARGET:
                exchange.phase = Phase.TURNS
                exchange.turns += 1
                who = exchange.requester if move.action is Action.REQUESTER else exchange.target
                self._next(exchange, who, f"{exchange.id}.{exchange.turns}")
        self._tell(exchange)
        self._settle(exchange)

    def _note(self, exchange: Exchange, run: Run, said: Said) -> None:
        """Keep what the turn came to."""
        text = said.text if said.state is RunState.SUCCEEDED and (said.text or "").strip() else None
        error = run.outcome.error if run.outcome is not None else None
        why = None if error is None else error.message
        match exchange.phase:
            case Phase.REPLY:
                spoken = text is not None and not silence(text, TokenContext.A2A).silent
                exchange.first = exchange.latest = text if spoken else None
                exchange.error = why
                exchange.status = _STATUS.get(said.state, SendStatus.ERROR)
                if exchange.status is SendStatus.OK and not spoken:
                    exchange.status = SendStatus.NO_REPLY
            case Phase.TURNS:
                exchange.error = exchange.error if why is None else f"{run.session}: {why}"
                if text is not None and not silence(text, TokenContext.A2A).silent:
                    exchange.latest = text
            case Phase.ANNOUNCE:
                exchange.announce = heard_text(said)
                announce(self.s, exchange, run.id)
        self.s.touch(exchange)

    def _takes_replies(self, exchange: Exchange) -> bool:
        """Whether the requester is called with the reply (8)."""
        session = self.s.sessions.get(exchange.requester)
        entry = self.s.agents.get(session.agent) if session is not None else None
        if entry is None or entry.follow_up or not exchange.sender_run:
            return entry is not None
        run = self.s.journaled_run(exchange.sender_run)
        return run is not None and run.kind == RunKind.MESSAGE and not (run.children or run.ended_below)

    def _next(self, exchange: Exchange, key: str, run_id: str) -> None:
        """The next turn is in line, or there is nobody to take it."""
        s = self.s
        session = find_session(s, key)
        entry = None if session is None else s.agents.get(session.agent)
        if session is None or session.state == SessionState.ARCHIVED or entry is None:
            exchange.error = f"session {key} is not there any more"
            exchange.why = Why.FAILED.value if exchange.phase is Phase.TURNS else exchange.why
            exchange.turns -= exchange.phase is Phase.TURNS
            self._over(exchange)
            return
        exchange.run = run_id
        hops = exchange.hops + exchange.turns
        talk = Talk(exchange.id, exchange.chain, hops)
        senders = Senders(exchange.who) if exchange.who and key == exchange.requester else None
        message_run(s, session, entry, run_id, exchange.latest or "", talk, senders=senders)

    def _over(self, exchange: Exchange) -> None:
        exchange.phase, exchange.run = Phase.OVER, ""
        self.s.touch(exchange)
        self.s.event(
            "exchange",
            session_key=exchange.target,
            run_id=exchange.id,
            requester_key=exchange.requester,
            state="over",
            reason=exchange.why,
            done=float(exchange.turns),
            total=float(exchange.limit),
        )

    def stopped(self, keys: Container[str]) -> None:
        """Sessions were stopped: what they take part in is over (5)."""
        for exchange in [x for x in self.s.exchanges.values() if not x.over]:
            side = next((key for key in (exchange.requester, exchange.target) if key in keys), None)
            if side is None:
                continue
            exchange.why = Why.STOPPED.value
            if exchange.phase is Phase.REPLY:
                exchange.status, exchange.error = SendStatus.ERROR, f"{side} was stopped"
            self._over(exchange)
            self._tell(exchange)
            self._settle(exchange)

    # ------------------------------------------------------------------ telling and hearing

    def _tell(self, exchange: Exchange) -> None:
        """Tell the waiter (3)."""
        ready = exchange.over if exchange.whole else exchange.phase is not Phase.REPLY
        if exchange.waiter and ready and not exchange.told:
            exchange.told = True
            self.s.touch(exchange)
            self.down.tell(exchange.waiter, Replied(exchange.id, exchange.sent()))

    def unstick(self) -> None:
        """End a wait that holds the process which its reply needs (6)."""
        s = self.s
        stuck = [x for x in s.exchanges.values() if x.waiter and not (x.whole or x.told) and x.run in s.queue]
        if not stuck:
            return
        for actor in s.actors.values():
            run = s.runs.get(actor.run)
            if run is None or run.state is not RunState.PAUSED or run.resuming:
                return  # this one may still become free, or is
        exchange = stuck[-1]
        exchange.unstuck = exchange.told = True
        s.touch(exchange)
        self.down.tell(exchange.waiter, Replied(exchange.id, exchange.sent()))

    def again(self) -> None:
        """A new incarnation says again what was not confirmed, and knows what is still to be heard."""
        for exchange in self.s.exchanges.values():
            if exchange.waiter:
                exchange.told = False
                self._tell(exchange)
            elif exchange.over and exchange.hearer:
                self.s.news.setdefault(exchange.hearer, {})[exchange.id] = None
            if exchange.steer and not exchange.over:
                target = self.s.sessions.get(exchange.target)
                tell_steered(self.s, self.down, self.s.runs.get(target.run) if target else None, exchange.run)

    def send_over(self, event: SendOver) -> None:
        """The waiter waits no more (3)."""
        exchange = self.s.exchanges.get(event.send)
        if exchange is not None and exchange.waiter == event.receiver:
            exchange.heard = event.heard and not exchange.unstuck
            self._unwait(exchange)

    def left(self, waiter: str) -> None:
        """A turn is over, or a client gone: it has not heard what it had not confirmed (3)."""
        for exchange in [x for x in self.s.exchanges.values() if x.waiter == waiter]:
            self._unwait(exchange)

    def _unwait(self, exchange: Exchange) -> None:
        exchange.waiter = ""
        self.s.touch(exchange)
        self._settle(exchange)

    def _settle(self, exchange: Exchange) -> None:
        """All is said: news for whoever is to hear of it, or nothing more (4)."""
        if not exchange.over or exchange.waiter:
            return
        if exchange.heard and (exchange.whole or exchange.turns == 0):
            self._forget(exchange)
        else:
            self._news(exchange)

    def _news(self, exchange: Exchange) -> None:
        s = self.s
        session = s.sessions.get(exchange.hearer)
        if session is None or session.client or session.state == SessionState.ENDED:
            self._forget(exchange)
            return
        s.news.setdefault(session.key, {})[exchange.id] = None
        self.wake(session)

    def wake(self, session: Session) -> None:
        """A session without a turn has news: it gets one, if its agent takes further turns (4)."""
        s = self.s
        found = [s.exchanges[x] for x in s.news.get(session.key, ())]
        heard = [x for x in found if not x.notice and x.why not in (Why.STOPPED, Why.STEERED)]
        entry = s.agents.get(session.agent)
        if not heard or session.run or session.depth > 0 or entry is None or not entry.follow_up:
            return
        newest = max(heard, key=lambda x: x.hops + x.turns)
        talk = Talk("", newest.chain, newest.hops + newest.turns)
        run_id = f"hearing-{session.session_id}-{s.seq + 1}"
        who = tuple(dict.fromkeys(one for x in heard for one in x.who))
        senders = Senders(who) if who else None
        message_run(s, session, entry, run_id, "", talk, kind=RunKind.COMPLETION, senders=senders)

    def give(self, run: Run) -> None:
        """The news of its session goes into the start of a run (4)."""
        news = tuple(self.s.news.get(run.session, ()))
        if news:
            run.talk = replace(run.talk or Talk(), news=news)

    def given(self, run: Run, session: Session) -> None:
        """The program has had them: a row of the transcript each, and they are news no more."""
        s = self.s
        if run.talk is None or not run.talk.news:
            return
        for exchange in [s.exchanges[x] for x in run.talk.news if x in s.exchanges]:
            news = exchange.news()
            meta = {"provenance": news.source.provenance}
            if news.sent is not None:
                meta["sent"] = news.sent.to_json()
            s.host_row(session, "user", news.text, key=f"send:v1:{exchange.id}", meta=meta)
            self._forget(exchange)
        run.talk = replace(run.talk, news=())

    def silence(self, session: Session) -> None:
        """A session is cleared: it hears nothing of before any more."""
        for exchange_id in list(self.s.news.get(session.key, ())):
            self._forget(self.s.exchanges[exchange_id])

    def _forget(self, exchange: Exchange) -> None:
        s = self.s
        s.exchanges.pop(exchange.id, None)
        s.drop("exchanges", exchange.id)
        waiting = s.news.get(exchange.hearer)
        if waiting is not None:
            waiting.pop(exchange.id, None)
            if not waiting:
                del s.news[exchange.hearer]


_STATUS = {RunState.SUCCEEDED: SendStatus.OK, RunState.TIMED_OUT: SendStatus.TIMEOUT}


def chain_of(sender: Run | None, new: str) -> Talk:
    """The chain of a message, and its hop: that of the run that sends it, one further, else a new one."""
    talk = sender.talk if sender is not None else None
    if talk is None or not talk.chain:
        return Talk(chain=new, hops=1)
    return Talk(chain=talk.chain, hops=talk.hops + 1)
