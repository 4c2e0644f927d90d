"""A whole runtime driven by hand: registry, couriers, session actors and hub, with the test as network and clock.

Nothing moves by itself. `Hand.step` sends a courier's step and brings its answer back; `Hand.lose` applies it and
loses the answer. What the registry wants done lies in `Hand.effects` until the test delivers it (`begin`, `notify`,
`poll`, …), delivers it twice, or throws it away.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from openclaw_ray.core.clock import FakeClock
from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.hubstate import HubState
from openclaw_ray.core.protocol.journal import JournalFault, MemoryJournal
from openclaw_ray.core.protocol.messages import (
    Answer,
    Completed,
    DeliverTo,
    DownMessage,
    Effect,
    Event,
    Grow,
    Hello,
    Join,
    Notify,
    ReportAsk,
    Row,
    Start,
    StopAsk,
)
from openclaw_ray.core.protocol.records import Run
from openclaw_ray.core.protocol.registry import Registry
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.core.results import Receipt
from rules.asking import admit, agent, key_of, root_of
from rules.turn import Turn

__all__ = ["Hand", "without"]

E = TypeVar("E")


@contextmanager
def without(owner: object, rule: str, instead: object) -> Iterator[None]:
    """Take a rule out: ``owner.rule`` is ``instead`` for as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, rule, instead)
        yield


class Hand:
    """A runtime with ``actors`` session actors that have said hello, and a client for each name in ``drivers``.

    Agents besides ``w``, which may spawn, are given as ``agents``; ``limits`` go into the `RuntimeLimits`.
    """

    def __init__(
        self,
        *,
        actors: int = 0,
        pool_max: int = 8,
        cpus: int = 8,
        agents: Iterable[AgentEntry] = (),
        drivers: Iterable[str] = ("driver",),
        **limits: Any,
    ) -> None:
        self.clock = FakeClock()
        self.clock.advance(1.0)
        self.journal = MemoryJournal()
        self.limits = RuntimeLimits(**{"pool_idle_seconds": 1e6, "pool_prewarm": pool_max, **limits})
        self.pool_max, self.cpus = pool_max, cpus
        self.hub = HubState()
        self.effects: list[Effect] = []
        self.couriers: dict[str, Courier] = {}
        self.actors: dict[str, Activation] = {}
        self.heard: dict[str, list[DownMessage]] = defaultdict(list)
        self.turns: dict[str, Turn] = {}
        self.rows: list[Row] = []
        self.last = Answer(0, 0)
        self.registry = self._registry()
        self.do(self.registry.register([agent("w"), *agents], "b1", b"code"))
        for driver in drivers:
            self.say(driver, Join(driver, root_of(driver), "w", leased=False))
        if actors:
            self.do(self.registry.prewarm(actors))
            self.grow()

    # ------------------------------------------------------------------ the registry

    def _registry(self) -> Registry:
        return Registry(self.journal, self.limits, self.clock, pool_max=self.pool_max, cpus=self.cpus)

    def crash_registry(self) -> None:
        """The registry dies; the next one has what was committed, and finds actors by name."""
        self.journal = self.journal.copy()
        self.registry = self._registry()
        for actor in self.registry.s.actors.values():
            if actor.state != "growing":
                actor.handle = f"handle of {actor.id}"

    def adopt(self) -> None:
        """The next registry asks all actors and serves again."""
        self.tick()
        for ask in self.take(ReportAsk):
            self.report(ask.actor)
        self.tick()

    def report(self, actor: str) -> None:
        """The actor answers `report`, or is silent if it is gone."""
        here = self.actors.get(actor)
        self.do(self.registry.silent(actor) if here is None else self.registry.reported(here.report()))

    def tick(self) -> None:
        """The registry looks at its clock."""
        self.do(self.registry.tick())

    def wait(self, seconds: float) -> None:
        """Time passes; the registry looks whenever it wanted to."""
        until = self.clock.mono() + seconds
        while (now := self.clock.mono()) < until:
            self.clock.advance(max(1e-6, min(self.registry.next_due(), until) - now))
            self.tick()

    def do(self, effects: Iterable[Effect]) -> None:
        """What the registry wants done, until somebody delivers it."""
        self.effects += effects

    def run(self, run: str) -> Run:
        """A run's record."""
        found = self.registry.s.journaled_run(run)
        assert found is not None, f"no run {run}"
        return found

    def state(self, run: str) -> str:
        """A run's state."""
        return self.run(run).state.value

    # ------------------------------------------------------------------ steps

    def courier(self, client: str) -> Courier:
        """The courier of a process."""
        return self.couriers.setdefault(client, Courier(client, self.clock))

    def say(self, client: str, *events: Event) -> Answer:
        """Post events and make a step of them."""
        for event in events:
            self.courier(client).post(event)
        return self.step(client)

    def step(self, client: str) -> Answer:
        """Send the step in flight (again) or the next one; its answer arrives."""
        answer = self.lose(client)
        got = self.courier(client).answered(answer)
        for receiver, message in got[2] if got is not None else ():
            self.heard[receiver].append(message)
        return answer

    def lose(self, client: str) -> Answer:
        """Send the step in flight (again) or the next one; the courier never sees the answer."""
        courier = self.courier(client)
        step = courier.in_flight or courier.next_step()
        assert step is not None, f"{client} has nothing to say"
        self.last, effects = self.registry.step(step)
        if self.last.start is not None:
            effects = (Start(client, *self.last.start), *effects)
        self.do(effects)
        return self.last

    def fail_commit(self, client: str) -> None:
        """Send a step whose commit fails: the registry is made anew from the journal."""
        self.journal.fail_next = 1
        with pytest.raises(JournalFault):
            self.lose(client)
        self.crash_registry()

    # ------------------------------------------------------------------ asking for runs

    def admit(self, run: str, by: str = "driver", **options: Any) -> Receipt:
        """Ask for one run on behalf of a client."""
        return self.admit_all([run], by, **options)[0]

    def admit_all(self, runs: Sequence[str], by: str = "driver", **options: Any) -> tuple[Receipt, ...]:
        """Ask for runs, in as many steps as that takes."""
        for run in runs:
            self.courier(by).admit(admit(run, root_of(by), **options), run)
        return self.receipts(by, len(runs))

    def receipts(self, client: str, count: int) -> tuple[Receipt, ...]:
        """Steps of ``client`` until ``count`` admits are answered."""
        got: tuple[Receipt, ...] = ()
        while len(got) < count:
            got += self.step(client).receipts
        return got

    def ask(self, run: str, by: str = "driver", agent_id: str = "w") -> Receipt:
        """A message to an agent's main session."""
        key = f"agent:{agent_id}:main"
        return self.admit(run, by, session_key=key, session_id=f"{agent_id}-main", route="ask", agent_id=agent_id)

    def stop(self, session: str, by: str = "driver", *, run: str = "") -> Answer:
        """Ask for a stop of a session's subtree (its run's name will do), or of one run's."""
        return self.say(by, StopAsk(f"stop-{session or run}", session and key_of(session), run))

    # ------------------------------------------------------------------ what the registry wants done

    def sent(self, kind: type[E], run: str = "") -> list[E]:
        """The undelivered effects of a kind, of one run if it is named."""
        found = [e for e in self.effects if isinstance(e, kind)]
        return [e for e in found if not run or getattr(getattr(e, "spec", e), "run", "") == run]

    def take(self, kind: type[E], run: str = "") -> list[E]:
        """The same; they are the test's from now on."""
        found = self.sent(kind, run)
        self.effects = [e for e in self.effects if not any(e is f for f in found)]
        return found

    def grow(self) -> None:
        """The pool creates what was asked for; the actors say hello."""
        for grow in self.take(Grow):
            for actor in grow.actors:
                self.hello(actor)

    def hello(self, actor: str, node: str = "node") -> Answer:
        """An actor is there and says so."""
        self.actors.setdefault(actor, Activation(actor))
        return self.say(actor, Hello(actor, node, 1, f"handle of {actor}"))

    def deliver(self, start: Start) -> StartAnswer:
        """A start arrives at its actor; a turn that begins is in `turns`."""
        answer = self.actors[start.actor].start(start.epoch, start.spec)
        if answer is StartAnswer.RUN:
            self.turns[start.spec.run] = Turn(self, start.actor, start.spec)
        return answer

    def begin(self, run: str) -> Turn:
        """The start of a run arrives, and its turn begins."""
        [start] = self.take(Start, run)
        assert self.deliver(start) is StartAnswer.RUN
        return self.turns[run]

    def start(self, run: str, by: str = "driver", **options: Any) -> Turn:
        """Ask for a run and begin its turn."""
        receipt = self.admit(run, by, **options)
        assert receipt.accepted, receipt.error
        return self.begin(run)

    def notify(self) -> None:
        """All notifies arrive."""
        for effect in self.take(Notify):
            if effect.actor in self.actors:
                self.hear(effect)

    def hear(self, effect: Notify) -> None:
        """One notify arrives."""
        new = self.courier(effect.actor).down(effect.activation, effect.incarnation, effect.messages)
        self.heard[effect.activation] += new

    def call(self, deliver: DeliverTo) -> None:
        """The child calls ``deliver`` on its parent's actor."""
        done = deliver.completion
        if self.courier(deliver.actor).announced(done.run_id):
            self.heard[deliver.activation].append(Completed(done.run_id, done, deliver.value, deliver.held))

    def push(self) -> None:
        """The registry pushes to the hub."""
        batch = self.registry.take_batch()
        if batch is not None:
            self.hub.push(self.registry.s.incarnation, batch)
            self.rows += [pickle.loads(data) for _, _, data in batch.rows]

    def poll(self, client: str = "driver") -> list[DownMessage]:
        """A client polls, after a push; the messages that are new to it."""
        self.push()
        courier = self.courier(client)
        numbered = self.hub.take(client, *courier.cursor(client))
        new = courier.down(client, self.hub.incarnation, numbered)
        self.heard[client] += new
        return new

    def kill(self, actor: str, detail: str = "killed") -> None:
        """A session process dies, and the registry hears of it."""
        self.actors.pop(actor, None)
        self.couriers.pop(actor, None)
        self.do(self.registry.died(actor, detail))

    # ------------------------------------------------------------------ what was heard

    def ends(self, receiver: str = "driver") -> list[str]:
        """The runs whose completions a receiver has been handed, in order."""
        return [m.run for m in self.heard[receiver] if isinstance(m, Completed)]

    def messages(self, kind: type[E], receiver: str = "driver") -> list[E]:
        """The messages of a kind that a receiver has been handed."""
        return [m for m in self.heard[receiver] if isinstance(m, kind)]
