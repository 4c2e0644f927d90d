"""Cleaning a session up by hand: delete and reset (SPEC.md G3).

1. Who asks has stopped the session and all below it, and says which one was seen: its id and its revision, the number
   of its activations. One that has been activated or made anew since is another one: nothing is done.
2. Refused before anything is cleared: a client's root; deleting a main session; and while something of it, or below it,
   has not ended. Below it is also what others have spawned on its behalf.
3. **delete** archives it (`archiving.bury`). The records of its runs, its children and their transcripts stay; the end
   of its own run is still told to whom it is owed.
4. **reset** archives its transcript, and gives it a new id and an empty state under the same key: depth, lineage and
   label stay.
5. Completions that its program was not given are for nobody any more: they are discarded, silently.
6. Asked again, either is as the first time.
"""

from __future__ import annotations

from openclaw_ray.core.keys import main_key
from openclaw_ray.core.lifecycle import SessionState
from openclaw_ray.core.protocol.archiving import bury, find_session, leave
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.session_asks import CleanupWord

__all__ = ["Cleanup", "CleanupWord", "runs_of"]


def runs_of(s: State, key: str) -> list[Run]:
    """The runs in memory that a stop of the session begins with: its own, and those that others have spawned for it."""
    own = [run for run in s.runs.values() if run.session == key]
    mine = {run.id for run in own}
    for_it = (run for run in s.runs.values() if run.requester == key and run.parent not in mine)
    return [*own, *(run for run in for_it if not run.terminal or run.live_below)]


class Cleanup:
    """Deletions and resets."""

    def __init__(self, state: State, ending: Ending) -> None:
        self.s = state
        self.ending = ending

    def delete(self, key: str, session_id: str, revision: int) -> CleanupWord:
        """Delete the session that was seen (3)."""
        s = self.s
        session = find_session(s, key)
        if session is None:
            return CleanupWord.UNKNOWN
        if key == main_key(session.agent):
            return CleanupWord.MAIN
        gone = session.state == SessionState.ARCHIVED and session.session_id == session_id
        refusal = None if gone else self._refusal(session, session_id, revision)
        if gone or refusal is not None:
            return refusal or CleanupWord.DONE
        bury(s, session, "deleted")
        self.silence(session)
        if any(run.session == key for run in s.runs.values()):
            s.touch(session)  # somebody is still to hear of its end; it leaves memory with its last run
        else:
            s.retire(session)
        return CleanupWord.DONE

    def reset(self, key: str, session_id: str, revision: int, new_id: str) -> CleanupWord:
        """Begin the session that was seen anew, under ``new_id`` (4)."""
        s = self.s
        session = find_session(s, key)
        if session is None:
            return CleanupWord.UNKNOWN
        if session.session_id == new_id:
            return CleanupWord.DONE
        if session.state == SessionState.ARCHIVED:
            return CleanupWord.ARCHIVED
        refusal = self._refusal(session, session_id, revision)
        if refusal is not None:
            return refusal
        s.archive(session)
        session.session_id = new_id
        session.number += 1
        session.revision += 1
        session.state_json = None
        session.host_rows = 0
        if session.state == SessionState.ENDED:
            session.ended = s.clock.wall()
        s.event(
            "session",
            session_key=key,
            agent_id=session.agent,
            requester_key=session.requester or None,
            root_key=session.root,
            depth=session.depth,
            label=session.label,
            state=session.state,
            reason="reset",
        )
        self.silence(session)
        if key in s.sessions:
            s.touch(session)
        else:
            leave(s, session)  # it has ended, and is archived as any other
        return CleanupWord.DONE

    def _refusal(self, session: Session, session_id: str, revision: int) -> CleanupWord | None:
        """What speaks against clearing it (1, 2)."""
        if session.client:
            return CleanupWord.ROOT
        if (session.session_id, session.number) != (session_id, revision):
            return CleanupWord.CHANGED
        if self._unended(session.key):
            return CleanupWord.BUSY
        return None

    def _unended(self, key: str) -> bool:
        return any(not run.terminal or run.live_below for run in runs_of(self.s, key))

    def silence(self, session: Session) -> None:
        """Discard the completions and news that are pending for its program (5)."""
        self.ending.birth.talks.silence(session)
        for run_id in list(session.pending):
            run = self.s.runs.get(run_id)
            if run is not None:
                self.ending.forget_delivery(run)
