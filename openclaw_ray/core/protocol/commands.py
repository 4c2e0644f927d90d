"""What users command in a conversation, done (SPEC.md B8; the words are `thread_commands`').

1. The client that serves the channel alone brings them in. They are no messages: no session has a turn for one.
2. Users reach what the main session does that hears them where nothing is bound: ``/focus`` and ``/agents`` go by the
   one rule of sight, with that session as the one who looks, and a denial is that of any other tool.
3. ``/focus``: a child as `targets` resolves it, then a session key or id, then a label of whatever is in sight.
4. ``/agents``: its children that are at work, or that a conversation is bound to, with their conversations.
"""

from __future__ import annotations

from openclaw_ray.core.keys import main_key
from openclaw_ray.core.lifecycle import PauseReason, RunState, SessionState
from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.protocol.addressing import access, address
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.child_views import children_of
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Client, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import ThreadKind
from openclaw_ray.core.protocol.threads import Threads
from openclaw_ray.core.results import Receipt
from openclaw_ray.core.subagent_rows import ChildFacts, display_status, shown_label
from openclaw_ray.core.targets import resolve
from openclaw_ray.core.thread_commands import AgentLine, Command, Verb, agents_text

__all__ = ["Commands"]

_CHILDREN = 200
"""Newest ended children that are looked through."""


class Commands:
    """Commands of users."""

    def __init__(self, state: State, threads: Threads) -> None:
        self.s = state
        self.threads = threads

    def done(self, client: Client, agent: str, admit: Admit, command: Command) -> Receipt:
        """Do it. The receipt's ``note``, or ``error``, is what the conversation is told; it has no run.

        Args:
            client: who serves the channel.
            agent: whose main session hears what is said where nothing is bound.
        """
        if command.error:
            return Receipt("error", error=command.error)
        match command.verb:
            case Verb.FOCUS:
                target = self._target(agent, command.target)
                return target if isinstance(target, Receipt) else self.threads.focus(client, admit, target)
            case Verb.UNFOCUS:
                return self.threads.unfocus(client, admit)
            case Verb.AGENTS:
                return self._agents(client, agent)
            case Verb.IDLE | Verb.MAX_AGE:
                return self.threads.lasts(client, admit, command)

    # ------------------------------------------------------------------ /focus

    def _target(self, agent: str, word: str) -> Session | Receipt:
        """The sub-agent's session that is meant (3)."""
        main = find_session(self.s, main_key(agent))
        if main is None:
            return Receipt("error", error=f"agent {agent} has no sessions to focus")
        found = resolve(word, self._children(main), self._now())
        if found.error == "ambiguous":
            return Receipt("error", error=found.text)
        if found.child is not None:
            return self._there(address(self.s, main, SendAsk(found.child.session_key), ""))
        named = self._there(address(self.s, main, SendAsk(word), ""))
        if isinstance(named, Session) or named.status == "forbidden":
            return named
        labelled = self._there(address(self.s, main, SendAsk(label=word), ""))
        return named if isinstance(labelled, Receipt) and ":" in word else labelled

    def _there(self, found: Session | Receipt) -> Session | Receipt:
        if isinstance(found, Session) and (found.depth == 0 or found.state == SessionState.ARCHIVED):
            return Receipt("error", error=f"{found.key} is no sub-agent's session that is there")
        return found

    # ------------------------------------------------------------------ /agents

    def _agents(self, client: Client, agent: str) -> Receipt:
        """Who is at work, or bound (4)."""
        s = self.s
        main = find_session(s, main_key(agent))
        bound: dict[str, list[str]] = {}
        for thread in s.threads.values():
            if thread.bound and thread.kind is not ThreadKind.HOME:
                bound.setdefault(thread.session, []).append(thread.conversation)
        lines: dict[str, AgentLine] = {}
        for child in [] if main is None else self._children(main):
            key = child.session_key
            if main is None or key in lines or not (child.active or key in bound) or access(s, main, key) is not None:
                continue
            lines[key] = AgentLine(shown_label(child), key, _status(child), tuple(bound.get(key, ())))
        channel = client.channel
        bindable = channel is not None and channel[2] and s.limits.threads.of(channel[0], channel[1]).enabled
        return Receipt("accepted", agent_id=agent, note=agents_text(lines.values(), bindable=bindable))

    # ------------------------------------------------------------------ both

    def _children(self, main: Session) -> list[ChildFacts]:
        return children_of(self.s, self.s.journal, main.key, {}, _CHILDREN)

    def _now(self) -> int:
        return round(self.s.clock.wall() * 1000)


def _status(child: ChildFacts) -> str:
    pause = None if child.pause is None else PauseReason(child.pause)
    return display_status(RunState(child.state), pause, child.pending)
