"""What a child is to be, settled in the step that admits it (SPEC.md C stages 3-6, D5).

1. Nothing is asked for and nothing is configured: `None`, which costs nothing.
2. Else each fact has one rule, in a module of its own below; the first one that is broken refuses the spawn, before
   anything is reserved.
3. Tools: what the requester has taken over itself and what the spawn asks for; a child never has more than that.
"""

from __future__ import annotations

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.policy.inherited import handed_on
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.session_facts import ChildAsk, SessionFacts

__all__ = ["child_facts"]

_NOTHING = ChildAsk()


def child_facts(s: State, requester: Session, entry: AgentEntry, admit: Admit) -> SessionFacts | Refusal | None:
    """The facts of the child that ``requester`` asks for, or why it may not be so."""
    if admit.ask is None and requester.facts is None:
        return None
    ask = admit.ask or _NOTHING
    own = requester.facts.inherited if requester.facts is not None else None
    facts = SessionFacts(
        cwd=ask.cwd,
        model=ask.model,
        thinking=ask.thinking,
        context=ask.context,
        light_context=ask.light_context,
        inherited=handed_on(own, requester.key, asked=ask.tools),
    )
    return None if facts == SessionFacts() else facts
