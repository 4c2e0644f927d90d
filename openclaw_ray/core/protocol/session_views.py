"""What the registry says of sessions to whoever asks: the list, one session, where its transcript is (SPEC.md B5-B7).

1. Who asks is fenced, and sees what the rule of sight lets it see (`sight`); the operator sees all.
2. A list is read newest first, page by page, at most so many pages: what was not looked at is said (``scan-limit``).
3. The ghost rule: a session is linked to children that live, or ended at most 30 minutes ago.
4. Nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_ray.core.lifecycle import SessionState, display_word
from openclaw_ray.core.protocol.records import Run, Session, thaw
from openclaw_ray.core.protocol.sight import Sight
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.results import camel_dict
from openclaw_ray.core.session_asks import Asker, SessionAnswer
from openclaw_ray.core.session_rows import FRESH_MS, LIST_DEFAULT, SessionPage, channel_of, kind_of, title_of

__all__ = ["SessionViews"]

_PAGE = 1_000
_PAGES = 5
"""Pages of sessions that one list looks through (2)."""
_LINKS = 50  # children that one row links to
_LINKS_ALL = 2_000  # records that all rows of one list are linked by
_ENDED = (SessionState.ENDED, SessionState.ARCHIVED)
_OF_RUNS = ("activeOnly", "activeMinutes", "status", "search")
"""Filters for which a session's run is looked at, too."""
_PUSHED = {"agentId": "agent", "spawnedBy": "requester", "root": "root"}


class SessionViews:
    """Reads for session tools, gateway and command line."""

    def __init__(self, state: State) -> None:
        self.s = state
        self.sight = Sight(state)

    def answer(self, asker: Asker | None, what: str, given: Mapping[str, Any]) -> SessionAnswer:
        """``list``, ``session`` or ``may`` (whether ``given["what"]`` may be done to one), by camelCase parameters."""
        viewer = self.sight.fence(asker)
        if isinstance(viewer, SessionAnswer):
            return viewer
        if what == "list":
            return SessionAnswer(value=self._list(viewer, given))
        found = self.sight.find(viewer, str(given["key"]))
        if isinstance(found, SessionAnswer):
            return found
        if what == "may":
            denial = self.sight.unchangeable(viewer, found, str(given["what"]))
            if denial is not None:
                return denial
        return SessionAnswer(value=self._whole_row(found))

    def visible(self, asker: Asker, keys: list[str]) -> list[bool] | SessionAnswer:
        """Which of these sessions ``asker`` may see."""
        viewer = self.sight.fence(asker)
        if isinstance(viewer, SessionAnswer):
            return viewer
        return [self.sight.denied(viewer, key) is None for key in keys]

    def links(self, key: str) -> list[str]:
        """Keys of the children that a session is linked to (3)."""
        return self._children(key, round(self.s.clock.wall() * 1000), _LINKS)[0]

    # ------------------------------------------------------------------ list

    def _list(self, viewer: Session | None, given: Mapping[str, Any]) -> SessionPage:
        limit, offset = given.get("limit", LIST_DEFAULT), given.get("offset", 0)
        now = round(self.s.clock.wall() * 1000)
        mode = None if viewer is None else self.s.limits.sessions.visibility.value
        rows: list[dict[str, Any]] = []
        further: int | None
        found, further, scanned_out = 0, None, False
        looks_at_runs = any(given.get(name) for name in _OF_RUNS)
        for session in self._scan(given):
            if session is None:
                further, scanned_out = offset + len(rows), True
                break
            if viewer is not None and (session.client or self.sight.denied(viewer, session.key) is not None):
                continue
            if not _may_fit(session, given, session.key in self.s.sessions):
                continue
            run = self._run(session) if looks_at_runs or found >= offset else None
            if looks_at_runs and not _fits(session, run, given, now):
                continue
            found += 1
            if found > offset + limit:
                further = offset + limit
                break
            if found > offset:
                rows.append(self._row(session, run, titles=bool(given.get("includeDerivedTitles"))))
        links = _LINKS_ALL
        for row in rows:
            row["childSessions"], links = self._children(row["key"], now, links)
        return SessionPage(tuple(rows), further, scanned_out, mode)

    def _scan(self, given: Mapping[str, Any]) -> Iterator[Session | None]:
        """Sessions, newest first; ends with `None` if there may be more than it looked at (2)."""
        where: dict[str, Any] = {ours: given[name] for name, ours in _PUSHED.items() if name in given}
        archived = given.get("archived", False)
        if archived is True:
            where["state"] = SessionState.ARCHIVED.value
        elif not archived:
            where["state"] = [state.value for state in SessionState if state is not SessionState.ARCHIVED]
        if isinstance(words := given.get("state"), list):
            where["state"] = words
        for number in range(_PAGES):
            page = self.s.journal.select("sessions", where, limit=_PAGE, offset=number * _PAGE)
            for data in page:
                session = thaw(Session, data)
                yield self.s.sessions.get(session.key, session)
            if len(page) < _PAGE:
                return
        yield None

    def _run(self, session: Session) -> Run | None:
        """The run that a session is shown by: the one that owns it, else its newest."""
        run_id = session.run or session.last_run
        return self.s.journaled_run(run_id) if run_id else None

    def _children(self, key: str, now: int, links: int) -> tuple[list[str], int]:
        """Links to children (3), and how many records may still be read for others."""
        found = self.s.journal.select("sessions", {"requester": key}, limit=min(_LINKS, links)) if links > 0 else []
        out = []
        for data in found:
            child = thaw(Session, data)
            child = self.s.sessions.get(child.key, child)
            if child.state not in _ENDED or (
                child.state == SessionState.ENDED and now - round((child.ended or 0.0) * 1000) <= FRESH_MS
            ):
                out.append(child.key)
        return out, links - len(found)

    # ------------------------------------------------------------------ rows

    def _whole_row(self, session: Session) -> dict[str, Any]:
        """One session, with what only its status card shows."""
        now = round(self.s.clock.wall() * 1000)
        run = self._run(session)
        row = self._row(session, run, titles=True)
        row["childSessions"], _ = self._children(session.key, now, _LINKS)
        return row | camel_dict(
            {
                "queued": len(session.waiting) or None,
                "pause_reason": None if run is None or run.pause is None else run.pause.value,
                "unsettled": None if run is None else run.live_below,
                "cwd": None if session.facts is None else session.facts.cwd,
            }
        )

    def _row(self, session: Session, run: Run | None, *, titles: bool = False) -> dict[str, Any]:
        facts = session.facts
        row = camel_dict(
            {
                "key": session.key,
                "session_id": session.session_id,
                "lifecycle_revision": session.revision,
                "activations": session.number,
                "agent_id": session.agent,
                "kind": kind_of(session.key),
                "channel": channel_of(session.key),
                "label": session.label,
                "display_name": session.label or session.task_name,
                "derived_title": title_of(run.task) if titles and run is not None else None,
                "status": _status(run),
                "state": session.state,
                "depth": session.depth,
                "role": str(session.role),
                "task_name": session.task_name,
                "model": None if facts is None else facts.model,
                "total_tokens": None if run is None else _tokens(run),
                "parent_session_key": session.requester or None,
                "root_key": session.root,
                "spawned_workspace_dir": None if facts is None else facts.workspace,
                "spawned_cwd": None if facts is None else facts.cwd,
                "run_id": None if run is None else run.id,
                "started_at": None if run is None or run.started is None else round(run.started * 1000),
                "created_at": round(session.created * 1000),
                "ended_at": None if session.ended is None else round(session.ended * 1000),
                "updated_at": _updated(session, run),
                "aborted_last_run": run is not None and _status(run) == "killed",
                "archived": session.state == SessionState.ARCHIVED,
                "pinned": False,
            }
        )
        row["childSessions"] = []
        return row


def _status(run: Run | None) -> str:
    return "idle" if run is None else "running" if run.state == "paused" else display_word(run.state)


def _tokens(run: Run) -> int | None:
    usage = run.usage.with_below(run.below_usage)
    counts = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return sum(counts) if counts else None


def _updated(session: Session, run: Run | None) -> int:
    times = [session.created, session.ended]
    if run is not None:
        times += [run.created, run.started, run.ended]
    return round(max(at for at in times if at is not None) * 1000)


def _may_fit(session: Session, given: Mapping[str, Any], in_memory: bool) -> bool:
    """Whether a session is what those filters say that need no more than its own record."""
    if given.get("excludeSubagents") and session.depth > 0:
        return False
    if (kinds := given.get("kinds")) and kind_of(session.key) not in kinds:
        return False
    if given.get("activeOnly") and session.state in _ENDED and not in_memory:
        return False  # what has something at work below it is in memory
    return (label := given.get("label")) is None or (session.label or "").casefold() == label.casefold()


def _fits(session: Session, run: Run | None, given: Mapping[str, Any], now: int) -> bool:
    """Whether it is what the others say."""
    if given.get("activeOnly") and (run is None or (run.terminal and not run.live_below)):
        return False
    if (minutes := given.get("activeMinutes")) and now - _updated(session, run) > minutes * 60_000:
        return False
    if (status := given.get("status")) is not None and _status(run) != status:
        return False
    if word := str(given.get("search") or "").casefold():
        texts = (session.key, session.label, session.task_name, session.session_id, run.task if run else None)
        return any(word in text.casefold() for text in texts if text)
    return True
