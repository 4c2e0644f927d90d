"""What the registry tells a session of itself: the agents that it may name, its tools (SPEC.md B7, E)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_ray.agents.tools import TOOLS
from openclaw_ray.core import allowed_agents as rule
from openclaw_ray.core.auth import model_parts
from openclaw_ray.core.keys import RoleName, main_key, normalise_agent_id
from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.core.limits import Compat
from openclaw_ray.core.policy import Sender, ToolView, effective_tools
from openclaw_ray.core.protocol.child_facts import main_facts_of
from openclaw_ray.core.protocol.records import Run, Session, thaw

if TYPE_CHECKING:
    from openclaw_ray.core.protocol.journal import Journal
    from openclaw_ray.core.protocol.registry import Registry
    from openclaw_ray.core.protocol.state import AgentEntry

__all__ = ["allowed_agents", "tools_of"]


def allowed_agents(core: Registry, requester: str) -> rule.AllowedAgents:
    """Whom a session may name.

    Raises:
        KeyError: there is no such session.
    """
    session = core.s.sessions[requester]
    entry = core.s.agents.get(session.agent)
    limits = entry.limits if entry is not None else None
    return rule.allowed_agents(
        session.agent,
        limits.allow_agents if limits is not None else None,
        core.s.agent_ids(),
        limits.require_agent_id if limits is not None else False,
    )


def tools_of(core: Registry, journal: Journal, of: str, sender: Sender | None = None) -> ToolView:
    """The tools of a session, as the rules now are: in the turn that it runs, or that is next.

    Args:
        of: its key; or the id of an agent, for its main session, which need not be there yet.
        sender: what if that turn answered this sender.

    Raises:
        KeyError: there is no such session or agent.
    """
    s = core.s
    agent_id = normalise_agent_id(of)
    key = main_key(agent_id) if agent_id in s.agents else of
    session = s.sessions.get(key)
    if session is None and (data := journal.get("sessions", key)) is not None:
        session = thaw(Session, data)
    if session is None:
        session = next((_main_to_be(entry) for agent, entry in s.agents.items() if main_key(agent) == key), None)
    if session is None:
        raise KeyError(of)
    entry, facts = s.agents.get(session.agent), session.facts
    provider, model = model_parts(facts.model if facts is not None else None)
    answers, behind = (sender, ()) if sender is not None else _senders(s.runs.get(session.run))
    return effective_tools(
        s.limits.tools,
        entry.limits.tools if entry is not None else None,
        agent_id=session.agent,
        depth=session.depth,
        max_spawn_depth=s.depth_cap,
        universe=(*TOOLS, *(entry.tools if entry is not None else ())),
        session_key=session.key,
        role=str(session.role) if s.limits.compat is Compat.V2026_7 else None,
        sandboxed=facts is not None and facts.sandboxed,
        provider=provider,
        model=model,
        sender=answers,
        senders=behind,
        inherited=facts.inherited if facts is not None else None,
    )


def _senders(run: Run | None) -> tuple[Sender | None, tuple[Sender, ...]]:
    """Whom a session's turn answers, and who else is behind it; a resume answers nobody (SPEC.md E6)."""
    if run is None or run.senders is None:
        return None, ()
    turn = run.turns if run.in_turn else run.turns + 1
    return run.senders.at(0 if run.kind == RunKind.RESUME else turn)


def _main_to_be(entry: AgentEntry) -> Session:
    """An agent's main session that nobody has written to yet."""
    key, settings = main_key(entry.id), entry.limits.settings
    facts = None if settings is None else main_facts_of(settings)
    return Session(key, "", entry.id, 0, "", key, RoleName.MAIN, 0.0, facts=facts)
