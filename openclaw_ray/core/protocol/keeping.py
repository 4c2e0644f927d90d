"""What is kept after a turn, and for how long: the actor for its class, large values, runs in memory (PROTOCOL.md 4.3).

1. A value over 64 KB stays in the child until its requester has taken it; its actor is not free until then. When the
   requester has no process, the pool takes it.
2. An actor that holds nothing any more is idle for its class, or ended if it must not be used again.
3. A run leaves memory when it is terminal, nothing lives below it, and nobody is to hear of it any more. A session goes
   with it if that was all it was for; one that a client has opened, while nothing is said: however many users there
   are, memory has those who talk. An agent's main session stays.
"""

from __future__ import annotations

from openclaw_ray.core.own_keys import is_opened
from openclaw_ray.core.placement import amounts
from openclaw_ray.core.protocol.archiving import leave
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import DropValue, HoldValue
from openclaw_ray.core.protocol.records import Actor, Run, Session
from openclaw_ray.core.protocol.state import State

__all__ = ["Keeping"]


class Keeping:
    """Values, free actors, and what may be forgotten."""

    def __init__(self, state: State, down: Down, birth: Birth) -> None:
        self.s = state
        self.down = down
        self.birth = birth

    # ------------------------------------------------------------------ actors

    def holds(self, run: Run) -> bool:
        """Whether its large value is in the process of its newest turn, which so is not free (PROTOCOL.md 4.3)."""
        return bool(run.held_by) and run.held_by == run.ran_on

    def free(self, actor: Actor) -> None:
        """An actor that holds nothing any more: idle, or ended if it must not be used again."""
        s = self.s
        if actor.state == "dying":
            return
        if actor.kill_why or amounts(actor.resources) or s.limits.pool_reuse == "never":
            self.birth.retire_actor(actor, actor.kill_why or "used once")
            return
        actor.state = "idle"
        actor.idle_at = s.clock.mono()
        actor.activation = ""

    # ------------------------------------------------------------------ values

    def took(self, run_id: str) -> None:
        """The requester has the large value: the actor that held it is free (PROTOCOL.md 4.3)."""
        run = self.s.runs.get(run_id)
        if run is not None:
            self.drop_value(run)
            self.s.touch(run)
            self.retire_if_done(run)

    def value_held(self, run_id: str, taken_from: str = "") -> None:
        """The pool has taken it from the actor ``taken_from``; a value of an earlier turn does not count."""
        run = self.s.runs.get(run_id)
        if run is None or not run.held_by:
            self.s.effect(DropValue(run_id))
            return
        if run.parking != run.held_by or taken_from not in ("", run.held_by):
            return
        actor = self.s.actors.get(run.held_by)
        run.held_by = "pool"
        self.s.touch(run)
        self._free_if_empty(actor)

    def park_value(self, run: Run) -> None:
        """Nobody is there to take it now: the pool does, so that it does not keep an actor from the runs that wait."""
        if run.held_by and run.held_by != "pool":
            run.parking = run.held_by
            self.s.effect(HoldValue(run.held_by, run.id))

    def drop_value(self, run: Run) -> None:
        """Nobody will ask for it any more."""
        if not run.held_by:
            return
        # the pool may have it without a word of that having come here
        self.s.effect(DropValue(run.id))
        actor = self.s.actors.get(run.held_by)
        run.held_by = ""
        self._free_if_empty(actor)

    def _free_if_empty(self, actor: Actor | None) -> None:
        """The last value has left the process of a turn that is over."""
        if actor is None or actor.state != "releasing":
            return
        if not any(run.held_by == actor.id for run in self.s.runs.values()):
            actor.keeps = False
            self.free(actor)
            self.s.touch(actor)

    # ------------------------------------------------------------------ forgetting

    def retire_if_done(self, run: Run) -> None:
        """Let a run leave memory (5), and its session with it if that was all it was for."""
        s = self.s
        if (
            run.id not in s.runs
            or not run.terminal
            or run.live_below
            or run.deliver_to
            or run.held_by
            or run.children  # what is below may still be handed up past this run
            or any(run.id in m.open for m in s.marks.values())
        ):
            return
        parent = s.runs.get(run.parent)
        if parent is not None:
            parent.children.pop(run.id, None)
        s.retire(run)
        session = s.sessions.get(run.session)
        if session is not None and self._is_over(session):
            if session.key in s.news:
                self.birth.talks.silence(session)  # it has no further turn to hear it with
            leave(s, session)
        if parent is not None and parent.terminal:
            self.retire_if_done(parent)

    def _is_over(self, session: Session) -> bool:
        """Whether a session that is there for one task has done it; one that was activated again has runs before that,
        whose ends may still be to be heard of."""
        if session.run or session.pending:
            return False
        if session.depth == 0 and not session.client:
            return self._rests(session)
        return not (session.revivals and any(run.session == session.key for run in self.s.runs.values()))

    def _rests(self, session: Session) -> bool:
        """Whether a session that nobody spawned is one that a client has opened, and nothing is under way with it."""
        s, key = self.s, session.key
        if session.active or key in s.news or not is_opened(key):
            return False
        talks = any(key in (x.requester, x.target) for x in s.exchanges.values())
        return not talks and not any(run.session == key for run in s.runs.values())
