"""A simulated process with a courier: a session process or a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openclaw_ray.core.protocol.courier import Courier
from openclaw_ray.core.protocol.messages import Admit, Answer, DownMessage, Event, Spec, Step, Verdict
from openclaw_ray.core.results import Receipt
from openclaw_ray.testing.simulator.network import Lost
from openclaw_ray.testing.simulator.process import Process

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["Talker"]

_PAUSES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Seconds before a step is sent again that was not answered."""


class Talker(Process):
    """It talks with the registry as `courier_thread` does: one step in flight, repeated until it is answered."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster.world, name)
        self.cluster = cluster
        self.courier = Courier(name, cluster.world.clock)
        self._tries = 0
        self._alarm_at: float | None = None

    # ------------------------------------------------------------------ up

    def post(self, event: Event) -> None:
        """Send an event with the next step."""
        self.courier.post(event)
        self.pump()

    def admit(self, admit: Admit, token: Any) -> None:
        """Ask for a run; not sent before `pump` or the next event, so that several go together."""
        self.courier.admit(admit, token)

    def pump(self) -> None:
        """Send the next step, if there is one and none is in flight."""
        if not self.alive:
            return
        step = self.courier.next_step()
        if step is not None:
            self._tries = 0
            self._send(step)
            return
        when = self.courier.wait_until()
        if when is not None and (self._alarm_at is None or when < self._alarm_at):
            self._alarm_at = when
            self.after(max(0.0, when - self.world.now) + 1e-6, self._alarm)

    def _alarm(self) -> None:
        self._alarm_at = None
        self.pump()

    def _send(self, step: Step) -> None:
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        self.cluster.network.ask(self, "registry", "step", self._answered, RegistryProcess.on_step, step)

    def _repeat(self, step: Step) -> None:
        if self.courier.in_flight is step:
            self._send(step)

    def _answered(self, answer: Answer | Lost) -> None:
        step = self.courier.in_flight
        if step is None:
            return
        if isinstance(answer, Answer):
            came = self.courier.answered(answer)
            if came is not None:
                verdicts, receipts, messages = came
                for token, receipt in receipts:
                    self.receipt(token, receipt)
                for verdict in verdicts:
                    self.verdict(verdict)
                for receiver, message in messages:
                    self.message(receiver, message)
                if answer.start is not None:
                    self.granted(*answer.start)
                if self.courier.stale:
                    self.stale()
                self.pump()
                self.heard()
                return
        pause = _PAUSES[min(self._tries, len(_PAUSES) - 1)]
        self._tries += 1
        self.after(pause, self._repeat, step)

    # ------------------------------------------------------------------ for subclasses

    def receipt(self, token: Any, receipt: Receipt) -> None:
        """The answer to an admit."""

    def verdict(self, verdict: Verdict) -> None:
        """The registry's word on an event."""

    def message(self, receiver: str, message: DownMessage) -> None:
        """A new downlink message."""

    def granted(self, epoch: int, spec: Spec) -> None:
        """A run to start here."""

    def heard(self) -> None:
        """An answer has been dealt with."""

    def stale(self) -> None:
        """The registry wants nothing of this process any more."""
