"""The pusher of the registry: one push to the hub in flight, coalesced; nothing is lost with a hub (PROTOCOL.md 7.4).

1. What gathers while a push is under way goes with the next one.
2. A push that fails is made again with the same batch; numbers make repeats harmless.
3. An answer from another incarnation of the hub: messages that no client has confirmed go again. Rows need not: those
   of earlier batches were written before their push was answered.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError

from openclaw_ray.actors.names import find_actor
from openclaw_ray.actors.wire import pack
from openclaw_ray.core.protocol.hubstate import HubBatch

if TYPE_CHECKING:
    from openclaw_ray.actors.registry_actor import RegistryActor

__all__ = ["HubPush"]

PUSH_WITHIN = 10.0
ROWS_MAY_WAIT = 0.02
"""Seconds in which rows and events gather when no client waits for a message."""


class HubPush:
    """The thread that pushes."""

    def __init__(self, registry: RegistryActor) -> None:
        self.registry = registry
        self.wake = threading.Event()
        self._urgent = threading.Event()
        self._hub: Any = None
        self._incarnation = ""
        self._acked = 0

    def nudge(self) -> None:
        """Something was committed."""
        if self._client_waits():
            self._urgent.set()
        self.wake.set()

    def _client_waits(self) -> bool:
        with self.registry.lock:
            return self.registry.core.client_waits

    def run(self) -> None:
        """Push for ever."""
        while True:
            self.wake.wait()
            self.wake.clear()
            if not self._client_waits():
                self._urgent.wait(ROWS_MAY_WAIT)
            self._urgent.clear()
            while (batch := self._take()) is not None:
                self._push(batch)

    def _take(self) -> tuple[int, HubBatch] | None:
        with self.registry.lock:
            core = self.registry.core
            batch = core.take_batch()
            return None if batch is None else (core.s.incarnation, batch)

    def _push(self, numbered: tuple[int, HubBatch]) -> None:
        incarnation, batch = numbered
        pause = 0.05
        while True:
            if incarnation != self.registry.core.s.incarnation:
                # this registry was built anew meanwhile and says its messages itself; rows and events stay true
                batch = replace(batch, messages={})
                incarnation = self.registry.core.s.incarnation
            try:
                hub = self._find()
                incarnation_of_hub, acked = ray.get(hub.push.remote(incarnation, pack(batch)), timeout=PUSH_WITHIN)
            except (RayError, ValueError):
                # a hub that is away, or whose disk is full: the journal keeps the rows for as long as that lasts
                self._hub = None
                time.sleep(pause)
                pause = min(1.0, 2 * pause)
                continue
            self.hub_is_new(incarnation_of_hub)
            if acked > self._acked:
                self._acked = acked
                with self.registry.lock:
                    self.registry.journal.delete_upto("rows", acked)
            return

    def hub_is_new(self, incarnation: str) -> None:
        """The hub has said who it is (3)."""
        before, self._incarnation = self._incarnation, incarnation
        if before and before != incarnation:
            self.registry.enter(lambda core: core.hub_again())

    def silent(self, clients: list[str], lease: float) -> list[str]:
        """Which clients the hub has not heard of for their lease; none while there is no hub to ask."""
        try:
            silent: list[str] = ray.get(self._find().silent.remote(clients, lease), timeout=5.0)
        except (RayError, ValueError):
            self._hub = None
            return []
        return silent

    def _find(self) -> Any:
        if self._hub is None:
            self._hub = find_actor(self.registry.settings.runtime, "hub")
        return self._hub
