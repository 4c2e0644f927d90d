"""What a session is to be, settled in the step that makes it (SPEC.md C stages 1e-g, 4 and 6, D5).

1. Nothing is asked for and nothing is configured: `None`, which costs nothing.
2. Else each fact has one rule, in a module of its own below; the first one that is broken refuses the spawn, before
   anything is reserved: sandbox (e, f), model and thinking (g), context, attachments.
3. The folder: the call's, else for one's own agent that of the caller, for another agent that agent's own. A caller's
   never gets to another agent (SCENARIOS.md 43).
4. What would have to be sandboxed is refused while there is no backend for it, last, so that who breaks another rule
   hears of that.
5. Tools: what the requester has taken over itself, what holds for the senders behind its turn, and what the spawn asks
   for; a child never has more than that.
"""

from __future__ import annotations

from collections.abc import Sequence

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.attachments import ROOT_PATH, over_limits
from openclaw_ray.core.limits import AgentSettings
from openclaw_ray.core.model_choice import choose, thinking_level
from openclaw_ray.core.policy.inherited import handed_on
from openclaw_ray.core.policy.pipeline import sender_lists
from openclaw_ray.core.policy.rules import ToolLists
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.sandbox_rules import check_sandbox, no_backend, sandboxed
from openclaw_ray.core.session_facts import ChildAsk, SessionFacts

__all__ = ["child_facts", "main_facts"]

_NOTHING = ChildAsk()
_UNSET = AgentSettings()


def child_facts(
    s: State, requester: Session, entry: AgentEntry, admit: Admit, parent: Run
) -> SessionFacts | Refusal | None:
    """The facts of the child that ``requester`` asks for in its run ``parent``, or why it may not be so."""
    target, own = entry.limits.settings, _settings(s, requester.agent)
    senders = _of_senders(s, requester, parent) if admit.activation and parent.senders is not None else ()
    if admit.ask is None and target is None and own is None and requester.facts is None and not senders:
        return None
    ask, target, own = admit.ask or _NOTHING, target or _UNSET, own or _UNSET
    caller = requester.facts or main_facts_of(own)
    same = entry.id == requester.agent
    boxed = sandboxed(target.sandbox, main=False)
    workspace = (caller.cwd or caller.workspace) if same else target.workspace
    refusal = check_sandbox(
        caller=caller.sandboxed,
        child=boxed,
        required=ask.sandbox_required,
        cwd=ask.cwd,
        workspace=workspace,
        path=target.sandbox_path,
    )
    if refusal is not None:
        return refusal
    choice = choose(
        own,
        target,
        same_agent=same,
        model=ask.model,
        thinking=ask.thinking,
        caller_model=caller.model,
        caller_thinking=caller.thinking,
    )
    if isinstance(choice, Refusal):
        return choice
    refusal = _context(requester, same, ask) or _attachments(s, ask)
    if refusal is not None:
        return refusal
    if boxed:
        return no_backend(entry.id, target.sandbox, target.sandbox_path)
    inherited = caller.inherited
    for lists in senders:
        inherited = handed_on(inherited, requester.key, sender=lists)
    facts = SessionFacts(
        workspace=workspace,
        cwd=ask.cwd or workspace,
        model=choice.model,
        thinking=choice.thinking,
        sandboxed=boxed,
        context=ask.context,
        light_context=ask.light_context,
        home=target.workspace,
        attachments=ask.attachments,
        delegation=target.delegation,
        inherited=handed_on(inherited, requester.key, asked=ask.tools),
        mode=ask.mode,
    )
    return None if facts == SessionFacts() else facts


def main_facts(entry: AgentEntry, *, main: bool) -> SessionFacts | Refusal | None:
    """The facts of a session of an agent's that nobody spawned, its ``main`` one or another; or why it may not run."""
    settings = entry.limits.settings
    if settings is None:
        return None
    if sandboxed(settings.sandbox, main=main):
        return no_backend(entry.id, settings.sandbox, settings.sandbox_path)
    facts = main_facts_of(settings)
    return None if facts == SessionFacts() else facts


def main_facts_of(settings: AgentSettings) -> SessionFacts:
    """What a session of an agent has that nobody spawned, a client's own root among them."""
    return SessionFacts(
        workspace=settings.workspace,
        cwd=settings.workspace,
        model=settings.model,
        thinking=thinking_level(settings.thinking or ""),
        home=settings.workspace,
        delegation=settings.delegation,
    )


# --------------------------------------------------------------------------- inside


def _settings(s: State, agent_id: str) -> AgentSettings | None:
    entry = s.agents.get(agent_id)
    return entry.limits.settings if entry is not None else None


def _of_senders(s: State, requester: Session, parent: Run) -> Sequence[ToolLists]:
    """What holds now for each sender behind a turn of ``requester``'s (5)."""
    entry = s.agents.get(requester.agent)
    own = entry.limits.tools if entry is not None else None
    who = parent.senders.who if parent.senders is not None else ()
    return [lists for one in who if (lists := sender_lists(s.limits.tools, own, one)) is not None]


def _context(requester: Session, same: bool, ask: ChildAsk) -> Refusal | None:
    if ask.context != "fork":
        return None
    if not same:
        return Refusal("error", f"context fork is for one's own agent ({requester.agent})", "context")
    if requester.client:
        return Refusal("error", "context fork needs a transcript, and a client's root has none", "context")
    return None


def _attachments(s: State, ask: ChildAsk) -> Refusal | None:
    """They were judged where they were read; the configuration in force has the last word."""
    if ask.attachments is None:
        return None
    limits = s.limits.attachments
    if limits is None:
        text = f"attachments are not enabled any more ({ROOT_PATH}.enabled)"
        return Refusal("forbidden", text, "attachments", path=f"{ROOT_PATH}.enabled")
    return over_limits([file.bytes for file in ask.attachments.files if file.bytes is not None], limits)
