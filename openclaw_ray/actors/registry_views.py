"""Lists for people and programs: runs, sessions, events, counts and what waits (DESIGN.md 7, 9).

Rows are plain dicts with OpenClaw's camelCase names. Ended runs are read from the journal, page by page.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.caller_views import allowed_agents, tools_of
from openclaw_ray.core.errors import SessionForbidden
from openclaw_ray.core.events import Event
from openclaw_ray.core.lifecycle import display_word, result_status
from openclaw_ray.core.placement import amounts
from openclaw_ray.core.protocol.audiences import audience_of
from openclaw_ray.core.protocol.child_views import children_of, kin_of
from openclaw_ray.core.protocol.records import Run, Session, thaw
from openclaw_ray.core.protocol.restart import generation
from openclaw_ray.core.results import camel_dict
from openclaw_ray.core.session_asks import Asker, SessionAnswer

if TYPE_CHECKING:
    from openclaw_ray.core.protocol.journal import Journal
    from openclaw_ray.core.protocol.registry import Registry

__all__ = ["Views", "event_of", "forbidden", "run_row", "session_row"]

_OWN = ("children", "agents", "audience", "kin", "tools")
_PAGE = 1_000
_PAGES = 5
"""Pages of records that one list of a turn's looks through."""


class Views:
    """Reads for lists."""

    def __init__(self, journal: Journal, node: str) -> None:
        self.journal = journal
        self.node = node

    def rows(
        self,
        core: Registry,
        what: str,
        filters: Mapping[str, Any],
        limit: int,
        offset: int,
        asker: Asker | None = None,
    ) -> list[Any]:
        """A page of ``runs`` (or one ``run``), ``sessions`` or ``events``; or ``children``, ``agents``, ``kin``,
        ``audience``, ``tools`` of a ``requester``. A turn is told of itself and of what it may see, and of nothing if
        it is not the one that runs.

        Raises:
            SessionForbidden: it is not, or asks for another session or for events.
        """
        if asker is not None:
            self._check(core, asker, what, filters)
        if what == "audience":
            return [audience_of(core.s, str(filters["requester"]))]
        if what == "agents":
            return [allowed_agents(core, str(filters["requester"]))]
        if what == "tools":
            return [tools_of(core, self.journal, str(filters["requester"]), filters.get("sender"))]
        if what == "children":
            return children_of(core.s, self.journal, str(filters["requester"]), self.waiting(core), limit)
        if what == "run":
            pages = [run.freeze()] if (run := core.s.journaled_run(str(filters["run"]))) is not None else []
            return self._run_rows(core, pages)
        if what == "kin":
            return list(kin_of(core.s, str(filters["requester"]), str(filters["target"])))
        if what == "events":
            found = self.journal.after("events", int(filters.get("after", 0)), limit=limit)
            return [data for _, data in found]
        if asker is None:
            pages = self.journal.select(what, filters, limit=limit, offset=offset)
        else:
            pages = list(itertools.islice(self._in_sight(core, what, filters, asker), offset, offset + limit))
        if what == "sessions":
            return [session_row(thaw(Session, data)) for data in pages]
        return self._run_rows(core, pages)

    def check_run(self, core: Registry, run_id: str, asker: Asker | None) -> None:
        """Refuse a turn that may not hear of a run.

        Raises:
            SessionForbidden: it may not.
        """
        if asker is not None:
            self._check(core, asker, "run", {"run": run_id})

    def _check(self, core: Registry, asker: Asker, what: str, filters: Mapping[str, Any]) -> None:
        """Fence a turn, and hold it to what is its own."""
        fenced = core.views.sight.fence(asker)
        if isinstance(fenced, SessionAnswer):
            raise forbidden(fenced)
        if what == "events":
            raise SessionForbidden("control", "the events of all sessions are the operator's to watch", "")
        if what in _OWN and filters.get("requester") != asker.session:
            raise SessionForbidden("control", f"{what} of another session are not {asker.session}'s to see", "")
        if what == "run":
            run = core.s.journaled_run(str(filters["run"]))
            if run is None or run.requester == asker.session:
                return  # what it has spawned itself it may hear of, whatever else it sees
            denial = core.views.sight.denied(fenced, run.session)
            if denial is not None:
                raise forbidden(denial)

    def _in_sight(self, core: Registry, what: str, filters: Mapping[str, Any], asker: Asker) -> Iterator[bytes]:
        """Records of sessions that a turn may see, newest first, as far as is looked."""
        viewer = core.s.sessions[asker.session]
        for number in range(_PAGES):
            page = self.journal.select(what, filters, limit=_PAGE, offset=number * _PAGE)
            for data in page:
                key = thaw(Session, data).key if what == "sessions" else thaw(Run, data).session
                if core.views.sight.denied(viewer, key) is None:
                    yield data
            if len(page) < _PAGE:
                return

    def _run_rows(self, core: Registry, pages: list[bytes]) -> list[Any]:
        waiting = self.waiting(core)
        out = []
        for data in pages:
            run: Run = thaw(Run, data)
            row = run_row(core.s.runs.get(run.id, run))
            if run.id in waiting:
                row["waitingFor"] = waiting[run.id]
            actor = core.s.actors.get(run.actor)
            if actor is not None:
                row |= {"node": actor.node, "pid": actor.pid, "actor": actor.id}
            out.append(row)
        return out

    def session(self, core: Registry, key: str, asker: Asker | None = None) -> dict[str, Any] | None:
        """One session by key, or `None`.

        Raises:
            SessionForbidden: the turn that asks may not see it.
        """
        if asker is not None:
            fenced = core.views.sight.fence(asker)
            denial = fenced if isinstance(fenced, SessionAnswer) else core.views.sight.denied(fenced, key)
            if denial is not None:
                raise forbidden(denial)
        live = core.s.sessions.get(key)
        if live is not None:
            return session_row(live)
        data = self.journal.get("sessions", key)
        return None if data is None else session_row(thaw(Session, data))

    def waiting(self, core: Registry) -> dict[str, str]:
        """For each queued run, what it waits for, with the figures."""
        s = core.s
        bound = s.bound
        out: dict[str, str] = {}
        for place, waiting in enumerate(sorted(s.queue.waiting(), key=lambda w: w.age)):
            taken = s.lanes.taken(waiting.lane)
            if not s.lanes.free(waiting.lane, waiting.lane_width):
                why = f"a slot of lane {waiting.lane} ({taken} of {waiting.lane_width})"
            elif s.limits.max_active_sessions is not None and s.turns_running >= s.limits.max_active_sessions:
                why = f"a place among ray.maxActiveSessions ({s.turns_running} of {s.limits.max_active_sessions})"
            else:
                kept = max(0, s.depth_cap - waiting.depth)
                spare = f", {kept} kept for deeper runs" if kept else ""
                needs = amounts(s.runs[waiting.run].klass[3])
                asked = "".join(f" with {name} {amount:g}" for name, amount in needs.items())
                why = f"an actor{asked} ({bound} bound of ray.pool.max {s.pool_max}{spare}; {len(s.actors)} there)"
            out[waiting.run] = f"{why}; place {place + 1} in the queue"
        return out

    def counts(self, core: Registry) -> dict[str, Any]:
        """Counts of the runtime."""
        s = core.s
        states: dict[str, int] = {}
        for actor in s.actors.values():
            states[actor.state] = states.get(actor.state, 0) + 1
        return {
            **s.snapshot(),
            "actors_by_state": states,
            "pool_max": s.pool_max,
            "started": s.started_runs,
            "warm": s.warm_starts,
            "cold": s.cold_starts,
            "refused": s.refused,
            "pids": sorted(a.pid for a in s.actors.values() if a.pid and a.node == self.node),
            "marks": len(s.marks),
            "reserved": [(x.key, x.active) for x in s.sessions.values() if x.active],
            "unheard": [(r.id, r.session) for r in s.runs.values() if r.terminal and r.deliver_to],
            "crew": {a.id: (a.state, a.pid, a.run) for a in s.actors.values()},
            "limits": core.limiting.statistics(),
            "lanes": [(x.lane, x.width, x.taken) for x in s.lanes.statistics()],
        }


def run_row(run: Run) -> dict[str, Any]:
    """One run, as lists show it."""
    outcome = run.outcome
    error = outcome.error if outcome is not None else None
    return camel_dict(
        {
            "run_id": run.id,
            "session_key": run.session,
            "session_id": run.session_id,
            "agent_id": run.agent,
            "requester_key": run.requester or None,
            "root_key": run.root,
            "depth": run.depth,
            "route": run.route,
            "state": run.state.value,
            "display_status": display_word(run.state),
            "status": result_status(run.state).value if run.terminal else None,
            "pause_reason": run.pause.value if run.pause is not None else None,
            "label": run.label,
            "task_name": run.task_name,
            "task": run.task[:200] or None,
            "index": run.index,
            "map_id": None if run.item is None else run.item.map_id,
            "run_timeout_seconds": run.timeout or None,
            "created_at": round(run.created * 1000),
            "started_at": None if run.started is None else round(run.started * 1000),
            "ended_at": None if run.ended is None else round(run.ended * 1000),
            "runtime_ms": _runtime(run),
            "turns": run.turns,
            "generation": generation(run) or None,
            "replaced_by": run.restart.replaced_by or None if run.restart is not None else None,
            "actor": run.ran_on or None,
            "delivery_status": run.delivery.value,
            "delivery_attempts": run.failed_attempts or None,
            "delivery_error": run.last_error,
            "suspended_at": None if run.suspended_at is None else round(run.suspended_at * 1000),
            "error": None if error is None else error.to_json(),
            "text": None if outcome is None or outcome.text is None else outcome.text[:200],
            "progress": None if run.progress is None else run.progress[0],
        }
    )


def _runtime(run: Run) -> int | None:
    if run.started is None or run.ended is None:
        return None
    return max(0, round((run.ended - run.started) * 1000))


def session_row(session: Session) -> dict[str, Any]:
    """One session, as lists show it."""
    inherited = session.facts.inherited if session.facts is not None else None
    return camel_dict(
        {
            "key": session.key,
            "session_id": session.session_id,
            "agent_id": session.agent,
            "depth": session.depth,
            "role": str(session.role),
            "label": session.label,
            "task_name": session.task_name,
            "status": session.state,
            "parent_session_key": session.requester or None,
            "root_key": session.root,
            "activations": session.number,
            "lifecycle_revision": session.revision,
            "created_at": round(session.created * 1000),
            "ended_at": None if session.ended is None else round(session.ended * 1000),
            "cleanup": session.cleanup if session.depth else None,
            "archive_at": None if session.archive_at is None else round(session.archive_at * 1000),
            "wedged_at": None if session.wedged_at is None else round(session.wedged_at * 1000),
            "wedged_reason": session.wedged_reason,
            "aborted_last_run": session.aborted or None,
            **(inherited.to_json() if inherited is not None else {}),
        }
    )


def forbidden(answer: SessionAnswer) -> SessionForbidden:
    """A refusal as an error."""
    return SessionForbidden(answer.reason, answer.error, answer.path)


def event_of(data: bytes) -> Event:
    """An event from its journaled form."""
    event: Event = pickle.loads(data)
    return event
