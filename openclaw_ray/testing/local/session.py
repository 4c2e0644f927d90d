"""A session actor that is two threads: one for its turns, one for its courier (PROTOCOL.md 3.4, 4, 6, 7.7).

It does what `openclaw_ray.actors.session_actor` does, over the same `Activation` and the same turns. What a process has
and a thread has not: it can be killed, it has an environment of its own, and what is started in it is below it alone.
So ``die_if`` only lets go of a turn: its run is over for the runtime, while its thread goes on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents._cloudpickle import standing_in
from openclaw_ray.agents.bundle import LoadedBundle, load_bundle
from openclaw_ray.agents.run_turn import TurnRunner
from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.messages import TAKEN, Completed, DownMessage, Hello, Refused, Report, Spec, Verdict
from openclaw_ray.testing.local.courier import LocalCourier
from openclaw_ray.testing.local.memory import ProcessMemory
from openclaw_ray.testing.local.turn import LocalTurn

if TYPE_CHECKING:
    from openclaw_ray.testing.local.registry import LocalRegistry

__all__ = ["LocalHandle", "LocalSession"]


class LocalHandle:
    """What others hold of an actor: ``handle.method.remote(…)`` is a call in the thread of the caller."""

    def __init__(self, session: LocalSession) -> None:
        self.stop = _Method(session.stop)
        self.deliver = _Method(session.deliver)


class _Method:
    def __init__(self, call: Callable[..., None]) -> None:
        self.remote = call


class _Code:
    """Agents' code, as one stand-in process has it."""

    def __init__(self, registry: LocalRegistry) -> None:
        self._registry = registry
        self._bundles: dict[str, LoadedBundle] = {}

    def agent(self, bundle: str, agent_id: str) -> Any:
        """The agent, new.

        Raises:
            AgentImportError: its code does not load.
        """
        loaded = self._bundles.get(bundle)
        if loaded is None:
            # without the bundle's paths: this process has them already, or the agents could not have been imported
            loaded = self._bundles[bundle] = load_bundle(self._registry.bundle(bundle)[0], ())
        return loaded.agent(agent_id)


class LocalSession:
    """One session actor of a local runtime."""

    def __init__(self, registry: LocalRegistry, actor_id: str) -> None:
        self.registry = registry
        self.actor_id = actor_id
        self.memory = ProcessMemory()
        self.code = _Code(registry)
        self.runner = TurnRunner()
        self.activation = Activation(actor_id)
        self.turn: LocalTurn | None = None
        self.handle = LocalHandle(self)
        self.courier = LocalCourier(actor_id, registry, self, self.memory)
        self._lock = threading.Lock()
        self._early: dict[str, list[DownMessage]] = {}
        self._starts: queue.SimpleQueue[tuple[int, Spec] | None] = queue.SimpleQueue()
        self._over = False
        self._thread = threading.Thread(target=self._turns, name=f"openclaw-{actor_id}", daemon=True)

    def begin(self) -> None:
        """Say that it is there, and wait for turns."""
        self.courier.post(Hello(self.actor_id, "here", 0, self.handle))
        self.courier.start()
        self._thread.start()

    # ------------------------------------------------------------------ turns

    def granted(self, epoch: int, spec: Spec) -> None:
        """Run a turn, after the one that runs."""
        self._starts.put((epoch, spec))

    def _turns(self) -> None:
        with standing_in(self.memory):
            while (start := self._starts.get()) is not None and not self._over:
                self._one(*start)
        self.runner.loop.close()

    def _one(self, epoch: int, spec: Spec) -> None:
        with self._lock:
            answer = self.activation.start(epoch, spec)
            if answer is StartAnswer.RUN:
                turn = self.turn = LocalTurn(self, spec)
                early, self._early = self._early.pop(spec.activation, []), {}
        if answer is StartAnswer.REPEAT:
            return
        if answer is not StartAnswer.RUN:
            self.courier.post(Refused(spec.run, spec.activation, answer.value))
            return
        for message in early:
            turn.hear(message)
        turn.run_here()

    @property
    def in_turn(self) -> bool:
        """Whether its thread is inside a turn."""
        return self.turn is not None

    @property
    def alive(self) -> bool:
        """Whether its thread has not ended."""
        return self._thread.is_alive()

    # ------------------------------------------------------------------ control

    def deliver(self, activation: str, completed: Completed) -> None:
        """A child announces its end itself."""
        turn = self.turn
        if turn is not None and turn.spec.activation == activation and self.courier.announced(completed.run):
            turn.requester.ended(completed)

    def stop(self, run: str, activation: str, reason: str, mark: int) -> None:
        """Cancel this activation, or never start it."""
        with self._lock:
            here = self.activation.stop(activation, reason, mark)
            turn = self.turn
        if here and turn is not None and turn.spec.activation == activation:
            turn.cancel(reason, mark)

    def die_if(self, run: str) -> None:
        """Let go of this run's turn, if it still goes on."""
        if self.activation.dies_for(run):
            self.end("its thread did not end within its grace, and cannot be killed")

    def report(self) -> Report:
        """What it runs and still owes."""
        with self._lock:
            return self.activation.report()

    def end(self, why: str) -> None:
        """No more turns, and nothing counts any more that its thread does."""
        with self._lock:
            over, self._over = self._over, True
            turn = self.turn
        if over:
            return
        self.courier.close()
        self._starts.put(None)
        if turn is not None:
            turn.cancel("stopped", 0)
        self.registry.ended_session(self, why)

    def join(self, timeout: float) -> None:
        """Wait for its threads."""
        self.courier.join(timeout)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    # ------------------------------------------------------------------ from the courier

    def verdict(self, verdict: Verdict) -> None:
        """The registry's word on an outcome, or on a stop that the turn asked for."""
        turn = self.turn
        if verdict.word in ("marked", "refused", TAKEN) and turn is not None:
            turn.hear_verdict(verdict)
        with self._lock:
            self.activation.verdict(verdict.run)
        to = verdict.deliver
        if to is not None:
            parent = self.registry.sessions.get(to.actor)
            if parent is not None:
                parent.deliver(to.activation, Completed(verdict.run, to.completion, to.value))

    def message(self, receiver: str, message: DownMessage) -> None:
        """A downlink message for a turn; one that has overtaken the turn's start waits for it."""
        with self._lock:
            turn = self.turn
            mine = turn is not None and receiver in (turn.spec.activation, self.actor_id)
            if not mine and receiver != self.actor_id and not self.activation.has_seen(receiver):
                self._early.setdefault(receiver, []).append(message)
        if mine and turn is not None:
            turn.hear(message)

    def stale(self) -> None:
        """The registry wants nothing of it any more."""
        self.end("it was told to end")

    def unavailable(self, error: Exception) -> None:
        """Its courier has ended: what the turn waits for fails."""
        turn = self.turn
        if turn is not None:
            turn.fail(error)
