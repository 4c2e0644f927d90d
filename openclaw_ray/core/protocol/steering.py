"""Steering: a child is interrupted and begins anew with a message, in its session, as another run (SPEC.md B4, G4).

1. Refused before anything is changed, in this order: the turn that asks is over or stopped; there is no such run; it is
   the asking session itself, or not below it (``forbidden``); it has ended (``done``); it is being stopped; it is an
   item of a map, whose place in the results is its own; its last steer by the same session is less than two seconds
   ago (``rate_limited``).
2. Check and reserve in one step. The new run has the old one's session, requester, parent, lane, timeout, label, input,
   creation time and cleanup; its id and journal number are new, its generation is one higher. Its time limit counts
   from its own first start. It is idempotent by its id.
3. The old one ends ``cancelled`` by a mark of its own, which binds it alone: cancelled, then, after the grace, ended
   with its process. It is not announced. The new one is next in the session's line, so it starts in the step in which
   the old one ends. What else waited in that line is cleared, as are messages that the old one had not been given.
4. What the old one had spawned goes on, and is the new one's: ends that no program was given go with its start, and a
   wake that was owed is owed to it.
5. A turn of kind ``message`` begins it. One that had had no turn yet is begun with its task and the message below it.
6. Who waits for the old run waits for the new one: its place in a parent's frozen batch is the new one's, its
   completion names the runs that it stands for, and what is asked about an old id (its end, a stop) is about the
   newest. Steered again, the row goes on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from openclaw_ray.core import lineage
from openclaw_ray.core.lifecycle import DeliveryState, RunKind
from openclaw_ray.core.protocol import yielding
from openclaw_ray.core.protocol.batch import Waits
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.control import Kinship, kinship, run_named
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.restart import Restart, generation, replaces
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.stopping import Stopping
from openclaw_ray.core.results import Receipt

__all__ = ["STEER", "STEER_EVERY", "STEER_LIMIT", "Steering"]

STEER: Final = "steer"
"""Route of an `Admit` that asks for it."""
STEER_EVERY: Final = 2.0
"""Seconds between two steers of a child by one session."""
STEER_LIMIT: Final = 4_000
"""Characters of a message."""
_KIN = {
    Kinship.ITSELF: "that is this session itself",
    Kinship.ABOVE: "that is the session that this one works for",
    Kinship.OTHER: "it is not below this session",
}


class Steering:
    """Interrupting and beginning anew."""

    def __init__(self, state: State, birth: Birth, stopping: Stopping) -> None:
        self.s = state
        self.birth = birth
        self.stopping = stopping
        self._steered: dict[tuple[str, str], float] = {}

    def asked(self, client: str, admit: Admit) -> Receipt:
        """Check and reserve in one (2)."""
        s = self.s
        known = s.journaled_run(admit.run)
        if known is not None:
            return Receipt("accepted", known.id, known.session, known.agent)
        requester = s.sessions.get(admit.requester)
        if requester is None:
            return Receipt("error", error=f"session {admit.requester!r} is not known")
        asking = self.birth._parent(client, requester, admit)
        if isinstance(asking, Receipt):
            return asking
        if self.birth._stopping(asking, bool(requester.client)):
            return Receipt("error", error=f"{requester.key} is being stopped")
        old = self._meant(admit.steers)
        refusal = self._refusal(requester, old, admit)
        if refusal is not None or old is None:
            return refusal or Receipt("error", error=f"there is no run {admit.steers!r}")
        entry = s.agents.get(old.agent)
        if entry is None:
            return Receipt("error", error=f"agent {old.agent!r} is not registered any more")
        self._steered[requester.key, old.session] = s.clock.mono()
        new = self._replacement(old, s.sessions[old.session], entry, admit)
        return Receipt("accepted", new.id, new.session, new.agent)

    def _meant(self, name: str) -> Run | None:
        """The run of this id, or the one that goes on for it; of a session's key, its newest task."""
        tasks = [run for run in self.s.runs.values() if run.session == name and run.route == "spawn"]
        if tasks:
            return max(tasks, key=lambda run: run.seq)
        return run_named(self.s, name)

    # ------------------------------------------------------------------ check

    def _refusal(self, requester: Session, old: Run | None, admit: Admit) -> Receipt | None:
        """What speaks against it (1)."""
        s = self.s
        if old is None:
            return Receipt("error", error=f"there is no run {admit.steers!r}")
        operator = bool(requester.client)
        kin = Kinship.BELOW if operator else kinship(s, requester.key, old.session)
        if kin is not Kinship.BELOW:
            return Receipt("forbidden", error=f"steer {old.session}: {_KIN[kin]}; a session steers what is below it")
        if not admit.task.strip() or len(admit.task) > STEER_LIMIT:
            text = f"message: 1 to {STEER_LIMIT} characters, not {len(admit.task)}; write the rest to a file"
            return Receipt("error", error=text, limit="message", value=len(admit.task), maximum=STEER_LIMIT)
        if old.terminal:
            return Receipt("done", old.id, old.session, old.agent)
        if lineage.bound_by_mark(s.runs, old):
            return Receipt("error", error=f"{old.session} is being stopped")
        if old.route != "spawn":
            what = "an item of a map" if old.route == "map" else "the answer to a message"
            return Receipt("error", error=f"run {old.id} is {what}, which is not steered; stop it, and ask again")
        return self._too_soon(requester, old)

    def _too_soon(self, requester: Session, old: Run) -> Receipt | None:
        now = self.s.clock.mono()
        self._steered = {pair: at for pair, at in self._steered.items() if now - at < STEER_EVERY}
        last = self._steered.get((requester.key, old.session))
        if last is None:
            return None
        left = round(STEER_EVERY - (now - last), 3)
        text = f"{old.session} was steered {now - last:.1f} s ago: once in {STEER_EVERY:g} s at most; try in {left:g} s"
        return Receipt("rate_limited", error=text, limit=STEER, retry_after=left)

    # ------------------------------------------------------------------ reserve

    def _replacement(self, old: Run, session: Session, entry: AgentEntry, admit: Admit) -> Run:
        """The new run in the old one's place (2-6)."""
        s = self.s
        fresh = old.turns == 0
        spawns = entry.spawns and session.depth < s.depth_cap
        new = Run(
            admit.run,
            s.next_seq(),
            session.key,
            session.session_id,
            entry.id,
            old.route,
            old.requester,
            old.parent,
            old.root,
            old.depth,
            old.depth if spawns else s.depth_cap,
            f"{old.task}\n\n{admit.task}" if fresh else admit.task,
            old.created,
            old.lane,
            old.lane_width,
            s.reuse_class(entry, old.root, admit.run),
            timeout=old.timeout,
            expects=old.expects,
            label=old.label,
            task_name=old.task_name,
            input=old.input,
            transcripts=old.transcripts,
            client=old.client,
            kind=old.kind if fresh else RunKind.MESSAGE,
            deliver_to=old.deliver_to,
            delivery=old.delivery,
            born_turn=old.born_turn,
            restart=Restart(generation(old) + 1, (*replaces(old), old.id)),
            post=old.post,
            talk=None if old.talk is None else replace(old.talk, exchange="", news=()),
            senders=None if old.senders is None else replace(old.senders, turn=0),
        )
        s.runs[new.id] = new
        lineage.born(s.runs, new.id, new)
        requester = s.sessions.get(old.requester)
        if requester is not None:
            self.birth._reserve(requester)
            self.birth.names.took(requester, new)
        self._take_over(old, new)
        self._in_the_batch(old, new)
        cleared = [s.runs[run] for run in session.waiting if run != old.id]
        session.waiting.insert(0, new.id)
        session.aborted = False
        old.restart = Restart(generation(old), replaces(old), new.id)
        old.deliver_to, old.delivery = "", DeliveryState.NOT_REQUIRED
        for record in (old, new, session):
            s.touch(record)
        s.event("run", new, reason=f"steered: it goes on for {old.id}")
        self.stopping.mark("", f"steer:{new.id}", session.key, [old, *cleared], "steered", alone=True)
        return new

    def _take_over(self, old: Run, new: Run) -> None:
        """What it has spawned is below the new one from now on (4)."""
        s = self.s
        for child_id in old.children:
            child = s.runs[child_id]
            child.parent, child.born_turn = new.id, 0
            s.touch(child)
        new.children, old.children = old.children, {}
        new.unsettled, old.unsettled = old.unsettled, 0
        new.live_below, old.live_below = old.live_below, 0
        if yielding.armed(old) and old.waits is not None:
            new.waits = Waits(old.waits.batch, old.waits.generation, True)
            old.waits = None

    def _in_the_batch(self, old: Run, new: Run) -> None:
        """A parent that yielded waits for the new one (6)."""
        parent = self.s.runs.get(old.parent)
        if parent is not None and parent.waits is not None:
            yielding.renamed(parent, old.id, new.id)
            self.s.touch(parent)
