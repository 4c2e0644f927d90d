"""A registry over its real journal, with everything around it on paper: no Ray, no processes, no agents' code.

One client admits the items of a map; couriers of so many session actors settle each at once; what goes to the hub is
acknowledged as it comes. Only the registry's own step is timed, with its wire format and its commit.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from openclaw_ray.actors.wire import pack, unpack
from openclaw_ray.core.clock import SystemClock
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.messages import (
    Admit,
    Answer,
    Completed,
    Consumed,
    Effect,
    Grow,
    Hello,
    Join,
    Outcome,
    Row,
    Settled,
    Spec,
    Start,
)
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.store.sqlite_journal import SqliteJournal

__all__ = ["PaperRuntime"]

_AGENT, _CLIENT = "noop", "client"
_CHECKPOINT_EVERY = 500
"""Sessions after which the journal's log is moved into its file, as the registry's thread does each second."""


class _Trusting(Courier):
    """Nothing comes twice on paper, so nothing that came is remembered: what grows is to be the registry's alone."""

    def first_heard(self, run: str) -> bool:
        """Always."""
        return True


class PaperRuntime:
    """One registry and what talks with it.

    Attributes:
        steps: CPU seconds of each step, while it is a list; put one there to have them noted.

    Args:
        place: folder of the journal.
        width: sessions at once, each on an actor of its own.
    """

    def __init__(self, place: Path, width: int) -> None:
        self.clock = SystemClock()
        self.journal = SqliteJournal(place / "registry.sqlite")
        self.core = Registry(self.journal, RuntimeLimits(), self.clock, pool_max=width + 6, cpus=width)
        self.steps: list[float] | None = None
        self.width = width
        self.root = f"agent:{_AGENT}:driver:{_CLIENT}"
        self._ids = RandomIds()
        self._couriers: dict[str, Courier] = {}
        self._effects: deque[Effect] = deque()
        self._settled = 0
        self._asked = 0
        self._effects.extend(self.core.open_boot("paper"))
        entry = AgentEntry(_AGENT, "bundle", "here", "hash", False, False, False, AgentLimits(_AGENT))
        self._effects.extend(self.core.register([entry], "bundle", b""))
        self.client = self._couriers[_CLIENT] = _Trusting(_CLIENT, self.clock)
        self.client.post(Join(_CLIENT, self.root, _AGENT, leased=False))
        self._effects.extend(self.core.prewarm(width))
        self._step(self.client)
        self._play()

    @property
    def sessions(self) -> int:
        """Sessions that have ended and were heard of."""
        return self._settled

    def run(self, sessions: int) -> float:
        """Have that many more sessions come and go; gives the seconds of it, all of the paper included."""
        began, until = time.perf_counter(), self._settled + sessions
        while self._settled < until:
            while self._asked < until and self._asked - self._settled < 2 * self.width:
                self._admit()
            before = self._settled
            self._step(self.client)
            self._play()
            if self._settled // _CHECKPOINT_EVERY > before // _CHECKPOINT_EVERY:
                self.journal.checkpoint()
        return time.perf_counter() - began

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    # ------------------------------------------------------------------ inside

    def _admit(self) -> None:
        run, session = self._ids.run_id(), self._ids.session_id()
        key = f"agent:{_AGENT}:subagent:{session}"
        self.client.admit(
            Admit(
                run,
                key,
                session,
                "map",
                self.root,
                "x",
                agent_id=_AGENT,
                lane="map:paper",
                lane_width=self.width,
                index=self._asked,
            ),
            None,
        )
        self._asked += 1

    def _step(self, courier: Courier) -> None:
        """One step of a courier, if it has something to say; and what it is answered."""
        step = courier.next_step()
        if step is None:
            return
        packed = pack(step)
        began = time.thread_time()
        answer, effects = self.core.step(unpack(packed))
        lasted = time.thread_time() - began
        if self.steps is not None:
            self.steps.append(lasted)
        answer = unpack(pack(answer))
        self._effects.extend(effects)
        self._push()
        self._answered(courier, answer)

    def _answered(self, courier: Courier, answer: Answer) -> None:
        taken = courier.answered(answer)
        assert taken is not None, answer.word
        _, receipts, messages = taken
        refused = [receipt for _, receipt in receipts if not receipt.accepted]
        assert not refused, refused[0]
        self._hear(message for _, message in messages)
        if answer.start is not None:
            self._begin(courier, answer.start[1])

    def _push(self) -> None:
        """To the hub, which has it at once: messages for the client, rows for transcripts."""
        batch = self.core.take_batch()
        if batch is None:
            return
        for receiver, numbered in batch.messages.items():
            self._hear(self.client.down(receiver, self.core.s.incarnation, numbered))
        if batch.rows:
            self.journal.delete_upto("rows", batch.rows[-1][0])

    def _hear(self, messages: Iterable[object]) -> None:
        ended = tuple(message.run for message in messages if isinstance(message, Completed))
        if ended:
            self.client.post(Consumed(_CLIENT, ended))
            self._settled += len(ended)

    def _play(self) -> None:
        """What the registry wants done, until it wants nothing."""
        while self._effects:
            effect = self._effects.popleft()
            if isinstance(effect, Grow):
                for actor in effect.actors:
                    courier = self._couriers[actor] = Courier(actor, self.clock)
                    courier.post(Hello(actor, "node", 0))
                    self._step(courier)
            elif isinstance(effect, Start):
                self._begin(self._couriers[effect.actor], effect.spec)

    def _begin(self, courier: Courier, spec: Spec) -> None:
        """A turn that ends at once, with what a no-op session has to say."""
        said = (("user", spec.text), ("assistant", "ok"))
        rows = tuple(
            Row(spec.session_id, spec.number, seq, role, text, self.clock.wall())
            for seq, (role, text) in enumerate(said)
        )
        outcome = Outcome(RunState.SUCCEEDED, "ok")
        courier.post(Settled(spec.run, spec.activation, outcome, rows=rows, runtime=0.001))
        self._step(courier)
