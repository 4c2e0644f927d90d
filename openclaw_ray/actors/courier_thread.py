"""The courier thread of a process: the pure `Courier` with a lock, a thread and the registry's handle.

1. The thread sends one step at a time and waits for its answer; programs only wait on local futures.
2. No answer: the same step again, after a pause that grows to half a second. After ``ray.registryTimeoutSeconds``
   without an answer what programs wait for fails with `RuntimeUnavailable`; the step itself is still repeated.
3. What came (verdicts, receipts, messages) is handed to the listener on this thread, outside of the lock.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Protocol

from openclaw_ray.actors.names import find_actor
from openclaw_ray.actors.wire import pack_step, unpack
from openclaw_ray.core.clock import Clock, SystemClock
from openclaw_ray.core.errors import RuntimeClosed, RuntimeUnavailable
from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.messages import Admit, DownMessage, Event, Spec, Verdict
from openclaw_ray.core.results import Receipt

__all__ = ["STOPPING", "CourierThread", "Listener"]

STOPPING = Receipt("forbidden", error="its requester is being stopped; nothing new starts under it", limit="stop")
"""What an admit is answered that a stop has overtaken."""

_PAUSES = (0.01, 0.05, 0.1, 0.2, 0.5)


class Listener(Protocol):
    """Who hears what came; called on the courier's thread, one call at a time."""

    def verdict(self, verdict: Verdict) -> None:
        """The registry's word on an event."""

    def message(self, receiver: str, message: DownMessage) -> None:
        """A downlink message, once."""

    def granted(self, epoch: int, spec: Spec) -> None:
        """A run to start in this process, after what was said before."""

    def stale(self) -> None:
        """The registry wants nothing of this process any more."""

    def unavailable(self, error: Exception) -> None:
        """No answer from the registry for too long."""


class CourierThread:
    """One process's talk with the registry."""

    def __init__(
        self,
        client: str,
        runtime: str,
        registry: Any,
        listener: Listener,
        *,
        timeout: float,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.core = Courier(client, self.clock)
        self.runtime = runtime
        self.registry = registry
        self.listener = listener
        self.timeout = timeout
        self.handles: dict[str, Any] = {}
        self.closed = False
        self._wake = threading.Condition(threading.Lock())
        self._alarms: dict[str, tuple[float, Callable[[], None]]] = {}
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, name="openclaw-courier", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    # ------------------------------------------------------------------ from programs

    def post(self, *events: Event) -> None:
        """Send events with the next step."""
        with self._wake:
            for event in events:
                self.core.post(event)
            self._wake.notify()

    def admit(self, admits: Iterable[tuple[Admit, Future[Receipt]]]) -> None:
        """Ask for runs; each future gets its receipt."""
        with self._wake:
            if self.closed:
                raise RuntimeClosed(self.runtime)
            for admit, future in admits:
                self.core.admit(admit, future)
            self._wake.notify()

    def drop_unsent(self, activation: str, *then: Event) -> None:
        """A requester is being stopped: its admits that no step has carried are taken back, before ``then`` is sent."""
        with self._wake:
            dropped = self.core.drop_unsent(activation)
            for event in then:
                self.core.post(event)
            self._wake.notify()
        for future in dropped:
            future.set_result(STOPPING)

    def arrived(self, receiver: str, incarnation: int, numbered: Iterable[tuple[int, DownMessage]]) -> None:
        """Downlink messages came by a poll or a notify."""
        with self._wake:
            fresh = self.core.down(receiver, incarnation, numbered)
            self._wake.notify()
        for message in fresh:
            self.listener.message(receiver, message)

    def announced(self, run: str) -> bool:
        """A child called ``deliver``; True if its completion is new here."""
        with self._wake:
            new = self.core.announced(run)
            self._wake.notify()
        return new

    def poke(self) -> None:
        """See how the registry is; if it is not there, what programs wait for fails in time (2)."""
        with self._wake:
            if not self.core.pending:
                self.core.poke()
                self._wake.notify()

    def heard(self, run: str) -> None:
        """A completion is here that came with a start: a repeat of it is no news."""
        with self._wake:
            self.core.first_heard(run)

    def alarm(self, name: str, after: float, call: Callable[[], None]) -> None:
        """Call back on the courier's thread after ``after`` seconds, unless replaced or cancelled under that name."""
        with self._wake:
            self._alarms[name] = (self.clock.mono() + after, call)
            self._wake.notify()

    def cancel_alarm(self, name: str) -> None:
        """Forget an alarm."""
        with self._wake:
            self._alarms.pop(name, None)

    def cursor(self, receiver: str) -> tuple[int, int]:
        """What a poll asks for."""
        with self._wake:
            return self.core.cursor(receiver)

    def close_receiver(self, receiver: str) -> None:
        """Nothing more comes on this downlink."""
        with self._wake:
            self.core.close_receiver(receiver)

    def handle(self, actor: str, given: Any = None) -> Any:
        """An actor's handle: the one that came along, the one held, or found by name."""
        if given is not None:
            self.handles[actor] = given
        found = self.handles.get(actor)
        if found is None:
            found = self.handles[actor] = find_actor(self.runtime, actor)
        return found

    def drain(self, timeout: float) -> bool:
        """Wait until everything posted so far has been answered; False if that took too long."""
        deadline = self.clock.mono() + timeout
        while self.clock.mono() < deadline and self._thread.is_alive():
            with self._wake:
                if self.core.in_flight is None and not self.core.pending:
                    return True
                self._idle.clear()
                self._wake.notify()
            self._idle.wait(min(0.05, timeout))
        return False

    def close(self) -> None:
        """End the thread; what waits for a receipt fails with `RuntimeClosed`."""
        with self._wake:
            self.closed = True
            self._wake.notify()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while (step := self._next()) is not None:
            answer = self._send(step)
            if answer is None:
                break
            with self._wake:
                came = self.core.answered(answer)
            if came is None:  # pragma: no cover - _send repeats these itself
                continue
            verdicts, receipts, messages = came
            for future, receipt in receipts:
                if not future.done():
                    future.set_result(receipt)
            for verdict in verdicts:
                self.listener.verdict(verdict)
            for receiver, message in messages:
                self.listener.message(receiver, message)
            if answer.start is not None:
                self.listener.granted(*answer.start)
            self._idle.set()
            if self.core.stale:
                break
        with self._wake:
            told, self.closed = self.closed, True  # nobody is to wait for what will not be sent any more
        self._fail_waiting(RuntimeClosed(self.runtime))
        if self.core.stale:
            self.listener.stale()
        elif not told:
            self.listener.unavailable(RuntimeClosed(self.runtime))  # Ray was shut down under us
        self._idle.set()

    def _next(self) -> Any:
        with self._wake:
            while not self.closed:
                ring = self._due_alarm()
                if ring is not None:
                    self._wake.release()
                    try:
                        ring()
                    finally:
                        self._wake.acquire()
                    continue
                step = self.core.next_step()
                if step is not None:
                    return step
                times = [t for t, _ in self._alarms.values()]
                ack = self.core.wait_until()
                if ack is not None:
                    times.append(ack)
                self._wake.wait(max(0.0, min(times) - self.clock.mono()) if times else None)
        return None

    def _due_alarm(self) -> Callable[[], None] | None:
        now = self.clock.mono()
        for name, (when, call) in self._alarms.items():
            if when <= now:
                del self._alarms[name]
                return call
        return None

    def _send(self, step: Any) -> Any:
        """The answer to this very step; `None` once closed (2)."""
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        packed = pack_step(step)
        since = self.clock.mono()
        told = False
        tries = 0
        detail = ""
        while not self.closed and ray.is_initialized():
            try:
                answer = unpack(ray.get(self.registry.step.remote(packed), timeout=self.timeout))
                if answer.word not in ("recovering", "unavailable"):
                    return answer
                detail = answer.detail or answer.word
            except GetTimeoutError:
                detail = f"no answer to step {step.seq}"
            except RayError as error:
                detail = str(error).splitlines()[0] if str(error) else type(error).__name__
                self._look_again()
            except Exception as error:  # noqa: BLE001 - Ray shutting down raises plain errors; they end the courier below
                detail = f"{type(error).__name__}: {error}"
                if not ray.is_initialized():
                    return None
            waited = self.clock.mono() - since
            if waited >= self.timeout and not told:
                told = True
                error2 = RuntimeUnavailable("registry", round(waited, 1), detail)
                self._fail_waiting(error2)
                self.listener.unavailable(error2)
            with self._wake:
                if not self.closed:
                    self._wake.wait(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1
        return None

    def _look_again(self) -> None:
        with contextlib.suppress(ValueError):  # not back yet, or gone: the caller tries again until its time is over
            self.registry = find_actor(self.runtime, "registry")

    def _fail_waiting(self, error: Exception) -> None:
        with self._wake:
            waiting = self.core.waiting_tokens(forget=isinstance(error, RuntimeClosed))
        for future in waiting:
            if not future.done():
                future.set_exception(error)
