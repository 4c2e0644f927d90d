"""The registry's live side of the session actors: handles, death notices, reports (PROTOCOL.md 7.2, 7.5).

1. A handle comes with `Hello`; after a registry crash it is found by name. No such name: the actor is dead.
2. One standing call on each actor raises when it dies; that arrives on a thread of Ray's, so it is queued for our own.
   Only Ray's word that the actor is dead counts: a call that fell for another reason is made again (PROTOCOL.md 1.6).
   Why it died is Ray's word, or, where Ray does not know, that of the system (`ExitWatch`).
3. A report is asked for and waited for outside of any step; no answer is told as silence, never as death.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError, RayError

from openclaw_ray.actors.asking import AGAIN_AFTER, later
from openclaw_ray.actors.exit_watch import ExitWatch
from openclaw_ray.actors.memory_watch import MemoryWatch
from openclaw_ray.actors.names import find_actor
from openclaw_ray.core.death import Death, DeathKind, of_node, says_enough, tell
from openclaw_ray.core.protocol.records import Actor

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistryActor

__all__ = ["CrewWatch"]

_STARVED_EVERY = 3.0
"""Seconds between two looks at what the kernel has ended for want of memory."""
REPORT_WITHIN = 2.0
"""Seconds that an actor has for a report before it counts as silent."""


class CrewWatch:
    """Handles and notices of one registry process."""

    def __init__(self, registry: RegistryActor) -> None:
        self.registry = registry
        self._handles: dict[str, Any] = {}
        self._standing: set[str] = set()
        self._notices: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._exits = ExitWatch(registry.settings.state_dir)
        self._memory = MemoryWatch()
        self._node = ray.get_runtime_context().get_node_id()
        threading.Thread(target=self._listen, name="openclaw-notices", daemon=True).start()
        if self._memory.on:
            threading.Thread(target=self._mind_memory, name="openclaw-memory", daemon=True).start()

    def handle(self, actor_id: str) -> Any:
        """The handle of a known actor, standing for its death notice from the first time; `None` if it is gone."""
        found = self._handles.get(actor_id)
        if found is not None:
            return found
        actor = self.registry.core.s.actors.get(actor_id)
        found = actor.handle if actor is not None else None
        if found is None:
            try:
                found = find_actor(self.registry.settings.runtime, actor_id)
            except ValueError:
                self._notices.put((actor_id, "its process is gone: it ended while the registry was away"))
                return None
        if actor is not None:
            actor.handle = found
            if actor.node == self._node:
                self._exits.watch(actor_id, actor.pid)
        self._handles[actor_id] = found
        self._stand(actor_id, found)
        return found

    def met(self, actor_id: str) -> None:
        """An actor has said Hello: stand for its death notice."""
        self.handle(actor_id)

    def find_again(self, actors: list[Actor]) -> None:
        """After a crash of the registry (1)."""
        for actor in actors:
            if actor.state != "growing":
                self.handle(actor.id)

    def _stand(self, actor_id: str, handle: Any) -> None:
        if actor_id in self._standing:
            return
        self._standing.add(actor_id)

        def fell(call: Future[Any]) -> None:
            error = call.exception()
            if isinstance(error, ActorUnavailableError):
                later(stand)
            else:
                self._notices.put((actor_id, _reason(error)))

        def stand() -> None:
            handle.stand.remote().future().add_done_callback(fell)

        stand()

    def _listen(self) -> None:
        while True:
            try:
                actor_id, reason = self._notices.get(timeout=_STARVED_EVERY)
            except queue.Empty:
                self._exits.starved()  # so that what is long over explains no new death
                continue
            self._handles.pop(actor_id, None)
            self._standing.discard(actor_id)
            death = self._why(actor_id, reason)
            while not self.registry.enter(lambda core, a=actor_id, d=death: core.died(a, d)):  # type: ignore[misc]
                time.sleep(AGAIN_AFTER)  # the journal refuses: nothing else can be done before that
            self.registry.pool.call("kill", actor_id)  # the pool lets go of it, whatever ended it

    def _why(self, actor_id: str, reason: str) -> Death:
        """The cause of a death (2)."""
        actor = self.registry.core.s.actors.get(actor_id)
        node = actor.node if actor is not None else ""
        here = node == self._node
        ended = self._exits.ended(actor_id, wait=here and not says_enough(reason))
        starved = self._exits.starved() if here else 0
        if node and not here and not _is_alive(node):
            return of_node(node)
        if short := self._memory.why(actor_id):
            return Death(DeathKind.OUT_OF_MEMORY, short, None, "SIGKILL")
        return tell(reason, ended, pool_gone=self.registry.pool.gone, starved=starved, node=node)

    def _mind_memory(self) -> None:
        while True:
            with self.registry.lock:
                actors = self.registry.core.s.actors.values()
                pids = {a.id: a.pid for a in actors if a.run and a.pid and a.node == self._node}
            time.sleep(self._memory.look(pids))

    def ask(self, actor_id: str) -> None:
        """Ask for a report (3)."""
        handle = self.handle(actor_id)
        if handle is None:
            return
        answered = threading.Event()

        def came(call: Future[Any]) -> None:
            if answered.is_set():
                return
            if isinstance(call.exception(), ActorUnavailableError):
                later(ask)
                return
            answered.set()
            timer.cancel()
            if call.exception() is None:
                self._pass_on(call.result())

        def late() -> None:
            if not answered.is_set():
                answered.set()
                self.registry.enter(lambda core: core.silent(actor_id))

        def ask() -> None:
            if not answered.is_set():
                handle.report.remote().future().add_done_callback(came)

        timer = threading.Timer(REPORT_WITHIN, late)
        timer.daemon = True
        timer.start()
        ask()

    def _pass_on(self, report: Any) -> None:
        # Ray's callback thread must not enter the core: a commit there would hold up its other callbacks
        threading.Thread(target=self.registry.report_came, args=(report,), daemon=True).start()


def _is_alive(node: str) -> bool:
    """Whether the cluster still has a node; Ray tells of its actors' end only after it has given up the node itself."""
    try:
        return any(each["NodeID"] == node and each["Alive"] for each in ray.nodes())  # type: ignore[no-untyped-call]
    except RayError:
        return True


def _reason(error: BaseException | None) -> str:
    if error is None:
        return "its process ended"
    text = str(error)
    for line in text.splitlines():
        word = line.strip()
        if word.startswith(("The actor is dead because", "The actor died")):
            text = word
            break
    kind = "" if isinstance(error, (ActorDiedError, RayActorError)) else f"{type(error).__name__}: "
    return (kind + " ".join(text.split()))[:2_000]
