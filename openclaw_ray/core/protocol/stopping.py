"""Stop: one durable mark, then down from the registry; complete when every run under it is terminal (PROTOCOL.md 6).

1. The mark is a journal number on the top run(s) of the subtree. Admission and start walk the ancestors, so nothing
   below is born or started; a later run of the same session key is not bound.
2. What has no process ends at once. What has one is told by ``stop`` with the mark's number; parents tell their
   children too, down the handles they hold, in parallel.
3. After the grace the process is asked to end itself if it still runs that run, then killed by the pool.
4. A stop may be of less: without the messages in line behind the session's run, or of that run alone. The latter is a
   mark with a negative number, which binds nothing below; the run's children go on, as after a timeout.
5. A session stops only what it controls (`openclaw_ray.core.protocol.control`).
6. The terminal states are written by the registry; the report counts from the journal. Ended middle runs are passed
   through.
"""

from __future__ import annotations

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.cleanup import runs_of
from openclaw_ray.core.protocol.control import controls
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Stop, StopAsk, Verdict
from openclaw_ray.core.protocol.records import Mark, Run
from openclaw_ray.core.protocol.restart import successor
from openclaw_ray.core.protocol.state import State

__all__ = ["Stopping"]


class Stopping:
    """Marks and their execution."""

    def __init__(self, state: State, down: Down, ending: Ending) -> None:
        self.s = state
        self.down = down
        self.ending = ending

    def asked(self, client: str, event: StopAsk) -> Verdict:
        """Write the mark and begin (1, 2). A repeat of the same stop id changes nothing."""
        s = self.s
        known = next((m for m in s.marks.values() if m.stop == event.stop), None)
        if known is not None:
            return Verdict(event.stop, "marked", mark=_number(known))
        tops = self._tops(event)
        if event.by and not all(self._may_stop(run, event.by) for run in tops):
            return Verdict(event.stop, "refused")
        key = event.key or (tops[0].session if tops else event.run)
        talks = not event.by or bool(tops) or controls(s, event.by, key)
        mark = self.mark(client, event.stop, key, tops, "stopped", alone=event.scope == "run", talks=talks)
        return Verdict(event.stop, "marked", mark=_number(mark))

    def _tops(self, event: StopAsk) -> list[Run]:
        """The runs that the mark goes on: one run, or all of a session's that live or have something living below."""
        s = self.s
        if event.run:
            run = successor(s, event.run)
            return [run] if run is not None and run.id in s.runs else []
        tops = runs_of(s, event.key)
        session = s.sessions.get(event.key)
        if session is None or event.scope == "tree":
            return tops
        if event.scope == "run":
            return [run for run in tops if run.id == session.run and run.route != "driver"]
        return [run for run in tops if run.id not in session.waiting]

    def _may_stop(self, run: Run, by: str) -> bool:
        return controls(self.s, by, run.session)

    def mark(
        self,
        client: str,
        stop: str,
        key: str,
        tops: list[Run],
        reason: str,
        *,
        alone: bool = False,
        talks: bool = True,
    ) -> Mark:
        """Stop the subtrees of ``tops``, or them ``alone``, and the ``talks`` that their sessions take part in, with
        what they have asked for and that is still being bound to a conversation."""
        s = self.s
        mark = Mark(s.next_seq(), stop, key, client, reason, alone=alone)
        s.marks[mark.seq] = mark
        under: list[Run] = []
        before: list[tuple[str, str, str]] = []
        for top in tops:
            driver = top.route == "driver"
            mark.finished += (0 if alone else top.ended_below) + (1 if top.terminal and not driver else 0)
            if not alone or top.mark <= 0:  # a stop of less does not undo one of all
                top.mark, top.mark_reason = _number(mark), reason
            s.touch(top)
            for run_id in (top.id,) if alone else lineage.subtree(s.runs, top.id):
                run = s.runs[run_id]
                if run.terminal and run.route != "driver":
                    before.append((run.session, run.id, "finished"))
                elif run.route != "driver":
                    under.append(run)
        # what is still in memory has a row; of the others there is the count
        mark.rows, mark.finished = tuple(before), max(0, mark.finished - len(before))
        mark.kept = reason == "stopped" and any(run.route == "ask" for run in under)
        mark.open = {run.id for run in under}
        mark.runs = tuple(mark.open)
        s.touch(mark)
        if (s.exchanges or s.threads) and talks and not alone:
            keys = {key, *(run.session for run in under)}
            self.ending.birth.talks.stopped(keys)
            self.ending.birth.threads.stopped(keys | {top.session for top in tops})
        for run in under:
            self._stop(run, mark)
        if not mark.open and not mark.done:
            self.ending.complete(mark)
        return mark

    def _stop(self, run: Run, mark: Mark) -> None:
        s = self.s
        if run.terminal:
            return
        if not run.in_turn:
            run.outcome = self.ending.ended_by(run, RunState.CANCELLED)
            self.ending.finish(run, RunState.CANCELLED)
            return
        s.queue.remove(run.id)
        run.resuming = False
        s.effect(Stop(run.actor, run.id, run.activation, "stopped", _number(mark)))
        if run.grace_at is None and run.kill_at is None:
            run.grace_at = s.clock.mono() + s.limits.stop_grace_seconds
            s.at(run.grace_at, run)
        s.touch(run)


def _number(mark: Mark) -> int:
    """The mark's number as runs carry it and as it travels (4)."""
    return -mark.seq if mark.alone else mark.seq
