"""A session process: one activation at a time, on a thread of its own (PROTOCOL.md 3.4, 4, 6, 7.6, 7.7).

Groups: ``control`` (2 threads) posts and returns, never waits; ``life`` (1) stands for the death notice; ``check``
(1) waits for a bundle to be tried. The courier thread talks with the registry; the turns' thread runs agents' code.

1. A start comes by a call, or in the answer to this process's own step. The turns' thread takes one after the other:
   fence, then the turn from beginning to end; its outcome, rows, state and the clean check go into the outbox and to
   the registry as one event.
2. The verdict empties the outbox; if it names a parent's actor, ``deliver`` is called on it.
3. ``stop``: the turn is cancelled and told to the children whose handles it holds; its tools' processes are ended.
4. ``die_if``: descendants, then the process itself.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import ray

from openclaw_ray.actors.code import Code
from openclaw_ray.actors.courier_thread import CourierThread
from openclaw_ray.actors.exit_watch import note_exits
from openclaw_ray.actors.here import this_is
from openclaw_ray.actors.hidden_env import hide_env
from openclaw_ray.actors.memory_watch import memory_here
from openclaw_ray.actors.names import find_actor
from openclaw_ray.actors.raylet_watch import end_with_raylet
from openclaw_ray.actors.session_log import SessionLog
from openclaw_ray.actors.session_turn import SessionTurn
from openclaw_ray.actors.settings import SessionSettings
from openclaw_ray.actors.wire import pack, unpack
from openclaw_ray.agents.descendants import become_subreaper, kill_descendants
from openclaw_ray.agents.hygiene import Baseline
from openclaw_ray.agents.run_turn import TurnRunner
from openclaw_ray.core.protocol.activation import Activation, StartAnswer
from openclaw_ray.core.protocol.messages import (
    TAKEN,
    Completed,
    DownMessage,
    Hello,
    Refused,
    Report,
    Spec,
    Verdict,
)

__all__ = ["SessionActor"]


class SessionActor:
    """One session process of the pool."""

    def __init__(self, settings: SessionSettings, actor_id: str) -> None:
        self.settings = settings
        self.actor_id = actor_id
        if settings.hidden_env:
            hide_env(settings.hidden_env)
        self.log = SessionLog(settings.state_dir, actor_id, as_json=settings.json_logs)
        become_subreaper()
        note_exits(settings.state_dir, actor_id)
        end_with_raylet()
        this_is(self)
        self._forever = threading.Event()
        self._lock = threading.Lock()
        self.activation = Activation(actor_id)
        self.turn: SessionTurn | None = None
        self._early: dict[str, list[DownMessage]] = {}
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.runner = TurnRunner()
        registry = find_actor(settings.runtime, "registry")
        self.courier = CourierThread(actor_id, settings.runtime, registry, self, timeout=settings.registry_timeout)
        self.code = Code(self.courier)
        context = ray.get_runtime_context()
        self.courier.post(Hello(actor_id, context.get_node_id(), os.getpid(), context.current_actor))
        self.baseline: Baseline | None = None
        threading.Thread(target=self._turns, name="openclaw-turns", daemon=True).start()
        self.courier.start()

    # ------------------------------------------------------------------ turn

    def _turns(self) -> None:
        """The turns' thread. What fails in here is no agent's fault: a process that cannot run turns is to be dead."""
        try:
            while True:
                self._work.get()()
        except BaseException:  # noqa: BLE001 - told, and then the end
            traceback.print_exc()
            kill_descendants()
            os._exit(70)

    def start(self, epoch: int, packed: Any) -> None:
        """A start by a call (1)."""
        self.granted(epoch, unpack(packed))

    def granted(self, epoch: int, spec: Spec) -> None:
        """Run a turn when those before it are over."""
        self._work.put(partial(self._run, epoch, spec))

    def _run(self, epoch: int, spec: Spec) -> None:
        with self._lock:
            answer = self.activation.start(epoch, spec)
            if answer is StartAnswer.RUN:
                turn = self.turn = SessionTurn(self, spec)
                early, self._early = self._early.pop(spec.activation, []), {}
        if answer is StartAnswer.REPEAT:
            return
        if answer is not StartAnswer.RUN:
            self.courier.post(Refused(spec.run, spec.activation, answer.value))
            return
        if self.baseline is None:  # taken late, so that Ray's own threads are there already
            self.baseline = Baseline.take(self.settings.max_growth_mb)
        for message in early:
            turn.hear(message)
        turn.run(self.baseline)

    # ------------------------------------------------------------------ control

    def notify(self, receiver: str, incarnation: int, packed: bytes) -> None:
        """Downlink messages."""
        self.courier.arrived(receiver, incarnation, unpack(packed))

    def deliver(self, activation: str, packed: bytes) -> None:
        """A child announces its end itself (PROTOCOL.md 4.4 a, 4.5)."""
        completed: Completed = unpack(packed)
        turn = self.turn
        if turn is not None and turn.spec.activation == activation and self.courier.announced(completed.run):
            turn.requester.ended(completed)

    def stop(self, run: str, activation: str, reason: str, mark: int) -> None:
        """Cancel this activation, or never start it (3)."""
        with self._lock:
            here = self.activation.stop(activation, reason, mark)
            turn = self.turn
        if here and turn is not None and turn.spec.activation == activation:
            turn.cancel(reason, mark)

    def die_if(self, run: str) -> None:
        """End this process if it still runs ``run`` (4)."""
        if self.activation.dies_for(run):
            kill_descendants()
            os._exit(1)

    def report(self) -> Report:
        """What this process runs and still owes (PROTOCOL.md 7.5)."""
        with self._lock:
            return self.activation.report()

    def take(self, run: str) -> Any:
        """The large value of ``run``; the caller owns what this returns (PROTOCOL.md 4.3).

        Raises:
            KeyError: it is not here any more.
        """
        return self.activation.held[run]

    def park(self, run: str) -> tuple[None, Any]:
        """The same, for the pool, which must not read it: the first of two answers only tells that it came."""
        return None, self.activation.held[run]

    def check(self, bundle: str) -> None:
        """Load a bundle and construct its agents once, before anything is to run (DESIGN.md 7).

        Raises:
            AgentImportError: it does not load here.
        """
        done: Future[None] = Future()

        def try_it() -> None:
            try:
                self.code.check(bundle)
                done.set_result(None)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
                done.set_exception(error)

        self._work.put(try_it)
        done.result()

    def where(self) -> tuple[str, float]:
        """The node that it is on, and the bytes of memory that are free there."""
        memory = memory_here()
        free = float("inf") if memory is None else float(memory.total - memory.used)
        return ray.get_runtime_context().get_node_id(), free

    def ping(self) -> dict[str, Any]:
        """Sign of life: pid and what runs."""
        spec = self.activation.spec
        return {"pid": os.getpid(), "run": spec.run if spec else "", "at": time.time()}

    def stand(self) -> None:
        """Never returns: its failure is the death notice (PROTOCOL.md 7.2)."""
        self._forever.wait()

    # ------------------------------------------------------------------ from the courier

    def verdict(self, verdict: Verdict) -> None:
        """The registry's word on an outcome, or on a stop that the turn asked for (2)."""
        turn = self.turn
        if verdict.word in ("marked", "refused", TAKEN) and turn is not None:
            turn.hear_verdict(verdict)
        with self._lock:
            self.activation.verdict(verdict.run)
        to = verdict.deliver
        if to is None:
            return
        completed = Completed(
            verdict.run, to.completion, to.value, to.held, self.actor_id if to.held else ""
        )
        try:
            handle = self.courier.handle(to.actor, to.handle)
        except ValueError:
            return  # the parent's process is gone: the registry hears of it and keeps the completion
        handle.deliver.remote(to.activation, pack(completed))

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
        """The registry wants nothing of this process any more."""
        kill_descendants()
        os._exit(0)

    def unavailable(self, error: Exception) -> None:
        """No answer from the registry for too long: what the turn waits for fails, the turn itself goes on."""
        turn = self.turn
        if turn is not None:
            turn.fail(error)
