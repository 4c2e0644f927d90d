"""What the registry tells a session of itself: children, the agents that it may name, tools (SPEC.md B4, B7, E)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from openclaw_ray.agents.tools import TOOLS
from openclaw_ray.core import allowed_agents as rule
from openclaw_ray.core.auth import model_parts
from openclaw_ray.core.keys import RoleName, main_key, normalise_agent_id
from openclaw_ray.core.lifecycle import RunKind, RunState
from openclaw_ray.core.limits import Compat
from openclaw_ray.core.policy import Sender, ToolView, effective_tools
from openclaw_ray.core.protocol import control
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.child_facts import main_facts_of
from openclaw_ray.core.protocol.executors import counts_no_more
from openclaw_ray.core.protocol.records import Run, Session, thaw
from openclaw_ray.core.protocol.restart import is_replaced, replaces
from openclaw_ray.core.protocol.reviving import takes_further_turns
from openclaw_ray.core.protocol.yielding import in_batch
from openclaw_ray.core.subagent_rows import ChildFacts, KinFacts

if TYPE_CHECKING:
    from openclaw_ray.core.protocol.journal import Journal
    from openclaw_ray.core.protocol.registry import Registry
    from openclaw_ray.core.protocol.state import AgentEntry

__all__ = ["allowed_agents", "child_facts", "children_of", "kin_of", "tools_of"]

_TEXT_MAX = 200  # characters of a task or progress text that go into a list


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


def children_of(
    core: Registry, journal: Journal, requester: str, waiting: Mapping[str, str], limit: int
) -> list[ChildFacts]:
    """The children of a session: all that are un-ended, and of the others the newest ``limit``, newest first. One that
    was steered is shown as the run that goes on."""
    found: dict[str, Run] = {}
    for data in journal.select("runs", {"requester": requester}, limit=limit):
        run: Run = thaw(Run, data)
        found[run.id] = core.s.runs.get(run.id, run)
    for run in _un_ended(core, requester):
        found[run.id] = run
    found = {run.id: run for run in found.values() if not counts_no_more(core.s, run)}
    ordered = sorted(found.values(), key=lambda run: run.seq, reverse=True)
    shown = (run for run in ordered if run.route != "ask" and not is_replaced(run))
    return [child_facts(core, run, waiting.get(run.id)) for run in shown]


def kin_of(core: Registry, requester: str, target: str) -> list[KinFacts]:
    """What the session or run ``target`` is to a session, whoever's child it is; empty if there is none.

    Of what is not below it a session is told no more than that; the operator, who is no ``requester``, is told all.
    """
    run = control.run_named(core.s, target)
    if run is None:
        return []
    kinship = control.kinship(core.s, requester, run.session)
    facts = child_facts(core, run, None)
    if requester and kinship is not control.Kinship.BELOW:
        facts = ChildFacts(run.id, run.session, run.agent, run.state.value, "", facts.created_at, facts.delivery)
    return [KinFacts(kinship.value, facts)]


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


def _un_ended(core: Registry, requester: str) -> Iterator[Run]:
    """Children that run, or have something below them that does."""
    runs = core.s.runs
    session = core.s.sessions.get(requester)
    parent = runs.get(session.run) if session is not None else None
    children = (runs[run_id] for run_id in (parent.children if parent is not None else ()) if run_id in runs)
    return (run for run in children if not run.terminal or run.live_below)


def child_facts(core: Registry, run: Run, waiting_for: str | None) -> ChildFacts:
    """One run as its requester is shown it."""
    usage = run.usage.with_below(run.below_usage)
    tokens = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    session = find_session(core.s, run.session)
    error = run.outcome.error if run.outcome is not None else None
    return ChildFacts(
        run_id=run.id,
        session_key=run.session,
        agent_id=run.agent,
        state=run.state.value,
        task=run.task[:_TEXT_MAX],
        created_at=round(run.created * 1000),
        delivery=run.delivery.value,
        label=run.label,
        task_name=run.task_name,
        pause=None if run.pause is None else run.pause.value,
        pending=run.live_below,
        started_at=None if run.started is None else round(run.started * 1000),
        ended_at=None if run.ended is None else round(run.ended * 1000),
        waiting_for=waiting_for,
        progress=None if run.progress is None or run.progress[0] is None else run.progress[0][:_TEXT_MAX],
        children=tuple(core.views.links(run.session)),
        total_tokens=sum(tokens) if tokens else None,
        wake_armed=_wake_armed(core, run),
        replaces=replaces(run),
        model=None if session is None or session.facts is None else session.facts.model,
        error="killed" if run.state is RunState.CANCELLED else None if error is None else error.message[:_TEXT_MAX],
    )


def _wake_armed(core: Registry, run: Run) -> bool:
    """Whether its requester will be called again for its end: by the wake that it is owed, or as its agent is."""
    requester = core.s.sessions.get(run.requester)
    parent = core.s.runs.get(run.parent)
    if requester is None or parent is None or not run.expects:
        return False
    return in_batch(parent, run.id) or takes_further_turns(core.s, requester)
