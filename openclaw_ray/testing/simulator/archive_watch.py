"""Archives and resets as the journal has them (SPEC.md G3, H6).

1. A transcript is archived once, and nothing is written to it afterwards.
2. Only what has ended is archived, and by itself only what has been heard of, when its time has come.
3. A main session is archived by a reset alone, which leaves its depth.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.archive_rules import archive_delay
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.messages import Archive, Row
from openclaw_ray.core.protocol.records import Session

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.history import History

__all__ = ["ArchiveWatch"]

_EARLY = 2e-3
"""Seconds that are lost to times being kept in milliseconds."""


class ArchiveWatch:
    """Looks at each commit.

    Attributes:
        archived: transcripts that were ordered to be renamed.
        resets: how many sessions began anew.
        cleared: keys of those that were reset or archived in the last commit.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.archived: set[str] = set()
        self.resets = 0
        self.cleared: set[str] = set()
        self._sessions: dict[str, dict[str, Any]] = {}

    def committed(self, writes: Sequence[Write]) -> None:
        """A transaction is in the journal; its runs are known already."""
        self.cleared = set()
        rows: list[Row | Archive] = []
        before: dict[str, dict[str, Any]] = {}
        for write in writes:
            if write.table == "sessions" and write.data is not None:
                self._session(str(write.key), dict(zip(Session.FIELDS, pickle.loads(write.data), strict=True)), before)
            elif write.table == "rows" and write.data is not None:
                rows.append(pickle.loads(pickle.loads(write.data)[1]))
        for row in rows:
            if row.session_id in self.archived:
                what = "archived once" if isinstance(row, Archive) else "whole when it is archived"
                self.history.broken(f"a transcript is {what}", f"{row}")
            if isinstance(row, Archive):
                self.archived.add(row.session_id)
                self._order(row.session_id, before)

    def _session(self, key: str, now: dict[str, Any], before: dict[str, dict[str, Any]]) -> None:
        old = self._sessions.get(key)
        if old is not None and old["session_id"] != now["session_id"]:
            self.resets += 1
            self.cleared.add(key)
            before[old["session_id"]] = old
            if (old["depth"], old["root"], old["requester"]) != (now["depth"], now["root"], now["requester"]):
                self.history.broken("a reset keeps depth and lineage", f"{key}: {old}, then {now}")
        self._sessions[key] = now

    def _order(self, session_id: str, before: dict[str, dict[str, Any]]) -> None:
        by_reset = session_id in before
        for run_id, view in self.history.runs.items():
            if view["session_id"] != session_id:
                continue
            if not view.state.terminal:
                self.history.broken("only what has ended is archived", f"{session_id} while {run_id} is {view.state}")
            if view["deliver_to"] and not by_reset:
                self.history.broken("archived after it was heard of", f"{session_id}, {run_id}: {view['deliver_to']}")
        if by_reset:
            return
        [session] = [s for s in self._sessions.values() if s["session_id"] == session_id]
        self.cleared.add(session["key"])
        if session["depth"] == 0:
            self.history.broken("main sessions are not archived by themselves", session["key"])
        limits = self.history.cluster.setup.limits
        delay = archive_delay(limits.archive_after_minutes, session["cleanup"], minute=limits.archive_minute)
        now = self.history.cluster.world.clock.wall()
        if delay is None or now < session["ended"] + delay - _EARLY:
            self.history.broken("archived when its time has come", f"{session['key']} at {now}, {session}")

    def unarchived(self, in_memory: set[str]) -> list[str]:
        """Ended sessions that nobody waits for and whose time was set."""
        return [
            f"{key} has ended and is not archived"
            for key, session in self._sessions.items()
            if session["archive_at"] is not None and session["state"] == "ended" and key not in in_memory
        ]
