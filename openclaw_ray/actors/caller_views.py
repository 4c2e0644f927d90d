"""What the registry tells a session of itself: its children, and the agents that it may name (SPEC.md B4, B7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from openclaw_ray.core import allowed_agents as rule
from openclaw_ray.core.protocol import control
from openclaw_ray.core.protocol.executors import counts_no_more
from openclaw_ray.core.protocol.records import Run, thaw
from openclaw_ray.core.subagent_rows import ChildFacts, KinFacts

if TYPE_CHECKING:
    from openclaw_ray.core.protocol.journal import Journal
    from openclaw_ray.core.protocol.registry import Registry

__all__ = ["allowed_agents", "child_facts", "children_of", "kin_of"]

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
    """The children of a session: all that are un-ended, and of the others the newest ``limit``, newest first."""
    found: dict[str, Run] = {}
    for data in journal.select("runs", {"requester": requester}, limit=limit):
        run: Run = thaw(Run, data)
        found[run.id] = core.s.runs.get(run.id, run)
    for run in _un_ended(core, requester):
        found[run.id] = run
    found = {run.id: run for run in found.values() if not counts_no_more(core.s, run)}
    ordered = sorted(found.values(), key=lambda run: run.seq, reverse=True)
    return [child_facts(core, run, waiting.get(run.id)) for run in ordered if run.route != "ask"]


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
    below = [core.s.runs[child] for child in run.children if child in core.s.runs]
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
        children=tuple(child.session for child in below),
        total_tokens=sum(tokens) if tokens else None,
    )
