"""Archiving: an ended session's transcript is renamed, its record is kept as archived (SPEC.md H6).

1. A session leaves memory when nothing of it or below it is un-ended and nobody is still to hear of its end. In that
   transaction its time is written into its record and into the table of what is due; with ``cleanup: "delete"`` it is
   archived at once instead. What has its time keeps it, whatever the configuration says later.
2. `Archiving.sweep` reads what is due, a few at a time, in the order of its times: a look costs by what is due, after a
   restart, too. It goes off the table in the transaction that archives it: what fails is due again.
3. What is at work again, was deleted, reset or made anew meanwhile is passed over: it got a new time when it left
   memory, or needs none.
4. A session whose process died may have completions pending that nobody takes, and stays in memory for them: it gets
   its time when the first of them comes, and they are discarded when it is archived; not before its own end was heard
   of and all below it is over, which is looked at again after another such time.
5. A run that was lost has its time there, too: that of its record's end (`retention`).
6. The order to rename goes to the hub in line with the rows, so that those of before are in the file; it is journaled
   until the hub has acknowledged it, as they are.
7. A session that is a conversation has no such time while it is bound; it gets it when the binding ends (`threads`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

from openclaw_ray.core.archive_rules import archive_delay
from openclaw_ray.core.ledger import LOST_KEPT
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.thread_rules import ThreadEnd

__all__ = ["BACKLOG_EVERY", "SWEEP", "Archiving", "bury", "find_session", "leave", "plan_forgetting", "strand"]

SWEEP = 32
"""Most sessions that one look archives: no step waits for longer than that takes."""
BACKLOG_EVERY = 0.05
"""Seconds between two looks while more is due than one of them takes."""
_BY_TIME = "archiveAfterMinutes"
_NUMBERS = 1 << 20
"""A time in milliseconds, times this, plus a number of the journal below it, is a key of what is due."""


def find_session(s: State, key: str) -> Session | None:
    """A session from memory or from the journal."""
    return s.journaled_session(key)


def leave(s: State, session: Session) -> None:
    """A session leaves memory (1)."""
    if session.state == SessionState.ENDED and session.depth > 0:
        delay = _delay(s, session)
        if any(thread.session == session.key and thread.keeps for thread in s.threads.values()):
            delay = None  # (7)
        if delay == 0.0:
            bury(s, session, "cleanup")
        elif delay is not None:
            _plan(s, session, (session.ended or s.clock.wall()) + delay)
    s.retire(session)


def strand(s: State, session: Session) -> None:
    """A completion is pending for a session that has ended (4)."""
    now = s.clock.wall()
    if session.depth == 0 or (session.archive_at or 0.0) > now:
        return
    delay = _delay(s, session)
    if delay is not None:
        _plan(s, session, now + max(delay, s.limits.archive_minute))
        s.touch(session)


def _delay(s: State, session: Session) -> float | None:
    return archive_delay(s.limits.archive_after_minutes, session.cleanup, minute=s.limits.archive_minute)


def bury(s: State, session: Session, why: str) -> None:
    """Archive a session: its record, an event, and the order to rename (6). The caller writes the record."""
    session.state = SessionState.ARCHIVED.value
    session.ended = session.ended or s.clock.wall()
    for thread in s.threads.values():
        if thread.session == session.key and thread.bound and session.depth > 0:
            thread.close(ThreadEnd.DELETED)
            s.touch(thread)
            s.thread_news[thread.id] = None
    s.archive(session, keeps_files=why == _BY_TIME and session.cleanup == "keep" and _retains(s))
    s.event(
        "session",
        session_key=session.key,
        agent_id=session.agent,
        requester_key=session.requester or None,
        root_key=session.root,
        depth=session.depth,
        label=session.label,
        state=session.state,
        reason=why,
    )


def _retains(s: State) -> bool:
    """Whether the attachments of kept sessions outlive them (SPEC.md C, stage 4)."""
    return s.limits.attachments is not None and s.limits.attachments.retain


def _plan(s: State, session: Session, at: float) -> None:
    session.archive_at = _due_at(s, at, (session.key, session.session_id))


def plan_forgetting(s: State, run: Run) -> None:
    """The record of a lost run goes in a day (5)."""
    _due_at(s, s.clock.wall() + LOST_KEPT, ("", run.id))


def _due_at(s: State, at: float, what: tuple[str, str]) -> float:
    number = int(at * 1000) * _NUMBERS + s.next_seq() % _NUMBERS
    time = _time_of(number)
    s.plan(number, pickle.dumps(what, protocol=5))
    s.next_archive = min(time, s.next_archive or time)
    return time


def _time_of(number: int) -> float:
    return number // _NUMBERS / 1000


class Archiving:
    """The sweeper.

    Args:
        silence: gives up what is pending for a session.
        forget: drops the record of a lost run, if its time is over.
    """

    def __init__(
        self, state: State, silence: Callable[[Session], None], forget: Callable[[str], object]
    ) -> None:
        self.s = state
        self._silence = silence
        self._forget = forget
        self._look_from(state.journal.after("due", 0, limit=1))

    def _look_from(self, left: list[tuple[int, bytes]]) -> None:
        self.s.next_archive = _time_of(left[0][0]) if left else None

    def sweep(self) -> None:
        """Archive what is due now (2), before anything else of its transaction."""
        s = self.s
        now = s.clock.wall()
        if s.next_archive is None or now < s.next_archive:
            return
        found = s.journal.after("due", 0, limit=SWEEP + 1)
        due = [(number, data) for number, data in found[:SWEEP] if _time_of(number) <= now]
        self._look_from(found[len(due) :])  # before what follows plans anew
        for number, data in due:
            self._due(number, *pickle.loads(data))

    def _due(self, number: int, key: str, session_id: str) -> None:
        s = self.s
        s.drop("due", number)
        if not key:
            self._forget(session_id)
            return
        session = find_session(s, key)
        if session is None or not self._still(session, session_id, number):
            return
        if key not in s.sessions:
            bury(s, session, _BY_TIME)
            s.retire(session)
        elif session.pending and self._over(key):
            bury(s, session, _BY_TIME)
            s.touch(session)
            self._silence(session)  # it leaves memory with the last of them
        elif session.pending:
            strand(s, session)

    def _over(self, key: str) -> bool:
        """Whether all that a session in memory did is over and heard of (4)."""
        own = [run for run in self.s.runs.values() if run.session == key]
        return all(run.terminal and not run.live_below and not run.deliver_to for run in own)

    def _still(self, session: Session, session_id: str, number: int) -> bool:
        """Whether it is the ended session that was planned then (3)."""
        return (
            session.session_id == session_id
            and session.state == SessionState.ENDED
            and session.archive_at == _time_of(number)
        )

    def next_look(self, now: float, latest: float) -> float:
        """When to look again, on the monotonic clock of ``now``; ``latest`` unless more is due already."""
        due = self.s.next_archive
        return min(latest, now + BACKLOG_EVERY) if due is not None and due <= self.s.clock.wall() else latest
