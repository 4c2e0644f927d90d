"""All other ways into the registry than a step: what threads of its process tell it, and what an operator asks.

Each is one transaction: change, what follows from it, commit; the effects are performed after that (PROTOCOL.md 1.7).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence

from openclaw_ray.core.death import Death
from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.named_map import ClaimAnswer
from openclaw_ray.core.protocol.archiving import Archiving
from openclaw_ray.core.protocol.authing import AuthTurn, auth_given, auth_turn
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.cleanup import Cleanup, CleanupWord
from openclaw_ray.core.protocol.clients import Clients
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.ending import Ending
from openclaw_ray.core.protocol.hubstate import HubBatch
from openclaw_ray.core.protocol.limiting import Limiting
from openclaw_ray.core.protocol.maps import Maps
from openclaw_ray.core.protocol.messages import Completed, Effect, Report
from openclaw_ray.core.protocol.orphans import Orphans
from openclaw_ray.core.protocol.patching import Patching
from openclaw_ray.core.protocol.records import Actor
from openclaw_ray.core.protocol.redelivering import DeliveryWord, Redelivering
from openclaw_ray.core.protocol.reloading import reload
from openclaw_ray.core.protocol.restart import successor
from openclaw_ray.core.protocol.resuming import Resuming
from openclaw_ray.core.protocol.retention import Cursor, Retention
from openclaw_ray.core.protocol.session_views import SessionViews
from openclaw_ray.core.protocol.state import AgentEntry, State
from openclaw_ray.core.protocol.turns import Turns
from openclaw_ray.core.protocol.upkeep import Done, Upkeep
from openclaw_ray.core.session_asks import Asker, SessionAnswer

__all__ = ["Entries"]

_ASKED = 200
"""Records that one look of a round takes that an operator asks for."""


class Entries:
    """The entries; the registry has the parts that they use."""

    s: State
    down: Down
    birth: Birth
    ending: Ending
    limiting: Limiting
    turns: Turns
    crew: Crew
    clients: Clients
    cleanup: Cleanup
    archiving: Archiving
    redelivering: Redelivering
    resuming: Resuming
    retention: Retention
    maps: Maps
    orphans: Orphans
    upkeep: Upkeep
    views: SessionViews
    patching: Patching
    _idle_look: float

    def died(self, actor: str, detail: str | Death) -> tuple[Effect, ...]:
        """The death notice of a session actor (PROTOCOL.md 7.2)."""
        return self._entry(lambda: self.crew.died(actor, detail))

    def reported(self, report: Report) -> tuple[Effect, ...]:
        """An actor's report (PROTOCOL.md 7.5)."""
        return self._entry(lambda: self.crew.reported(report))

    def silent(self, actor: str) -> tuple[Effect, ...]:
        """An actor did not answer a report: unknown, not dead."""
        return self._entry(lambda: self.crew.silent(actor))

    def growth_failed(self, actor: str, why: str, *, has: Mapping[str, float] | None = None) -> tuple[Effect, ...]:
        """The pool could not create an actor; ``has``: what the nodes have of what it needs, if that never suffices."""
        return self._entry(lambda: self.crew.growth_failed(actor, why, has=has))

    def growth_waits(self, actor: str, total: Mapping[str, float]) -> tuple[Effect, ...]:
        """An actor is still not placed; ``total``: what the whole cluster has of what it needs."""
        return self._entry(lambda: self.crew.growth_waits(actor, total))

    def cluster_is(self, cpus: int, pool_max: int) -> tuple[Effect, ...]:
        """The cluster has so many CPUs now, and room for so many actors."""

        def keep() -> None:
            self.s.cpus, self.s.pool_max = max(1, cpus), pool_max

        return self._entry(keep)

    def pool_met(self, owned: Iterable[str], values: Iterable[str] = ()) -> tuple[Effect, ...]:
        """A pool says whom it owns and whose values it has, when it or this registry is new (PROTOCOL.md 7.3)."""
        return self._entry(lambda: self.crew.pool_met(owned, values))

    def value_held(self, run: str, taken_from: str = "") -> tuple[Effect, ...]:
        """The pool has taken a large value from an actor (PROTOCOL.md 4.3)."""
        return self._entry(lambda: self.ending.value_held(run, taken_from))

    def client_silent(self, client: str) -> tuple[Effect, ...]:
        """The hub has not heard of a client for its lease (PROTOCOL.md 2.5)."""
        return self._entry(lambda: self.clients.silent(client))

    def prewarm(self, count: int) -> tuple[Effect, ...]:
        """Ask for actors before anybody needs them."""
        return self._entry(lambda: self.birth.grow(count - len(self.s.actors)))

    def lend(self, who: str) -> tuple[Actor | None, tuple[Effect, ...]]:
        """An idle actor to try code on, see `Crew.lend`; without one, growth is asked for."""
        lent: list[Actor | None] = []

        def find() -> None:
            lent.append(self.crew.lend(who))
            if lent[0] is None and not any(a.state == "growing" for a in self.s.actors.values()):
                self.birth.grow(1)

        effects = self._entry(find)
        return lent[0], effects

    def give_back(self, actor: str, why: str = "") -> tuple[Effect, ...]:
        """The actor is free again, or ended if there is a reason."""
        return self._entry(lambda: self.crew.give_back(actor, why))

    def register(
        self, entries: Iterable[AgentEntry], bundle: str, data: bytes, paths: tuple[str, ...] = ()
    ) -> tuple[Effect, ...]:
        """Agents that the runtime knows from now on; their code is journaled."""

        def keep() -> None:
            known = tuple(entries)
            for entry in known:
                self.s.agents[entry.id] = entry
            self.s.put_bundle(bundle, pickle.dumps((known, data, paths), protocol=5))

        return self._entry(keep)

    def reload(self, limits: RuntimeLimits, agents: Mapping[str, AgentLimits], boot: str) -> tuple[Effect, ...]:
        """New limits from now on; see `reloading`."""
        return self._entry(lambda: reload(self.s, limits, agents, boot))

    def bundle(self, bundle: str) -> tuple[bytes, tuple[str, ...]]:
        """An agents' bundle: its code, and the folders that it needs on ``sys.path``.

        Raises:
            KeyError: there is none of that name.
        """
        data = self.s.journal.get("bundles", bundle)
        if data is None:
            raise KeyError(bundle)
        _, code, paths = pickle.loads(data)
        return code, paths

    def auth_turn(self, key: str, activation: str) -> AuthTurn | None:
        """Who asks for a credential, as the records have it; `None` if that turn has ended. Read-only."""
        return auth_turn(self.s, key, activation)

    def auth_given(self, key: str, activation: str, scope: str) -> tuple[bool, tuple[Effect, ...]]:
        """A turn is to be given a credential out of ``scope``; False if it has ended, see `authing`."""
        words: list[bool] = []
        effects = self._entry(lambda: words.append(auth_given(self.s, key, activation, scope)))
        return words[0], effects

    def warn(self, text: str) -> tuple[Effect, ...]:
        """Journal a warning."""
        return self._entry(lambda: self.s.event("warning", text=text))

    def delete(
        self, key: str, session_id: str, revision: int, asker: Asker | None = None
    ) -> tuple[CleanupWord, tuple[Effect, ...]]:
        """Delete a session that was seen as ``(session_id, revision)``, see `Cleanup`."""
        if not self._may_clear(asker, "delete", key):
            return CleanupWord.FORBIDDEN, ()
        words: list[CleanupWord] = []
        effects = self._entry(lambda: words.append(self.cleanup.delete(key, session_id, revision)))
        return words[0], effects

    def reset(
        self, key: str, session_id: str, revision: int, new_id: str, asker: Asker | None = None
    ) -> tuple[CleanupWord, tuple[Effect, ...]]:
        """Begin a session that was seen as ``(session_id, revision)`` anew under ``new_id``, see `Cleanup`."""
        if not self._may_clear(asker, "reset", key):
            return CleanupWord.FORBIDDEN, ()
        words: list[CleanupWord] = []
        effects = self._entry(lambda: words.append(self.cleanup.reset(key, session_id, revision, new_id)))
        return words[0], effects

    def _may_clear(self, asker: Asker | None, what: str, key: str) -> bool:
        return asker is None or self.views.answer(asker, "may", {"key": key, "what": what}).ok

    def patch(
        self, asker: Asker | None, key: str, label: str, session_id: str | None = None, revision: int | None = None
    ) -> tuple[SessionAnswer, tuple[Effect, ...]]:
        """Change a session's label, see `Patching`."""
        answers: list[SessionAnswer] = []
        effects = self._entry(lambda: answers.append(self.patching.patch(asker, key, label, session_id, revision)))
        return answers[0], effects

    def unbind(self, key: str) -> tuple[int, tuple[Effect, ...]]:
        """Drop the conversations of a session, see `Threads.unbind`; gives how many."""
        counts: list[int] = []
        effects = self._entry(lambda: counts.append(self.birth.threads.unbind(key)))
        return counts[0], effects

    def redeliver(self, run_id: str) -> tuple[DeliveryWord, tuple[Effect, ...]]:
        """Begin a delivery anew that was given up, see `Redelivering`."""
        words: list[DeliveryWord] = []
        effects = self._entry(lambda: words.append(self.redelivering.redeliver(run_id)))
        return words[0], effects

    def dismiss(self, run_id: str) -> tuple[DeliveryWord, tuple[Effect, ...]]:
        """Give a delivery up, see `Redelivering`."""
        words: list[DeliveryWord] = []
        effects = self._entry(lambda: words.append(self.redelivering.dismiss(run_id)))
        return words[0], effects

    def open_boot(self, boot: str, recover: bool = False) -> tuple[Effect, ...]:
        """The runtime's start ``boot``: close what an older one left un-ended, or hold it for `recover`; the same boot
        again is a restart."""
        return self._entry(lambda: self.clients.open_boot(boot, self.crew, self.resuming, recover))

    def recover(self) -> tuple[dict[str, int], tuple[Effect, ...]]:
        """Decide what is held, once the agents are registered; see `Resuming.recover`."""
        words: dict[str, int] = {}
        effects = self._entry(lambda: words.update(self.resuming.recover()))
        return words, effects

    def clear_tombstones(self, key: str = "") -> tuple[tuple[str, ...], tuple[Effect, ...]]:
        """See `Resuming.clear_tombstones`."""
        cleared: list[str] = []
        effects = self._entry(lambda: cleared.extend(self.resuming.clear_tombstones(key)))
        return tuple(cleared), effects

    def maintain(self, runs: Sequence[str], *, apply: bool) -> tuple[list[Done], tuple[Effect, ...]]:
        """Drop the records of ``runs`` whose time is over; without any, end what nothing else can, see `Upkeep`."""
        if not apply:
            return self.upkeep.drop(runs, apply=False) if runs else self.upkeep.reconcile(apply=False), ()
        done: list[Done] = []

        def work() -> None:
            done.extend(self.upkeep.drop(runs, apply=True) if runs else self.upkeep.reconcile(apply=True))

        return done, self._entry(work)

    def retain(self, cursor: Cursor, *, apply: bool) -> tuple[tuple[list[Done], Cursor | None], tuple[Effect, ...]]:
        """The next look of a round of `Retention` that is asked for: what was done, or would be, and where to go on."""
        if not apply:
            return self.retention.look(cursor, apply=False, most=_ASKED), ()
        looked: list[tuple[list[Done], Cursor | None]] = []
        effects = self._entry(lambda: looked.append(self.retention.look(cursor, apply=True, most=_ASKED)))
        return looked[0], effects

    def hub_again(self, clients: Iterable[str] | None = None) -> tuple[Effect, ...]:
        """The hub is a new one: everything unconfirmed goes again (PROTOCOL.md 7.4)."""

        def again() -> None:
            for receiver in list(self.s.receivers) if clients is None else clients:
                self.down.again(receiver)

        return self._entry(again)

    def tick(self) -> tuple[Effect, ...]:
        """What time does: archives, deadlines, graces, repeats, idle actors, the end of adoption."""

        def due() -> None:
            now = self.s.clock.mono()
            self.archiving.sweep()
            self.turns.due(now)
            self.limiting.due()
            self.birth.threads.sweep(now)
            self.down.due(now)
            if now >= self._idle_look:
                self._idle_look = now + 1.0
                self.crew.due(now)
                self.orphans.sweep()
            self.retention.sweep(now)

        return self._entry(due)

    def next_due(self) -> float:
        """When `tick` is to be called next, on the monotonic clock; at most a second away."""
        now = self.s.clock.mono()
        timer = self.s.next_timer()
        latest = self.archiving.next_look(now, now + (0.05 if self.s.recovering else 1.0))
        latest = max(now, self.retention.next_look(latest))
        latest = self.limiting.next_at(now, latest)
        return latest if timer is None else min(latest, timer)

    def ended(self, run_id: str) -> Completed | None:
        """The end of a run, or of the one that goes on for it, as a message, read-only; `None` while it goes on.

        Raises:
            KeyError: there is no such run.
        """
        run = successor(self.s, run_id)
        if run is None:
            raise KeyError(run_id)
        return self.birth.completed(run, "") if run.terminal else None

    def claim_map(
        self, map_id: str, claim: str, client: str, receiver: str
    ) -> tuple[ClaimAnswer, tuple[Effect, ...]]:
        """A try at a map that has a name asks for it, see `Maps.claim`."""
        answers: list[ClaimAnswer] = []
        effects = self._entry(lambda: answers.append(self.maps.claim(map_id, claim, client, receiver)))
        return answers[0], effects

    def take_batch(self) -> HubBatch | None:
        """What is committed and to be pushed to the hub; not within a transaction."""
        self.down.gather()
        return self.s.take_batch()

    @property
    def client_waits(self) -> bool:
        """True if the next batch has a message for a client."""
        return self.down.client_waits or self.s.client_waits

    def _entry(self, change: Callable[[], None]) -> tuple[Effect, ...]:
        change()
        self.crew.adopted(self.s.clock.mono())
        self.birth.grant_all()
        self.birth.threads.flush()
        self.down.flush()
        return self.s.commit()
