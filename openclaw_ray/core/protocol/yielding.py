"""Yielding: what a turn that ends by a yield waits for, and what its run's next turn is (SPEC.md B3, PROTOCOL.md 5.4).

1. **freeze**: a turn that yields leaves a batch behind: the children that it has spawned itself and of whose ends its
   program is to be told and was not. Nobody is added to it: not what is spawned on the session's behalf later, not
   children of earlier turns, not those of whose end nobody is told.
2. When all of the batch have ended there is one wake, in the step of the last end, with every outcome in it; children
   that had ended before the yield wake at once. A stopped one is in it, as cancelled.
3. A run has one batch at a time. A turn that comes in between, for a message, is not given ends of that batch: they are
   kept for the wake. If that turn returns, the wake is still owed; if it yields over children of its own, what is left
   of the batch goes into the new one, of the next generation, and there is one wake for both.
4. Ends of other children go with whatever turn comes next, as ever (PROTOCOL.md 5.1): nothing is told twice.
5. ``waitFor: "message"``, in a sub-agent: the run is paused, without slot and process, until a message comes to its
   session. Then a turn of kind ``message`` of this same run is started: its id, deadline, recipient stay. Messages that
   come before that turn starts go with it, in order.
6. Waiting for a message with a batch pending: the first of the two ends the wait. The wake does not ask for the
   message any more, as its program may yield again; a message's turn leaves the batch armed (3). Where both have come
   before the turn could start, it is one turn, of kind ``message``, with all of it.
7. Who waits for a message and has been told one is not told by the next turn of something else: a message counts from
   the step that accepts it, over a crash and a restart too.
"""

from __future__ import annotations

from dataclasses import replace

from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.core.protocol.batch import MESSAGE, Waits
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State

__all__ = ["armed", "awaits_message", "complete", "freeze", "given", "in_batch", "renamed", "started"]

def freeze(s: State, run: Run, session: Session, *, yielded: bool, waits_for: str = "") -> None:
    """A turn has ended: note what its run waits for from now on (1, 3, 5)."""
    before = run.waits
    message = yielded and waits_for == MESSAGE and session.depth > 0
    if not yielded:
        if before is not None:
            run.waits = replace(before, message=False, told=())
        return
    left = before.batch if before is not None and before.armed else ()
    own = [child for child in run.children if s.runs[child].born_turn == run.turns]
    batch = tuple(child for child in (*left, *own) if _to_be_told(s, session, child))
    generation = 1 if before is None else before.generation + 1
    run.waits = Waits(batch, generation, bool(batch), message)


def _to_be_told(s: State, session: Session, child_id: str) -> bool:
    """Whether the program is still to be told of this child's end."""
    child = s.runs.get(child_id)
    if child is None or child.route != "spawn":
        return False
    return child_id in session.pending if child.terminal else child.expects


def armed(run: Run) -> bool:
    """Whether a wake is owed."""
    return run.waits is not None and run.waits.armed


def in_batch(run: Run, child_id: str) -> bool:
    """Whether the wake that is owed will tell of this child."""
    return run.waits is not None and run.waits.armed and child_id in run.waits.batch


def complete(s: State, run: Run) -> bool:
    """Whether nobody of the batch is open any more (2)."""
    assert run.waits is not None
    return all(s.runs[child].terminal for child in run.waits.batch if child in s.runs)


def awaits_message(run: Run) -> bool:
    """Whether a message is what it waits for, and none has come."""
    return run.waits is not None and run.waits.message and not run.waits.told


def given(s: State, run: Run, session: Session) -> tuple[str, ...]:
    """What of the pending completions goes into the run's next start: all, but for those of a batch whose wake this is
    not (3)."""
    waits = run.waits
    if waits is None or not waits.armed or complete(s, run):
        return tuple(session.pending)
    kept = set(waits.batch)
    return tuple(child for child in session.pending if child not in kept)


def started(s: State, run: Run) -> None:
    """A turn is granted: what it was waited for is over (2, 6)."""
    waits = run.waits
    if waits is None:
        return
    if waits.told and run.kind == RunKind.WAKE:
        run.kind = RunKind.MESSAGE
    run.waits = replace(waits, message=False, armed=waits.armed and not complete(s, run))


def renamed(run: Run, old: str, new: str) -> None:
    """The run of a child in the batch was replaced by another one."""
    waits = run.waits
    if waits is not None and old in waits.batch:
        run.waits = replace(waits, batch=tuple(new if child == old else child for child in waits.batch))
