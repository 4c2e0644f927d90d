"""The children of a session, as it, its users and the operator are shown them (SPEC.md B4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol import control
from openclaw_ray.core.protocol.archiving import find_session
from openclaw_ray.core.protocol.executors import counts_no_more
from openclaw_ray.core.protocol.journal import Journal
from openclaw_ray.core.protocol.records import Run, thaw
from openclaw_ray.core.protocol.restart import is_replaced, replaces
from openclaw_ray.core.protocol.reviving import takes_further_turns
from openclaw_ray.core.protocol.session_views import SessionViews
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.yielding import in_batch
from openclaw_ray.core.subagent_rows import ChildFacts, KinFacts

__all__ = ["child_facts", "children_of", "kin_of"]

_TEXT_MAX = 200  # characters of a task or progress text that go into a list


def children_of(
    s: State, journal: Journal, requester: str, waiting: Mapping[str, str], limit: int
) -> list[ChildFacts]:
    """The children of a session: all that are un-ended, and of the others the newest ``limit``, newest first. One that
    was steered is shown as the run that goes on."""
    found: dict[str, Run] = {}
    for data in journal.select("runs", {"requester": requester}, limit=limit):
        run: Run = thaw(Run, data)
        found[run.id] = s.runs.get(run.id, run)
    for run in _un_ended(s, requester):
        found[run.id] = run
    found = {run.id: run for run in found.values() if not counts_no_more(s, run)}
    ordered = sorted(found.values(), key=lambda run: run.seq, reverse=True)
    shown = (run for run in ordered if run.route != "ask" and not is_replaced(run))
    return [child_facts(s, run, waiting.get(run.id)) for run in shown]


def kin_of(s: State, requester: str, target: str) -> list[KinFacts]:
    """What the session or run ``target`` is to a session, whoever's child it is; empty if there is none.

    Of what is not below it a session is told no more than that; the operator, who is no ``requester``, is told all.
    """
    run = control.run_named(s, target)
    if run is None:
        return []
    kinship = control.kinship(s, requester, run.session)
    facts = child_facts(s, run, None)
    if requester and kinship is not control.Kinship.BELOW:
        facts = ChildFacts(run.id, run.session, run.agent, run.state.value, "", facts.created_at, facts.delivery)
    return [KinFacts(kinship.value, facts)]


def _un_ended(s: State, requester: str) -> Iterator[Run]:
    """Children that run, or have something below them that does."""
    runs = s.runs
    session = s.sessions.get(requester)
    parent = runs.get(session.run) if session is not None else None
    children = (runs[run_id] for run_id in (parent.children if parent is not None else ()) if run_id in runs)
    return (run for run in children if not run.terminal or run.live_below)


def child_facts(s: State, run: Run, waiting_for: str | None) -> ChildFacts:
    """One run as its requester is shown it."""
    usage = run.usage.with_below(run.below_usage)
    tokens = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    session = find_session(s, run.session)
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
        children=tuple(SessionViews(s).links(run.session)),
        total_tokens=sum(tokens) if tokens else None,
        wake_armed=_wake_armed(s, run),
        replaces=replaces(run),
        model=None if session is None or session.facts is None else session.facts.model,
        error="killed" if run.state is RunState.CANCELLED else None if error is None else error.message[:_TEXT_MAX],
    )


def _wake_armed(s: State, run: Run) -> bool:
    """Whether its requester will be called again for its end: by the wake that it is owed, or as its agent is."""
    requester = s.sessions.get(run.requester)
    parent = s.runs.get(run.parent)
    if requester is None or parent is None or not run.expects:
        return False
    return in_batch(parent, run.id) or takes_further_turns(s, requester)
