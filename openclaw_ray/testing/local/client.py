"""The client of a local runtime: the test itself."""

from __future__ import annotations

import logging
import os
import socket

from openclaw_ray.channels import Channel
from openclaw_ray.channels.desk import ChannelDesk
from openclaw_ray.core.errors import RuntimeClosed
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.keys import driver_key
from openclaw_ray.core.protocol.messages import Bye, DownMessage, Join, Spec, Verdict, Warn
from openclaw_ray.testing.local.courier import LocalCourier, LocalRequester
from openclaw_ray.testing.local.memory import ProcessMemory
from openclaw_ray.testing.local.registry import LocalRegistry

__all__ = ["LocalClient"]

_log = logging.getLogger("openclaw_ray")


class LocalClient:
    """Its courier and its root's children; it needs no poll, messages are handed to it."""

    def __init__(self, registry: LocalRegistry, default_agent: str, memory: ProcessMemory) -> None:
        ids = RandomIds()
        self.id = f"client-{ids.uuid()}"
        self.runtime = registry.name
        self.root_key = driver_key(default_agent, ids.uuid())
        self.courier = LocalCourier(self.id, registry, self, memory)
        self.requester = LocalRequester(self.courier, self.root_key, self.id, "", default_agent)
        self._default_agent = default_agent
        self.desk: ChannelDesk | None = None

    def open(self) -> None:
        """Join."""
        self.courier.post(
            Join(self.id, self.root_key, self._default_agent, False, "stop", socket.gethostname(), os.getpid())
        )
        self.courier.start()

    def serve(self, channel: Channel) -> None:
        """Have users of a channel talk with sessions."""
        self.desk = ChannelDesk(channel, self.courier, self.id, self.root_key)
        self.desk.open()

    def close(self, timeout: float) -> None:
        """Leave: what is un-ended under its root is stopped."""
        if self.desk is not None:
            self.desk.close(timeout)
        self.courier.post(Bye(self.id))
        self.courier.drain(timeout)
        self.courier.close()
        self.courier.join(timeout)
        self.requester.fail(RuntimeClosed(self.runtime))

    # ------------------------------------------------------------------ from the courier

    def verdict(self, verdict: Verdict) -> None:
        """The word on a stop."""
        self.requester.hear_verdict(verdict)

    def message(self, receiver: str, message: DownMessage) -> None:
        """A downlink message."""
        if isinstance(message, Warn):
            _log.warning("%s", message.text)
        elif self.desk is None or not self.desk.hear(message):
            self.requester.hear(message)

    def granted(self, epoch: int, spec: Spec) -> None:
        """Never: nothing is started in the test's own thread."""

    def stale(self) -> None:
        """The registry has given it up."""
        self.requester.fail(RuntimeClosed(self.runtime))

    def unavailable(self, error: Exception) -> None:
        """Its courier has ended."""
        self.requester.fail(error)
