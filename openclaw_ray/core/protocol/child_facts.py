"""What a child is to be, settled in the step that admits it (SPEC.md C stages 3-6, D5).

1. Nothing is asked for and nothing is configured: `None`, which costs nothing.
2. Else each fact has one rule, in a module of its own below; the first one that is broken refuses the spawn, before
   anything is reserved.
"""

from __future__ import annotations

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.session_facts import SessionFacts

__all__ = ["child_facts"]


def child_facts(s: State, requester: Session, entry: AgentEntry, admit: Admit) -> SessionFacts | Refusal | None:
    """The facts of the child that ``requester`` asks for, or why it may not be so."""
    ask = admit.ask
    if ask is None:
        return None
    return SessionFacts(
        cwd=ask.cwd,
        model=ask.model,
        thinking=ask.thinking,
        context=ask.context,
        light_context=ask.light_context,
    )
