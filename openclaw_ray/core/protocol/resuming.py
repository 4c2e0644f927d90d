"""What a new start of a runtime makes of the runs that its last one left un-ended (DESIGN.md 10; SPEC.md H5).

1. **hold**, in the transaction that opens the boot, if recovery is asked for: every un-ended run that hangs under no
   client's root leaves its actor, its slot and the queue, and is held: nothing starts or ends it but its deadline,
   which goes by the wall clock now. A message that a client had sent to a top-level session becomes that session's own.
   What hangs under a client's root is not held: its client is gone, and it ends ``cancelled``.
2. **recover**, once the agents are registered: each held run, the oldest first, is let go with one word. It is
   idempotent: a registry that dies in between finds the rest held still.
3. One that had not begun waits in line again. One whose children it had ended its turn for goes on when these have
   settled. One that was in a turn is never begun again: if its agent is ``resumable``, the policy is ``resume``, and it
   is not stale, it gets a further turn of kind ``resume``, with one synthetic message; else it ends ``failed``, cause
   ``interrupted``, and its requester hears of it as of any other end.
4. A resume counts when its turn is granted; until then the run is in a turn that was interrupted, also for the next
   start. More than two within two minutes are a loop: the session gets a tombstone, the run ends, and no later start
   resumes that session until `clear_tombstones`.
5. Without recovery nothing of before goes on: what is un-ended and had no client ends ``lost``.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from openclaw_ray.core import lineage
from openclaw_ray.core.delivery_faults import DeliveryFault
from openclaw_ray.core.lifecycle import Cause, PauseReason, RunKind, RunState
from openclaw_ray.core.limits import Recovery
from openclaw_ray.core.liveness import RecoveryAction, is_stale, recovery_action
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.messages import Outcome
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.recovery import relate
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.yielding import armed
from openclaw_ray.core.results import ErrorInfo

__all__ = ["Held", "Resuming"]

_DOWN = "the runtime went down in the middle of it"


class Held(StrEnum):
    """Where a run stood when the runtime went down."""

    QUEUED = "queued"
    """It had not begun."""
    CHILDREN = "children"
    """Its turn had ended, its children had not."""
    TURN = "turn"
    """In the middle of a turn."""


class Resuming:
    """Holding, and letting go."""

    def __init__(self, state: State, ending: Ending) -> None:
        self.s = state
        self.ending = ending

    # ------------------------------------------------------------------ hold

    def hold(self) -> None:
        """Take what may go on out of everything that would start or end it (1)."""
        held = [run for run in self.s.runs.values() if self._may_go_on(run)]
        for run in held:
            parent = self.s.runs.get(run.parent)
            if parent is not None and parent.route == "driver":
                run.parent = ""
        relate(self.s)
        for run in held:
            self._hold(run)

    def _may_go_on(self, run: Run) -> bool:
        root = self.s.sessions.get(run.root)
        of_a_client = root is None or bool(root.client)
        return not (run.terminal or run.route == "driver" or of_a_client or lineage.bound_by_mark(self.s.runs, run))

    def _hold(self, run: Run) -> None:
        s = self.s
        if run.interrupted != Held.TURN:
            run.interrupted = self._stood(run).value
        s.queue.remove(run.id)
        self.ending.release_slot(run)
        if run.actor:
            self.ending.leave_actor(run, None, keep=False)
        if run.interrupted == Held.TURN:
            run.state, run.pause = RunState.QUEUED, None
        run.resuming, run.given = False, ()
        if run.timeout > 0 and run.started is not None:
            run.deadline = s.clock.mono() + (run.started + run.timeout - s.clock.wall())
            s.at(run.deadline, run)
        s.touch(run)

    def _stood(self, run: Run) -> Held:
        if run.in_turn or (run.state is RunState.QUEUED and run.kind == RunKind.RESUME):
            return Held.TURN
        return Held.CHILDREN if run.turns > 0 else Held.QUEUED

    def end_the_rest(self) -> None:
        """Nothing of before goes on (5)."""
        for run in list(self.s.runs.values()):
            if not run.terminal and run.route != "driver":
                text = "the runtime was started anew, and not told to recover; whether it did anything is not known"
                self._end(run, RunState.LOST, text)

    # ------------------------------------------------------------------ recover

    def recover(self) -> dict[str, int]:
        """Let go of all that is held (2); how many were ``resumed``, ``requeued``, left ``waiting`` for children,
        ``interrupted`` for good, or ended with a ``tombstone``."""
        words: Counter[str] = Counter()
        for run in sorted((r for r in self.s.runs.values() if r.interrupted), key=lambda r: r.seq):
            if not run.terminal:
                words[self._decide(run)] += 1
        self._fail_deaf()
        return dict(words)

    def _fail_deaf(self) -> None:
        """What is pending for a session whose agent this start has not registered: nobody will hear it."""
        for session in list(self.s.sessions.values()):
            if session.pending and not session.client and session.agent not in self.s.agents:
                self.ending.fail_pending(session, DeliveryFault.NO_AGENT)

    def _decide(self, run: Run) -> str:
        s = self.s
        if run.deadline is not None and run.deadline <= s.clock.mono():
            run.expired = True
            run.interrupted = ""
            run.outcome = self.ending.ended_by(run, RunState.TIMED_OUT)
            self.ending.finish(run, RunState.TIMED_OUT)
            return "interrupted"
        entry = s.agents.get(run.agent)
        if entry is None:
            return self._interrupt(run, f"agent {run.agent!r} is not registered any more")
        run.klass = s.reuse_class(entry, run.root, run.id)
        spawns = entry.spawns and run.depth < s.depth_cap
        run.reserve_depth = run.depth if spawns else s.depth_cap
        match Held(run.interrupted):
            case Held.QUEUED:
                return self._in_line_again(run)
            case Held.CHILDREN:
                self._let_go(run)
                if run.state is RunState.QUEUED:  # its follow-up turn was due
                    run.state = RunState.PAUSED
                    run.yielded = run.kind == RunKind.WAKE or armed(run)
                    run.pause = PauseReason.YIELDED if run.yielded else PauseReason.CHILDREN
                self.ending.maybe_go_on(run)
                return "waiting"
            case Held.TURN:
                return self._resume(run, entry, s.sessions[run.session])

    def _in_line_again(self, run: Run) -> str:
        if run.input is not None and run.input.data is None:
            size = run.input.size
            return self._interrupt(run, f"its input of {size} bytes was over 64 KB, and is gone with who gave it")
        if self._is_stale(run):
            return self._interrupt(run, "it had waited for more than two hours, and had not begun")
        self._let_go(run)
        if self.s.sessions[run.session].run == run.id:
            self.s.enqueue(run)
        return "requeued"

    def _resume(self, run: Run, entry: AgentEntry, session: Session) -> str:
        s = self.s
        if s.limits.recovery is Recovery.FINALIZE:
            return self._interrupt(run, f"{_DOWN} (ray.recovery is finalize)")
        if not entry.resumable:
            return self._interrupt(run, f"{_DOWN}, and agent {entry.id!r} is not resumable")
        if session.wedged_at is not None:
            return self._interrupt(run, f"its session is not resumed any more: {session.wedged_reason}")
        now = s.clock.wall()
        ago = [round((now - at) * 1000) for at in session.resumes]
        match recovery_action(interrupted=True, stale=self._is_stale(run), accepted_ago=ago):
            case RecoveryAction.RESUME:
                run.kind = RunKind.RESUME
                self._let_go(run)
                if session.run == run.id:
                    s.enqueue(run)
                return "resumed"
            case RecoveryAction.TOMBSTONE:
                session.wedged_at = now
                session.wedged_reason = f"{len(ago)} resumes within two minutes, and it was interrupted again"
                s.touch(session)
                self._interrupt(run, f"it is not resumed any more: {session.wedged_reason}")
                return "tombstone"
            case _:
                return self._interrupt(run, f"{_DOWN}, long ago")

    def _is_stale(self, run: Run) -> bool:
        started = None if run.started is None else round(run.started * 1000)
        now = round(self.s.clock.wall() * 1000)
        return is_stale(round(run.created * 1000), started, round(run.timeout * 1000), now)

    def _let_go(self, run: Run) -> None:
        run.interrupted = ""
        self.s.touch(run)
        self.s.event("run", run, reason="recovered")

    def _interrupt(self, run: Run, why: str) -> str:
        text = why if run.turns == 0 else f"{why}; what it had done by then is done: check it before you do it again"
        self._end(run, RunState.FAILED, text)
        return "interrupted"

    def _end(self, run: Run, state: RunState, text: str) -> None:
        run.outcome = Outcome(state, error=ErrorInfo("Interrupted", text, cause=Cause.INTERRUPTED.value))
        run.interrupted = ""
        self.ending.finish(run, state)

    # ------------------------------------------------------------------ tombstones

    def clear_tombstones(self, key: str = "") -> tuple[str, ...]:
        """Have sessions, or the one of ``key``, resumed again from the next start on; the keys of those that were not
        to be (4)."""
        cleared = []
        for session in self.s.sessions.values():
            if session.wedged_at is not None and key in ("", session.key):
                session.wedged_at, session.wedged_reason, session.resumes = None, None, ()
                self.s.touch(session)
                cleared.append(session.key)
        return tuple(cleared)
