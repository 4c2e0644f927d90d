"""Messages to sessions: who gets one, and the run that handles it (PROTOCOL.md 5.6).

1. The target is a top-level session that exists, or an agent's main session, which is made by its first message.
2. There is room in its inbox, or the message is refused and leaves nothing behind.
3. The message is a run of its own in the target's serial lane: at once if no turn runs, else behind it.
"""

from __future__ import annotations

from abc import abstractmethod

from openclaw_ray.core.keys import main_key, normalise_agent_id, role
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.inbox import inbox_full
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.results import Receipt

__all__ = ["Messaging"]


class Messaging:
    """What becomes of a message; `Admitting` makes its run."""

    def __init__(self, state: State, down: Down) -> None:
        self.s = state
        self.down = down

    @abstractmethod
    def _new_run(
        self, client: str, session: Session, parent: Run, requester: Session, entry: AgentEntry, admit: Admit
    ) -> None: ...

    def _refuse(self, receipt: Receipt) -> Receipt:
        self.s.refused += 1
        return receipt

    def _message(self, client: str, parent: Run, requester: Session, admit: Admit) -> Receipt:
        """Route ``ask``: a message to an agent's main session or to an existing top-level one."""
        s = self.s
        target = self._target(admit)
        if isinstance(target, Receipt):
            return self._refuse(target)
        entry = s.agents.get(target.agent)
        if entry is None:
            return self._refuse(Receipt("error", error=f"agent {target.agent!r} is not registered any more"))
        full = inbox_full(s, target)
        if full is not None:
            return self._refuse(full)
        s.sessions[target.key] = target
        self._new_run(client, target, parent, requester, entry, admit)
        return Receipt("accepted", admit.run, target.key, entry.id)

    def _target(self, admit: Admit) -> Session | Receipt:
        """The session that is meant (1); one that is made is in no table yet."""
        s = self.s
        target = s.sessions.get(admit.session_key)
        if target is not None and target.depth > 0:
            text = f"session {target.key} runs one task of its requester's and takes no messages"
            return Receipt("error", error=text)
        if target is not None:
            return target
        agent_id = normalise_agent_id(admit.agent_id or "")
        entry = s.agents.get(agent_id or "")
        if entry is None or admit.session_key != main_key(entry.id):
            known = ", ".join(sorted(s.agents)) or "none"
            return Receipt("error", error=f"no agent or session {admit.session_key!r} (agents: {known})")
        return Session(
            admit.session_key,
            admit.session_id,
            entry.id,
            0,
            "",
            admit.session_key,
            role(0, s.depth_cap).role,
            s.clock.wall(),
        )
